//! One-argument pointwise functions.
//!
//! Those that are no intrinsic are recipes over intrinsics that lose no more than a few ulp anywhere (stated beside each).

use super::{broadcast_body, wrapped};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, ScalarExpr, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Function {
    Neg,
    Abs,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log1p,
    Sqrt,
    Rsqrt,
    Tanh,
    Sigmoid,
    Relu,
    Silu,
    Softplus,
    Erf,
    Sin,
    Cos,
    Floor,
    IsNan,
    Not,
}

/// `y = f(x)` elementwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Unary {
    pub(crate) f: Function,
}

impl Function {
    /// The intrinsic it is, if it is one.
    pub(crate) fn intrinsic(self) -> Option<UnaryFn> {
        Some(match self {
            Function::Neg => UnaryFn::Neg,
            Function::Abs => UnaryFn::Abs,
            Function::Exp => UnaryFn::Exp,
            Function::Log => UnaryFn::Log,
            Function::Sqrt => UnaryFn::Sqrt,
            Function::Rsqrt => UnaryFn::Rsqrt,
            Function::Tanh => UnaryFn::Tanh,
            Function::Sigmoid => UnaryFn::Sigmoid,
            Function::Erf => UnaryFn::Erf,
            Function::Sin => UnaryFn::Sin,
            Function::Cos => UnaryFn::Cos,
            Function::Floor => UnaryFn::Floor,
            Function::IsNan => UnaryFn::IsNan,
            Function::Not => UnaryFn::Not,
            Function::Exp2 | Function::Expm1 | Function::Log1p => return None,
            Function::Relu | Function::Silu | Function::Softplus => return None,
        })
    }

    fn scalar(self, e: &mut ScalarExpr, x: ScalarId) -> ScalarId {
        match (self, self.intrinsic()) {
            (_, Some(f)) => e.unary(f, x),
            (Function::Silu, _) => {
                let s = e.unary(UnaryFn::Sigmoid, x);
                e.mul(x, s)
            }
            (Function::Exp2, _) => exp2(e, x),
            (Function::Expm1, _) => expm1(e, x),
            (Function::Log1p, _) => log1p(e, x),
            (Function::Softplus, _) => {
                // max(x, 0) + log1p(exp(-|x|)): nothing overflows.
                let a = e.unary(UnaryFn::Abs, x);
                let n = e.unary(UnaryFn::Neg, a);
                let small = e.unary(UnaryFn::Exp, n);
                let (rest, zero) = (log1p(e, small), e.f32(0.0));
                let up = e.binary(BinaryFn::Max, x, zero);
                e.add(up, rest)
            }
            _ => {
                let zero = e.f32(0.0);
                e.binary(BinaryFn::Max, x, zero)
            }
        }
    }

    fn value(self, x: f64) -> f64 {
        match self {
            Function::Neg => -x,
            Function::Abs => x.abs(),
            Function::Exp => x.exp(),
            Function::Exp2 => x.exp2(),
            Function::Expm1 => x.exp_m1(),
            Function::Log => x.ln(),
            Function::Log1p => x.ln_1p(),
            Function::Sqrt => x.sqrt(),
            Function::Rsqrt => 1.0 / x.sqrt(),
            Function::Tanh => x.tanh(),
            Function::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Function::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Function::Silu => x / (1.0 + (-x).exp()),
            Function::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Function::Erf => Real::erf(x),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Floor => x.floor(),
            Function::IsNan => f64::from(x.is_nan()),
            Function::Not => f64::from(x == 0.0),
        }
    }

    /// `dy * f'(x)` with `y = f(x)`.
    fn derivative(self, g: &mut Graph, x: Value, y: Value, dy: Value) -> Value {
        match self {
            Function::Neg => g.neg(dy),
            Function::Abs => {
                let (zero, minus) = (g.scalar(0.0), g.neg(dy));
                let (up, down) = (g.lt(zero, x), g.lt(x, zero));
                let negative = g.select(down, minus, zero);
                g.select(up, dy, negative)
            }
            Function::Exp => g.mul(dy, y),
            Function::Exp2 => {
                let d = g.mul(dy, y);
                g.scale(d, std::f32::consts::LN_2)
            }
            Function::Expm1 => {
                let one = g.scalar(1.0);
                let d = g.add(y, one);
                g.mul(dy, d)
            }
            Function::Log => g.div(dy, x),
            Function::Log1p => {
                let one = g.scalar(1.0);
                let d = g.add(x, one);
                g.div(dy, d)
            }
            Function::Sqrt => {
                let half = g.scalar(0.5);
                let d = g.mul(dy, half);
                g.div(d, y)
            }
            Function::Rsqrt => {
                let k = g.scalar(-0.5);
                let d = g.mul(dy, k);
                let r = g.div(y, x);
                g.mul(d, r)
            }
            Function::Tanh => {
                let (one, yy) = (g.scalar(1.0), g.mul(y, y));
                let d = g.sub(one, yy);
                g.mul(dy, d)
            }
            Function::Sigmoid => {
                let one = g.scalar(1.0);
                let rest = g.sub(one, y);
                let d = g.mul(y, rest);
                g.mul(dy, d)
            }
            Function::Relu => {
                // y > 0 exactly where x > 0, so x need not be kept. The derivative at 0 is 0; a NaN in x reaches the
                // gradient through dy only.
                let zero = g.scalar(0.0);
                let up = g.lt(zero, y);
                g.select(up, dy, zero)
            }
            Function::Silu => silu_derivative(g, x, y, dy),
            Function::Softplus => {
                let s = g.sigmoid(x);
                g.mul(dy, s)
            }
            Function::Erf => {
                let xx = g.mul(x, x);
                let n = g.neg(xx);
                let e = g.exp(n);
                let k = g.scalar(std::f32::consts::FRAC_2_SQRT_PI);
                let d = g.mul(e, k);
                g.mul(dy, d)
            }
            Function::Sin => {
                let c = g.cos(x);
                g.mul(dy, c)
            }
            Function::Cos => {
                let s = g.sin(x);
                let d = g.mul(dy, s);
                g.neg(d)
            }
            Function::Floor | Function::IsNan | Function::Not => g.scalar(0.0),
        }
    }
}

/// `s + y (1 - s)` with `s = sigmoid(x)`.
fn silu_derivative(g: &mut Graph, x: Value, y: Value, dy: Value) -> Value {
    let (one, s) = (g.scalar(1.0), g.sigmoid(x));
    let rest = g.sub(one, s);
    let t = g.mul(y, rest);
    let d = g.add(s, t);
    g.mul(dy, d)
}

/// `2^x` as `e^(n c) e^(n d + f ln 2)` with `n + f = x`, n whole and `c + d = ln 2`, c short enough that `n c` is exact: 3 ulp.
fn exp2(e: &mut ScalarExpr, x: ScalarId) -> ScalarId {
    let (low, high) = (e.f32(-160.0), e.f32(129.0));
    let above = e.binary(BinaryFn::Max, x, low);
    let x = e.binary(BinaryFn::Min, above, high);
    let n = e.unary(UnaryFn::Floor, x);
    let f = e.sub(x, n);
    let (c, d, ln2) = (e.f32(0.693_359_4), e.f32(-0.000_212_194_44), e.f32(std::f32::consts::LN_2));
    let (nc, nd, fl) = (e.mul(n, c), e.mul(n, d), e.mul(f, ln2));
    let rest = e.add(nd, fl);
    let (whole, part) = (e.unary(UnaryFn::Exp, nc), e.unary(UnaryFn::Exp, rest));
    e.mul(whole, part)
}

/// `e^x - 1`; below 1 in size as `2 t / (1 - t)` with `t = tanh(x / 2)`, which cancels nothing: 4 ulp.
fn expm1(e: &mut ScalarExpr, x: ScalarId) -> ScalarId {
    let (half, one) = (e.f32(0.5), e.f32(1.0));
    let h = e.mul(x, half);
    let t = e.unary(UnaryFn::Tanh, h);
    let (tt, rest) = (e.add(t, t), e.sub(one, t));
    let near = e.div(tt, rest);
    let y = e.unary(UnaryFn::Exp, x);
    let far = e.sub(y, one);
    let size = e.unary(UnaryFn::Abs, x);
    let small = e.binary(BinaryFn::Lt, size, one);
    e.select(small, near, far)
}

/// `log(1 + x)`; below 1/2 in size as `2 (s + s^3/3 + s^5/5 + ...)` with `s = x / (2 + x)`, which cancels nothing: 4 ulp.
fn log1p(e: &mut ScalarExpr, x: ScalarId) -> ScalarId {
    let (half, one, two) = (e.f32(0.5), e.f32(1.0), e.f32(2.0));
    let down = e.add(x, two);
    let s = e.div(x, down);
    let z = e.mul(s, s);
    let mut series = e.f32(2.0 / 17.0);
    for k in (0..8).rev() {
        let (zq, c) = (e.mul(z, series), e.f32(2.0 / (2 * k + 1) as f32));
        series = e.add(zq, c);
    }
    let (near, sum) = (e.mul(s, series), e.add(x, one));
    let far = e.unary(UnaryFn::Log, sum);
    let size = e.unary(UnaryFn::Abs, x);
    let small = e.binary(BinaryFn::Lt, size, half);
    e.select(small, near, far)
}

impl Rule for Unary {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        let intrinsic = self.f.intrinsic().unwrap_or(UnaryFn::Exp);
        match intrinsic.result(x.dtype) {
            Some(d) => Ok(vec![TensorType::new(d, x.dims.clone())]),
            None => Err(format!("does not take {}", x.dtype)),
        }
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        if matches!(self.f, Function::Floor | Function::IsNan | Function::Not) {
            return Ok(());
        }
        let dy = vjp.grad();
        let dx = self.f.derivative(vjp.g, vjp.inputs[0], vjp.outputs[0], dy);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let dtype = outputs[0].dtype;
        let is_integer = matches!(dtype, DType::I32 | DType::U32);
        let value = |x: f64| match self.f.value(x) {
            y if is_integer => wrapped(dtype, y as i64),
            y => y,
        };
        let data = inputs[0].data.iter().map(|x| x.via(value)).collect();
        vec![Array { ty: outputs[0].clone(), data }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = broadcast_body(io.inputs, &io.outputs[0].dims);
        let y = self.f.scalar(&mut body.expr, x[0]);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        use Function::{Abs, Cos, Erf, Exp, Exp2, Expm1, Floor, IsNan, Log, Log1p, Neg, Relu, Rsqrt};
        use Function::{Sigmoid, Silu, Sin, Softplus, Sqrt, Tanh};
        let mut all = Vec::new();
        for f in [Neg, Exp, Exp2, Expm1, Tanh, Sigmoid, Silu, Softplus, Erf, Sin, Cos] {
            all.push((Unary { f }, vec![SampleInput::uniform(&[3, 37], -3.0, 3.0)]));
        }
        for f in [Log, Sqrt, Rsqrt] {
            all.push((Unary { f }, vec![SampleInput::uniform(&[131], 0.1, 9.0)]));
        }
        all.push((Unary { f: Log1p }, vec![SampleInput::uniform(&[7, 19], -0.9, 2.0)]));
        all.push((Unary { f: Softplus }, vec![SampleInput::uniform(&[13], -1e4, 1e4)]));
        all.push((Unary { f: IsNan }, vec![SampleInput::f32(&[5])]));
        for f in [Abs, Relu] {
            all.push((Unary { f }, vec![SampleInput::distinct(&[5, 29])]));
        }
        all.push((Unary { f: Floor }, vec![SampleInput::uniform(&[1], 0.2, 0.8)]));
        all.push((Unary { f: Function::Not }, vec![SampleInput::bools(&[17])]));
        all
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $f:ident;)*) => {
        impl Graph {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&mut self, x: Value) -> Value {
                self.apply(Payload::Unary(Unary { f: Function::$f }), &[x])
            })*
        }

        impl Value {
            $($(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $name(self, g: &mut Graph) -> Value {
                g.$name(self)
            })*
        }
    };
}

functions! {
    /// `-x`, elementwise.
    neg = Neg;
    /// `|x|`, elementwise; derivative 0 at 0.
    abs = Abs;
    /// `e^x`, elementwise.
    exp = Exp;
    /// `2^x`, elementwise.
    exp2 = Exp2;
    /// `e^x - 1`, elementwise, right near 0 too.
    expm1 = Expm1;
    /// Natural logarithm, elementwise.
    log = Log;
    /// `log(1 + x)`, elementwise, right near 0 too.
    log1p = Log1p;
    /// Square root, elementwise; infinite derivative at 0.
    sqrt = Sqrt;
    /// `1 / sqrt(x)`, elementwise.
    rsqrt = Rsqrt;
    /// Hyperbolic tangent, elementwise.
    tanh = Tanh;
    /// `1 / (1 + e^-x)`, elementwise.
    sigmoid = Sigmoid;
    /// `max(x, 0)`, elementwise; NaN stays NaN; derivative 0 at 0.
    relu = Relu;
    /// `x sigmoid(x)`, elementwise.
    silu = Silu;
    /// `log(1 + e^x)`, elementwise, without overflow.
    softplus = Softplus;
    /// Gauss error function, elementwise.
    erf = Erf;
    /// Sine of radians, elementwise.
    sin = Sin;
    /// Cosine of radians, elementwise.
    cos = Cos;
    /// Largest integer not above x, elementwise; no gradient flows.
    floor = Floor;
    /// Whether x is NaN, elementwise: bool.
    isnan = IsNan;
    /// Logical not, elementwise.
    not = Not;
}

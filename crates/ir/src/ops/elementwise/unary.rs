//! One-argument pointwise functions.

use super::broadcast_body;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, ScalarExpr, ScalarId, UnaryFn};
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Function {
    Neg,
    Abs,
    Exp,
    Log,
    Sqrt,
    Rsqrt,
    Tanh,
    Sigmoid,
    Relu,
    Silu,
    Erf,
    Sin,
    Cos,
    Floor,
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
            Function::Not => UnaryFn::Not,
            Function::Relu | Function::Silu => return None,
        })
    }

    fn scalar(self, e: &mut ScalarExpr, x: ScalarId) -> ScalarId {
        match (self, self.intrinsic()) {
            (_, Some(f)) => e.unary(f, x),
            (Function::Silu, _) => {
                let s = e.unary(UnaryFn::Sigmoid, x);
                e.mul(x, s)
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
            Function::Log => x.ln(),
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
            Function::Erf => Real::erf(x),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Floor => x.floor(),
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
            Function::Log => g.div(dy, x),
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
            Function::Floor | Function::Not => g.scalar(0.0),
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
        if matches!(self.f, Function::Floor | Function::Not) {
            return Ok(());
        }
        let dy = vjp.grad();
        let dx = self.f.derivative(vjp.g, vjp.inputs[0], vjp.outputs[0], dy);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let data = inputs[0].data.iter().map(|x| x.via(|v| self.f.value(v))).collect();
        vec![Array { ty: outputs[0].clone(), data }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = broadcast_body(io.inputs, &io.outputs[0].dims);
        let y = self.f.scalar(&mut body.expr, x[0]);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        use Function::{Abs, Cos, Erf, Exp, Floor, Log, Neg, Relu, Rsqrt, Sigmoid, Silu, Sin, Sqrt, Tanh};
        let mut all = Vec::new();
        for f in [Neg, Exp, Tanh, Sigmoid, Silu, Erf, Sin, Cos] {
            all.push((Unary { f }, vec![SampleInput::uniform(&[3, 37], -3.0, 3.0)]));
        }
        for f in [Log, Sqrt, Rsqrt] {
            all.push((Unary { f }, vec![SampleInput::uniform(&[131], 0.1, 9.0)]));
        }
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
    /// Natural logarithm, elementwise.
    log = Log;
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
    /// Gauss error function, elementwise.
    erf = Erf;
    /// Sine of radians, elementwise.
    sin = Sin;
    /// Cosine of radians, elementwise.
    cos = Cos;
    /// Largest integer not above x, elementwise; no gradient flows.
    floor = Floor;
    /// Logical not, elementwise.
    not = Not;
}

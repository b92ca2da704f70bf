//! Two-argument pointwise functions with right-aligned broadcasting.

use super::{broadcast_body, wrapped};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::BinaryFn;
use crate::types::{DType, TensorType, broadcast};
use serde::{Deserialize, Serialize};

/// `y = f(a, b)` elementwise over the broadcast shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Binary {
    pub(crate) f: BinaryFn,
}

fn value(f: BinaryFn, a: f64, b: f64) -> f64 {
    match f {
        BinaryFn::Add => a + b,
        BinaryFn::Sub => a - b,
        BinaryFn::Mul => a * b,
        BinaryFn::Div => a / b,
        BinaryFn::Pow => a.powf(b),
        BinaryFn::Max | BinaryFn::Min if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryFn::Max => a.max(b),
        BinaryFn::Min => a.min(b),
        BinaryFn::Eq => f64::from(a == b),
        BinaryFn::Ne => f64::from(a != b),
        BinaryFn::Lt => f64::from(a < b),
        BinaryFn::Le => f64::from(a <= b),
        // Truth values are 0 and 1.
        BinaryFn::And => (a as i64 & b as i64) as f64,
        BinaryFn::Or => (a as i64 | b as i64) as f64,
        BinaryFn::Xor => (a as i64 ^ b as i64) as f64,
    }
}

/// Results of operands of a dtype. Of integers: truncated division (0 by 0), then wrapped into the dtype; products have more
/// digits than `f64`.
fn typed(f: BinaryFn, dtype: DType, a: f64, b: f64) -> f64 {
    let y = value(f, a, b);
    match f {
        _ if !matches!(dtype, DType::I32 | DType::U32) => y,
        BinaryFn::Div if !y.is_finite() => 0.0,
        BinaryFn::Mul => wrapped(dtype, (a as i64).wrapping_mul(b as i64)),
        _ => wrapped(dtype, y as i64),
    }
}

impl Binary {
    /// Gradients of `a` and `b` before summing over broadcast axes.
    fn derivatives(&self, g: &mut Graph, [a, b, y, dy]: [Value; 4]) -> Option<(Value, Value)> {
        Some(match self.f {
            BinaryFn::Add => (dy, dy),
            BinaryFn::Sub => (dy, g.neg(dy)),
            BinaryFn::Mul => (g.mul(dy, b), g.mul(dy, a)),
            BinaryFn::Div => {
                let da = g.div(dy, b);
                let t = g.mul(da, y);
                (da, g.neg(t))
            }
            BinaryFn::Pow => pow_derivatives(g, [a, b, y, dy]),
            BinaryFn::Max | BinaryFn::Min => {
                // Ties go to the first operand.
                let first = if self.f == BinaryFn::Max { g.le(b, a) } else { g.le(a, b) };
                let zero = g.scalar(0.0);
                (g.select(first, dy, zero), g.select(first, zero, dy))
            }
            _ => return None,
        })
    }
}

/// `da = dy b a^(b-1)`, 0 where b is 0; `db = dy y log a`, 0 where a is 0 and b is not negative, as PyTorch.
fn pow_derivatives(g: &mut Graph, [a, b, y, dy]: [Value; 4]) -> (Value, Value) {
    let (zero, one) = (g.scalar(0.0), g.scalar(1.0));
    let less = g.sub(b, one);
    let p = g.pow(a, less);
    let bp = g.mul(b, p);
    let flat = g.equal(b, zero);
    let da = g.select(flat, zero, bp);
    let log = g.log(a);
    let yl = g.mul(y, log);
    let (at_zero, up) = (g.equal(a, zero), g.le(zero, b));
    let at_zero = g.and(at_zero, up);
    let db = g.select(at_zero, zero, yl);
    (g.mul(dy, da), g.mul(dy, db))
}

impl Rule for Binary {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (a, b) = (&inputs[0], &inputs[1]);
        let dtype = self
            .f
            .result(a.dtype, b.dtype)
            .ok_or_else(|| format!("{:?} does not take {} with {}", self.f, a.dtype, b.dtype))?;
        let dims = broadcast(&a.dims, &b.dims)
            .ok_or_else(|| format!("{a} and {b} do not broadcast: dimensions must be equal or 1"))?;
        Ok(vec![TensorType::new(dtype, dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dy = vjp.grad();
        let all = [vjp.inputs[0], vjp.inputs[1], vjp.outputs[0], dy];
        if let Some((da, db)) = self.derivatives(vjp.g, all) {
            for (i, d) in [(0, da), (1, db)] {
                if vjp.wants(i) {
                    vjp.set_unbroadcast(i, d);
                }
            }
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let dtype = inputs[0].ty.dtype;
        vec![Array::build(&outputs[0], |p| {
            let (a, b) = (inputs[0].at_broadcast(p).f64(), inputs[1].at_broadcast(p).f64());
            R::of(typed(self.f, dtype, a, b))
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = broadcast_body(io.inputs, &io.outputs[0].dims);
        let y = body.expr.binary(self.f, x[0], x[1]);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        use BinaryFn::{Add, And, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Pow, Sub, Xor};
        let f = SampleInput::f32;
        let mut all = Vec::new();
        for op in [Add, Sub, Mul] {
            all.push((Binary { f: op }, vec![f(&[1]), f(&[1])]));
            all.push((Binary { f: op }, vec![f(&[3, 1, 7]), f(&[5, 1])]));
            all.push((Binary { f: op }, vec![f(&[67, 31]), f(&[31])]));
        }
        all.push((Binary { f: Div }, vec![f(&[4, 33]), SampleInput::uniform(&[4, 1], 0.5, 2.0)]));
        all.push((Binary { f: Pow }, vec![SampleInput::uniform(&[6, 5], 0.3, 2.0), f(&[5])]));
        for op in [Max, Min, Lt, Le] {
            all.push((
                Binary { f: op },
                vec![SampleInput::distinct(&[9, 13]), SampleInput::uniform(&[1], 0.001, 0.002)],
            ));
        }
        for op in [Eq, Ne, Add, Mul, And, Or, Xor] {
            all.push((Binary { f: op }, vec![SampleInput::ids(&[8, 3], 4), SampleInput::ids(&[3], 4)]));
        }
        for op in [And, Or] {
            all.push((Binary { f: op }, vec![SampleInput::bools(&[23]), SampleInput::bools(&[23])]));
        }
        all
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $f:ident;)*) => {
        impl Graph {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&mut self, a: Value, b: Value) -> Value {
                self.apply(Payload::Binary(Binary { f: BinaryFn::$f }), &[a, b])
            })*
        }
    };
}

functions! {
    /// `a + b`, broadcasting.
    add = Add;
    /// `a - b`, broadcasting.
    sub = Sub;
    /// `a * b`, broadcasting.
    mul = Mul;
    /// `a / b`, broadcasting; integers truncate towards zero.
    div = Div;
    /// `a ^ b`, broadcasting; `0 ^ 0 = 1`.
    pow = Pow;
    /// Larger of two, broadcasting; NaN if either is; the gradient of a tie goes to `a`.
    maximum = Max;
    /// Smaller of two, broadcasting; NaN if either is; the gradient of a tie goes to `a`.
    minimum = Min;
    /// `a == b`, broadcasting.
    equal = Eq;
    /// `a != b`, broadcasting.
    not_equal = Ne;
    /// `a < b`, broadcasting.
    lt = Lt;
    /// `a <= b`, broadcasting.
    le = Le;
    /// Logical and of truth values, bit by bit of integers, broadcasting.
    and = And;
    /// Logical or of truth values, bit by bit of integers, broadcasting.
    or = Or;
    /// Exclusive or of the bits of integers, broadcasting.
    xor = Xor;
}

impl Graph {
    /// `a > b`, broadcasting.
    #[track_caller]
    pub fn gt(&mut self, a: Value, b: Value) -> Value {
        self.lt(b, a)
    }

    /// `a >= b`, broadcasting.
    #[track_caller]
    pub fn ge(&mut self, a: Value, b: Value) -> Value {
        self.le(b, a)
    }

    /// `x * k` for a constant `k`.
    #[track_caller]
    pub fn scale(&mut self, x: Value, k: f32) -> Value {
        let k = self.scalar(k);
        self.mul(x, k)
    }
}

//! Scalar intrinsics with the exact meaning that `griffinfly_ir::scalar` gives them. Lanes are independent throughout, so
//! the same code serves vectors.

use crate::kir::{Builder, Expr, Literal, Scalar};
use griffinfly_ir::loops::Combine;
use griffinfly_ir::scalar::{BinaryFn, Scalar as Constant, UnaryFn};
use griffinfly_ir::types::DType;

/// A literal.
pub(crate) fn constant(b: &Builder, value: Constant) -> Expr<'_> {
    b.literal(match value {
        Constant::F32(bits) => Literal::F32(bits),
        Constant::I32(value) => Literal::I32(value),
        Constant::U32(value) => Literal::U32(value),
        Constant::Bool(value) => Literal::Bool(value),
    })
}

/// A logical value as the word a buffer holds.
pub(crate) fn to_stored(value: Expr<'_>) -> Expr<'_> {
    if value.ty().is_bool() { select_words(value, 1, 0) } else { value }
}

fn select_words<'b>(condition: Expr<'b>, yes: u32, no: u32) -> Expr<'b> {
    let b = condition.builder();
    select(condition, b.constant(yes), b.constant(no))
}

/// `c ? x : y`, lane by lane where the condition has lanes.
pub(super) fn select<'b>(c: Expr<'b>, x: Expr<'b>, y: Expr<'b>) -> Expr<'b> {
    if c.ty().is_scalar() {
        return c.select(x, y);
    }
    let lanes = c.ty().lanes;
    c.select(x.splat(lanes), y.splat(lanes))
}

/// One-argument intrinsic.
pub(super) fn unary(f: UnaryFn, x: Expr<'_>) -> Expr<'_> {
    match f {
        UnaryFn::Neg => -x,
        UnaryFn::Abs => x.abs(),
        UnaryFn::Exp => x.exp(),
        UnaryFn::Log => x.log(),
        UnaryFn::Sqrt => x.sqrt(),
        UnaryFn::Rsqrt => x.rsqrt(),
        UnaryFn::Tanh => x.tanh(),
        UnaryFn::Sigmoid => x.sigmoid(),
        UnaryFn::Erf => x.erf(),
        UnaryFn::Sin => x.sin(),
        UnaryFn::Cos => x.cos(),
        UnaryFn::Floor => x.floor(),
        UnaryFn::IsNan => x.is_nan(),
        UnaryFn::Not => !x,
    }
}

/// Two-argument intrinsic on equal kinds.
pub(crate) fn binary<'b>(f: BinaryFn, x: Expr<'b>, y: Expr<'b>) -> Expr<'b> {
    match f {
        BinaryFn::Add => x + y,
        BinaryFn::Sub => x - y,
        BinaryFn::Mul => x * y,
        BinaryFn::Div => quotient(x, y),
        BinaryFn::Pow => x.pow(y),
        BinaryFn::Max => x.max(y),
        BinaryFn::Min => x.min(y),
        BinaryFn::Eq => x.equals(y),
        // The ordered comparison with its result inverted: true where either is NaN.
        BinaryFn::Ne => !x.equals(y),
        BinaryFn::Lt => x.lt(y),
        BinaryFn::Le => x.le(y),
        BinaryFn::And => x & y,
        BinaryFn::Or => x | y,
        BinaryFn::Xor => x ^ y,
    }
}

/// The combination of two values without an index.
pub(crate) fn combine_value<'b>(combine: Combine, x: Expr<'b>, y: Expr<'b>) -> Expr<'b> {
    match combine {
        Combine::Sum => x + y,
        Combine::Max | Combine::MaxIndex => x.max(y),
        Combine::Min | Combine::MinIndex => x.min(y),
    }
}

/// Division; of integers by zero it gives 0, and it wraps.
fn quotient<'b>(x: Expr<'b>, y: Expr<'b>) -> Expr<'b> {
    let b = x.builder();
    match y.ty().scalar {
        Scalar::F32 | Scalar::Bool => x / y,
        Scalar::U32 => {
            let zero = y.equals(0_u32);
            select(zero, b.constant(0_u32), x / select(zero, b.constant(1_u32), y))
        }
        Scalar::I32 => {
            let (zero, minus) = (y.equals(0), y.equals(-1));
            let divided = x / select(zero | minus, b.constant(1), y);
            select(zero, b.constant(0), select(minus, -x, divided))
        }
    }
}

/// Value conversion.
pub(crate) fn cast(dtype: DType, x: Expr<'_>) -> Expr<'_> {
    let b = x.builder();
    match (dtype, x.ty().scalar) {
        (DType::F32, Scalar::Bool) => select(x, b.constant(1.0_f32), b.constant(0.0_f32)),
        (DType::F32, _) => x.cast(Scalar::F32),
        (DType::I32, Scalar::F32) => saturated(x, Scalar::I32),
        (DType::U32, Scalar::F32) => saturated(x, Scalar::U32),
        (DType::I32, Scalar::Bool) => select_words(x, 1, 0).bitcast(Scalar::I32),
        (DType::U32, Scalar::Bool) => select_words(x, 1, 0),
        (DType::I32, _) => x.bitcast(Scalar::I32),
        (DType::U32, _) => x.bitcast(Scalar::U32),
        (DType::Bool, Scalar::Bool) => x,
        (DType::Bool, Scalar::F32) => !x.equals(0.0_f32),
        (DType::Bool, _) => !x.bitcast(Scalar::U32).equals(0_u32),
    }
}

/// Float to integer: truncation, saturation, 0 for NaN; only values in range reach the conversion.
fn saturated(x: Expr<'_>, to: Scalar) -> Expr<'_> {
    let b = x.builder();
    let (low, high, least, most) = match to {
        Scalar::I32 => {
            (-2_147_483_648.0_f32, 2_147_483_648.0_f32, Literal::I32(i32::MIN), Literal::I32(i32::MAX))
        }
        _ => (0.0, 4_294_967_296.0, Literal::U32(0), Literal::U32(u32::MAX)),
    };
    let (under, over, nan) = (x.lt(low), x.ge(high), x.is_nan());
    let safe = select(under | over | nan, b.constant(0.0_f32), x).cast(to);
    select(under, b.literal(least), select(over, b.literal(most), safe))
}

//! Operands: expressions and host constants in the same argument position.
//!
//! A host number takes the kind of the value it meets when it is exact there (`index + 1`, `x * 2`), so that generators
//! need no suffixes; otherwise it keeps its own kind and the type check reports the mismatch.

use super::build::Builder;
use super::expr::Literal;
use super::handle::Expr;
use super::types::{Scalar, Type};

/// Something that can stand where an expression is expected.
pub trait Operand<'b>: Copy {
    /// The expression; a constant adapts to `like` where that is exact.
    fn expr(self, b: &'b Builder, like: Option<Type>) -> Expr<'b>;
}

impl<'b> Operand<'b> for Expr<'b> {
    fn expr(self, _: &'b Builder, _: Option<Type>) -> Expr<'b> {
        self
    }
}

macro_rules! constants {
    ($($host:ty => $literal:expr),* $(,)?) => {$(
        impl<'b> Operand<'b> for $host {
            #[track_caller]
            fn expr(self, b: &'b Builder, like: Option<Type>) -> Expr<'b> {
                let literal: fn($host) -> Literal = $literal;
                b.literal(adapt(literal(self), like.map(|ty| ty.scalar)))
            }
        }
    )*};
}

constants! {
    f32 => |value| Literal::F32(value.to_bits()),
    u32 => Literal::U32,
    i32 => Literal::I32,
    bool => Literal::Bool,
}

/// Largest integer below which every integer is an exact float.
const EXACT: u32 = 1 << 24;

fn adapt(literal: Literal, like: Option<Scalar>) -> Literal {
    match (literal, like) {
        (Literal::I32(value), Some(Scalar::U32)) if value >= 0 => Literal::U32(value.unsigned_abs()),
        (Literal::U32(value), Some(Scalar::I32)) => i32::try_from(value).map_or(literal, Literal::I32),
        (Literal::I32(value), Some(Scalar::F32)) if value.unsigned_abs() <= EXACT => {
            Literal::F32((value as f32).to_bits())
        }
        (Literal::U32(value), Some(Scalar::F32)) if value <= EXACT => Literal::F32((value as f32).to_bits()),
        _ => literal,
    }
}

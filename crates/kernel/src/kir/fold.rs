//! Constant folding of index arithmetic, so that generated code stays readable.
//!
//! Only `u32` and `bool` scalars fold: their arithmetic is exact and the same everywhere. Division and remainder by a
//! power of two become shift and mask; other constant divisors stay, since drivers turn them into multiplications
//! (the place for our own multiply-high is [`divide`]).

use super::expr::{BinaryOp, Literal};

/// What a binary operation reduces to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folded {
    /// A constant.
    Literal(Literal),
    /// The left operand.
    Left,
    /// The right operand.
    Right,
    /// The left operand with another operation and constant.
    Rewrite(BinaryOp, u32),
    /// Itself.
    Keep,
}

/// Reduces `left op right`, given the operands that are constants. Division by a constant zero stays.
pub(super) fn binary(op: BinaryOp, left: Option<Literal>, right: Option<Literal>) -> Folded {
    use Literal::{Bool, U32};
    match (left, right) {
        (Some(U32(a)), Some(U32(b))) => constants(op, a, b).map_or(Folded::Keep, Folded::Literal),
        (_, Some(U32(b))) => right_constant(op, b),
        (Some(U32(a)), _) => left_constant(op, a),
        (Some(Bool(a)), _) => truth(op, a, Folded::Right),
        (_, Some(Bool(b))) => truth(op, b, Folded::Left),
        _ => Folded::Keep,
    }
}

fn constants(op: BinaryOp, a: u32, b: u32) -> Option<Literal> {
    let number = |value| Some(Literal::U32(value));
    let truth = |value| Some(Literal::Bool(value));
    match op {
        BinaryOp::Add => number(a.wrapping_add(b)),
        BinaryOp::Sub => number(a.wrapping_sub(b)),
        BinaryOp::Mul => number(a.wrapping_mul(b)),
        BinaryOp::Div => a.checked_div(b).map(Literal::U32),
        BinaryOp::Rem => a.checked_rem(b).map(Literal::U32),
        BinaryOp::Min => number(a.min(b)),
        BinaryOp::Max => number(a.max(b)),
        BinaryOp::And => number(a & b),
        BinaryOp::Or => number(a | b),
        BinaryOp::Xor => number(a ^ b),
        BinaryOp::Shl => a.checked_shl(b).map(Literal::U32),
        BinaryOp::Shr => a.checked_shr(b).map(Literal::U32),
        BinaryOp::Eq => truth(a == b),
        BinaryOp::Ne => truth(a != b),
        BinaryOp::Lt => truth(a < b),
        BinaryOp::Le => truth(a <= b),
        BinaryOp::Gt => truth(a > b),
        BinaryOp::Ge => truth(a >= b),
    }
}

fn right_constant(op: BinaryOp, b: u32) -> Folded {
    use BinaryOp::{Add, And, Div, Ge, Lt, Mul, Or, Rem, Shl, Shr, Sub, Xor};
    match (op, b) {
        (Add | Sub | Or | Xor | Shl | Shr, 0) | (Mul | Div, 1) | (And, u32::MAX) => Folded::Left,
        (Mul | And, 0) | (Rem, 1) => Folded::Literal(Literal::U32(0)),
        (Lt, 0) => Folded::Literal(Literal::Bool(false)),
        (Ge, 0) => Folded::Literal(Literal::Bool(true)),
        (Div | Rem, _) => divide(op, b),
        _ => Folded::Keep,
    }
}

fn left_constant(op: BinaryOp, a: u32) -> Folded {
    use BinaryOp::{Add, And, Div, Mul, Or, Rem, Shl, Shr, Xor};
    match (op, a) {
        (Add | Or | Xor, 0) | (Mul, 1) | (And, u32::MAX) => Folded::Right,
        (Mul | And | Div | Rem | Shl | Shr, 0) => Folded::Literal(Literal::U32(0)),
        _ => Folded::Keep,
    }
}

fn divide(op: BinaryOp, divisor: u32) -> Folded {
    match (op, divisor.is_power_of_two()) {
        (BinaryOp::Div, true) => Folded::Rewrite(BinaryOp::Shr, divisor.trailing_zeros()),
        (BinaryOp::Rem, true) => Folded::Rewrite(BinaryOp::And, divisor - 1),
        _ => Folded::Keep,
    }
}

fn truth(op: BinaryOp, value: bool, other: Folded) -> Folded {
    match (op, value) {
        (BinaryOp::And, true) | (BinaryOp::Or, false) => other,
        (BinaryOp::And, false) | (BinaryOp::Or, true) => Folded::Literal(Literal::Bool(value)),
        _ => Folded::Keep,
    }
}

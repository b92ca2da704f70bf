//! Intrinsics over columns: the meaning of each is that of `griffinfly_ir::scalar`, in `f32` throughout.

use super::functions;
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};
use griffinfly_ir::types::DType;

/// What an instruction computes from registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// One-argument intrinsic on a dtype.
    Unary(UnaryFn, DType),
    /// Two-argument intrinsic on a dtype.
    Binary(BinaryFn, DType),
    /// `if a { b } else { c }`.
    Select,
    /// Conversion to the first from the second dtype.
    Cast(DType, DType),
}

/// Computes an operation lane by lane; arguments it does not take are ignored.
#[inline(always)]
pub(super) fn compute(operation: Operation, out: &mut [u32], [a, b, c]: [&[u32]; 3]) {
    match operation {
        Operation::Unary(f, d) => unary(f, d, out, a),
        Operation::Binary(f, d) => binary(f, d, out, a, b),
        Operation::Select => select(out, a, b, c),
        Operation::Cast(to, from) => cast(to, from, out, a),
    }
}

#[inline(always)]
fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

#[inline(always)]
fn each(out: &mut [u32], x: &[u32], g: impl Fn(u32) -> u32) {
    for (o, x) in out.iter_mut().zip(x) {
        *o = g(*x);
    }
}

#[inline(always)]
fn each_float(out: &mut [u32], x: &[u32], g: impl Fn(f32) -> f32) {
    each(out, x, |x| g(f(x)).to_bits());
}

#[inline(always)]
fn both(out: &mut [u32], a: &[u32], b: &[u32], g: impl Fn(u32, u32) -> u32) {
    for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
        *o = g(*a, *b);
    }
}

#[inline(always)]
fn floats(out: &mut [u32], a: &[u32], b: &[u32], g: impl Fn(f32, f32) -> f32) {
    both(out, a, b, |a, b| g(f(a), f(b)).to_bits());
}

#[inline(always)]
fn integers(out: &mut [u32], a: &[u32], b: &[u32], g: impl Fn(i32, i32) -> i32) {
    both(out, a, b, |a, b| g(a as i32, b as i32) as u32);
}

/// Larger of two; NaN if either is NaN.
#[inline(always)]
pub(super) fn max(a: f32, b: f32) -> f32 {
    let larger = if a > b { a } else { b };
    if a.is_nan() | b.is_nan() { f32::NAN } else { larger }
}

/// Smaller of two; NaN if either is NaN.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    let smaller = if a < b { a } else { b };
    if a.is_nan() | b.is_nan() { f32::NAN } else { smaller }
}

/// One-argument intrinsics.
#[inline(always)]
fn unary(function: UnaryFn, dtype: DType, out: &mut [u32], x: &[u32]) {
    match (function, dtype) {
        (UnaryFn::Neg, DType::F32) => each_float(out, x, |x| -x),
        (UnaryFn::Neg, _) => each(out, x, u32::wrapping_neg),
        (UnaryFn::Abs, DType::F32) => each_float(out, x, f32::abs),
        (UnaryFn::Abs, _) => each(out, x, |x| (x as i32).wrapping_abs() as u32),
        (UnaryFn::Exp, _) => each_float(out, x, functions::exp),
        (UnaryFn::Log, _) => each_float(out, x, functions::log),
        (UnaryFn::Sqrt, _) => each_float(out, x, f32::sqrt),
        (UnaryFn::Rsqrt, _) => each_float(out, x, functions::rsqrt),
        (UnaryFn::Tanh, _) => each_float(out, x, functions::tanh),
        (UnaryFn::Sigmoid, _) => each_float(out, x, functions::sigmoid),
        (UnaryFn::Erf, _) => each_float(out, x, functions::erf),
        (UnaryFn::Sin, _) => each_float(out, x, functions::sin),
        (UnaryFn::Cos, _) => each_float(out, x, functions::cos),
        (UnaryFn::Floor, _) => each_float(out, x, f32::floor),
        (UnaryFn::IsNan, _) => each(out, x, |x| u32::from(f(x).is_nan())),
        (UnaryFn::Not, _) => each(out, x, |x| u32::from(x == 0)),
    }
}

/// Two-argument intrinsics on equal dtypes.
#[inline(always)]
fn binary(function: BinaryFn, dtype: DType, out: &mut [u32], a: &[u32], b: &[u32]) {
    match dtype {
        DType::F32 => float(function, out, a, b),
        DType::I32 => signed(function, out, a, b),
        DType::U32 | DType::Bool => unsigned(function, out, a, b),
    }
}

#[inline(always)]
fn float(function: BinaryFn, out: &mut [u32], a: &[u32], b: &[u32]) {
    match function {
        BinaryFn::Add => floats(out, a, b, |a, b| a + b),
        BinaryFn::Sub => floats(out, a, b, |a, b| a - b),
        BinaryFn::Mul => floats(out, a, b, |a, b| a * b),
        BinaryFn::Div => floats(out, a, b, |a, b| a / b),
        BinaryFn::Pow => floats(out, a, b, functions::pow),
        BinaryFn::Max => floats(out, a, b, max),
        BinaryFn::Min => floats(out, a, b, min),
        BinaryFn::Eq => both(out, a, b, |a, b| u32::from(f(a) == f(b))),
        BinaryFn::Ne => both(out, a, b, |a, b| u32::from(f(a) != f(b))),
        BinaryFn::Lt => both(out, a, b, |a, b| u32::from(f(a) < f(b))),
        BinaryFn::Le => both(out, a, b, |a, b| u32::from(f(a) <= f(b))),
        // Not on floats (refused by the loop verifier).
        BinaryFn::And | BinaryFn::Or | BinaryFn::Xor => out.fill(0),
    }
}

#[inline(always)]
fn signed(function: BinaryFn, out: &mut [u32], a: &[u32], b: &[u32]) {
    match function {
        BinaryFn::Div => integers(out, a, b, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
        BinaryFn::Max => integers(out, a, b, i32::max),
        BinaryFn::Min => integers(out, a, b, i32::min),
        BinaryFn::Lt => integers(out, a, b, |a, b| i32::from(a < b)),
        BinaryFn::Le => integers(out, a, b, |a, b| i32::from(a <= b)),
        _ => unsigned(function, out, a, b),
    }
}

#[inline(always)]
fn unsigned(function: BinaryFn, out: &mut [u32], a: &[u32], b: &[u32]) {
    match function {
        BinaryFn::Add => both(out, a, b, u32::wrapping_add),
        BinaryFn::Sub => both(out, a, b, u32::wrapping_sub),
        BinaryFn::Mul => both(out, a, b, u32::wrapping_mul),
        BinaryFn::Div => both(out, a, b, |a, b| a.checked_div(b).unwrap_or(0)),
        BinaryFn::Max => both(out, a, b, u32::max),
        BinaryFn::Min => both(out, a, b, u32::min),
        BinaryFn::Eq => both(out, a, b, |a, b| u32::from(a == b)),
        BinaryFn::Ne => both(out, a, b, |a, b| u32::from(a != b)),
        BinaryFn::Lt => both(out, a, b, |a, b| u32::from(a < b)),
        BinaryFn::Le => both(out, a, b, |a, b| u32::from(a <= b)),
        BinaryFn::And => both(out, a, b, |a, b| a & b),
        BinaryFn::Or => both(out, a, b, |a, b| a | b),
        BinaryFn::Xor => both(out, a, b, |a, b| a ^ b),
        // Not on integers (refused by the loop verifier).
        BinaryFn::Pow => out.fill(0),
    }
}

/// `if c { a } else { b }`.
#[inline(always)]
fn select(out: &mut [u32], c: &[u32], a: &[u32], b: &[u32]) {
    for (((o, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
        *o = if *c != 0 { *a } else { *b };
    }
}

/// Conversion; float to integer truncates and saturates, NaN gives 0.
#[inline(always)]
fn cast(to: DType, from: DType, out: &mut [u32], x: &[u32]) {
    match (to, from) {
        (DType::F32, DType::I32) => each(out, x, |x| (x as i32 as f32).to_bits()),
        (DType::F32, DType::U32 | DType::Bool) => each(out, x, |x| (x as f32).to_bits()),
        (DType::I32, DType::F32) => each(out, x, |x| f(x) as i32 as u32),
        (DType::U32, DType::F32) => each(out, x, |x| f(x) as u32),
        (DType::Bool, DType::F32) => each(out, x, |x| u32::from(f(x) != 0.0)),
        (DType::Bool, _) => each(out, x, |x| u32::from(x != 0)),
        _ => each(out, x, |x| x),
    }
}

//! The Rust twins: what the host device evaluates where a kernel would call `gf_...`.
//!
//! Plain multiplications and additions (no `mul_add`, which is a library call on baseline x86-64); all but `sin`,
//! `cos` and `pow` are branch-free and vectorise.

pub use super::erf::erf;
pub use super::exponential::{exp, exp2, log, sigmoid, tanh};
pub use super::power::pow;
pub use super::root::{rsqrt, sqrt};
pub use super::trigonometric::{cos, sin};

/// Larger value; NaN if either is. The twin of [`crate::kir::Expr::max`].
#[inline]
pub fn max(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// Smaller value; NaN if either is. The twin of [`crate::kir::Expr::min`].
#[inline]
pub fn min(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}

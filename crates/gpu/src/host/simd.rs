//! Arithmetic compiled for the vector units this machine has.
//!
//! The same code twice: for what every x86-64 has and for AVX2. Nothing is contracted or reordered in either, so both give
//! the same bits.
#![allow(unsafe_code, reason = "functions compiled for AVX2 are called where it was detected")]

use super::arithmetic::{self, Operation};
use super::reduce::{Reduction, Running};

/// Computes an operation lane by lane; arguments it does not take are ignored.
pub(super) fn compute(operation: Operation, out: &mut [u32], arguments: [&[u32]; 3]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2.
        unsafe { compute_avx2(operation, out, arguments) };
        return;
    }
    arithmetic::compute(operation, out, arguments);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn compute_avx2(operation: Operation, out: &mut [u32], arguments: [&[u32]; 3]) {
    arithmetic::compute(operation, out, arguments);
}

/// Takes a block of values into running ones: see [`Reduction::absorb`].
pub(super) fn absorb(
    r: Reduction,
    running: &mut Running<'_>,
    values: &[u32],
    index: (u32, u32),
    first: bool,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2.
        unsafe { absorb_avx2(r, running, values, index, first) };
        return;
    }
    r.absorb(running, values, index, first);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn absorb_avx2(r: Reduction, running: &mut Running<'_>, values: &[u32], index: (u32, u32), first: bool) {
    r.absorb(running, values, index, first);
}

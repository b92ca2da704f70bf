//! Operations that choose elements by ids.
//!
//! Ids outside their range never reach memory: those from the host are refused when they are set, and every lowering
//! clamps what it reads. References clamp as the devices do.

mod embedding;
mod gather;
mod one_hot;
mod topk;

pub(crate) use embedding::{Embedding, EmbeddingGrad};
pub(crate) use gather::{Gather, ScatterAdd};
pub(crate) use one_hot::OneHot;
pub(crate) use topk::TopK;

use crate::scalar::{BinaryFn, Scalar, ScalarExpr, ScalarId};

/// An id clamped into `0..count`.
pub(crate) fn clamp(e: &mut ScalarExpr, id: ScalarId, count: usize) -> ScalarId {
    let (zero, last) = (e.constant(Scalar::I32(0)), e.constant(Scalar::I32(count as i32 - 1)));
    let low = e.binary(BinaryFn::Max, id, zero);
    e.binary(BinaryFn::Min, low, last)
}

/// The same for references.
pub(crate) fn clamped(id: f64, count: usize) -> usize {
    (id.max(0.0) as usize).min(count - 1)
}

//! Pointwise operations with right-aligned broadcasting.

mod binary;
mod gelu;
mod select;
mod stop;
mod unary;

pub(crate) use binary::Binary;
pub(crate) use gelu::Gelu;
pub(crate) use select::Select;
pub(crate) use stop::StopGradient;
pub(crate) use unary::{Function, Unary};

use crate::index::Access;
use crate::loops::Body;
use crate::scalar::ScalarId;
use crate::types::TensorType;

/// A body over `domain` with one broadcast load per operand, in order.
pub(crate) fn broadcast_body(inputs: &[TensorType], domain: &[usize]) -> (Body, Vec<ScalarId>) {
    let mut body = Body::new();
    let loads =
        inputs.iter().enumerate().map(|(i, t)| body.load(i, t, Access::broadcast(&t.dims, domain))).collect();
    (body, loads)
}

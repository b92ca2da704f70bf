//! Pointwise operations with right-aligned broadcasting.

mod activation;
mod binary;
mod cast;
mod channel;
mod gelu;
mod integer;
mod rounding;
mod select;
mod stop;
mod timestep;
mod unary;

pub(crate) use binary::Binary;
pub(crate) use cast::Cast;
pub(crate) use gelu::Gelu;
pub(crate) use select::Select;
pub(crate) use stop::StopGradient;
pub use timestep::TimestepEmbedding;
pub(crate) use unary::{Function, Unary};

use crate::index::Access;
use crate::loops::Body;
use crate::scalar::ScalarId;
use crate::types::{DType, TensorType};

/// A body over `domain` with one broadcast load per operand, in order.
pub(crate) fn broadcast_body(inputs: &[TensorType], domain: &[usize]) -> (Body, Vec<ScalarId>) {
    let mut body = Body::new();
    let loads =
        inputs.iter().enumerate().map(|(i, t)| body.load(i, t, Access::broadcast(&t.dims, domain))).collect();
    (body, loads)
}

/// An integer as an element of an integer dtype has it.
pub(crate) fn wrapped(dtype: DType, x: i64) -> f64 {
    if dtype == DType::U32 { f64::from(x as u32) } else { f64::from(x as i32) }
}

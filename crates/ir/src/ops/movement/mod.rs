//! Views: operations that move elements without changing them. Each lowers to a map with a single load.

mod concat;
mod expand;
mod pad;
mod permute;
mod reshape;
mod slice;

pub(crate) use concat::Concat;
pub(crate) use expand::Expand;
pub(crate) use pad::Pad;
pub(crate) use permute::Permute;
pub(crate) use reshape::Reshape;
pub(crate) use slice::Slice;

use super::{Lowering, Signature};
use crate::index::Access;
use crate::loops::Body;

/// A map whose body is one load of operand 0.
fn view(io: &Signature<'_>, access: Access) -> Lowering {
    io.map(Body::of_load(0, &io.inputs[0], access))
}

//! Optimizer updates: pointwise maps from a parameter, its gradient and its moments to their next values.
//!
//! They are made in the update region by [`crate::optimizer::attach`] and have no gradient. Every update of one optimizer is
//! the same body over the parameter's own dimensions with every tensor read in place, so that the updates of all
//! parameters can be merged into one dispatch.

mod adam;
mod sgd;

pub(crate) use adam::Adam;
pub(crate) use sgd::Sgd;

use super::Signature;
use crate::index::Access;
use crate::loops::Body;
use crate::scalar::ScalarId;
use crate::types::TensorType;

/// Checks a parameter with tensors of its shape, then scalars, all `f32`.
fn check(inputs: &[TensorType], names: &[&str], tensors: usize) -> Result<TensorType, String> {
    let parameter = TensorType::f32(inputs[0].dims.clone());
    let scalar = TensorType::f32([]);
    for (i, (ty, name)) in inputs.iter().zip(names).enumerate() {
        let wanted = if i < tensors { &parameter } else { &scalar };
        if ty != wanted {
            return Err(format!("the {name} must be {wanted}, it is {ty}"));
        }
    }
    Ok(parameter)
}

/// Checks that an attribute is finite and in `0..end`.
fn in_range(name: &str, x: f64, end: f64) -> Result<(), String> {
    if x >= 0.0 && x < end { Ok(()) } else { Err(format!("{name} must be in 0..{end}, it is {x}")) }
}

/// A body that reads the first `tensors` operands in place and the others as scalars.
fn body(io: &Signature<'_>, tensors: usize) -> (Body, Vec<ScalarId>) {
    let mut body = Body::new();
    let load = |(i, t): (usize, &TensorType)| {
        body.load(i, t, Access::identity(if i < tensors { t.rank() } else { 0 }))
    };
    let loads = io.inputs.iter().enumerate().map(load).collect();
    (body, loads)
}

/// Why an update has no gradient.
fn no_gradient() -> Result<(), String> {
    Err("an optimizer update cannot be differentiated".into())
}

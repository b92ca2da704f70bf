//! Repetition along axes of extent 1.

use super::view;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::Access;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Each `(axis, count)`: the axis of extent 1 gets extent `count`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Expand {
    pub(crate) axes: Vec<(usize, usize)>,
}

impl Rule for Expand {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        let mut dims = x.dims.clone();
        for &(axis, count) in &self.axes {
            match x.dims.get(axis) {
                Some(1) => dims[axis] = count,
                Some(d) => return Err(format!("axis {axis} of {x} has extent {d}, only 1 can be expanded")),
                None => return Err(format!("axis {axis} of {x} does not exist")),
            }
        }
        Ok(vec![TensorType::new(x.dtype, dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let axes: Vec<isize> = self.axes.iter().filter(|a| a.1 > 1).map(|a| a.0 as isize).collect();
        let dy = vjp.grad();
        let dx = if axes.is_empty() { dy } else { vjp.g.sum_keep(dy, &axes) };
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| inputs[0].at_broadcast(p))]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        view(io, Access::broadcast(&io.inputs[0].dims, &io.outputs[0].dims))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        vec![
            (Expand { axes: vec![(0, 7)] }, vec![SampleInput::f32(&[1, 13])]),
            (Expand { axes: vec![(0, 3), (2, 5)] }, vec![SampleInput::f32(&[1, 4, 1])]),
        ]
    }
}

impl Graph {
    /// Repeats along axes of extent 1: each `(axis, count)`.
    #[track_caller]
    pub fn expand(&mut self, x: Value, axes: &[(usize, usize)]) -> Value {
        self.apply(Payload::Expand(Expand { axes: axes.to_vec() }), &[x])
    }

    /// Repeats `x` so that it has exactly these dimensions (right-aligned).
    pub(crate) fn expand_to(&mut self, x: Value, dims: &[usize]) -> Value {
        let from = self.dims(x).to_vec();
        let lead = dims.len().saturating_sub(from.len());
        let inserted: Vec<usize> = (0..lead).collect();
        let x = if lead > 0 { self.insert_axes(x, &inserted) } else { x };
        let from = self.dims(x).to_vec();
        let axes: Vec<(usize, usize)> = (0..dims.len())
            .filter(|&i| from.get(i) == Some(&1) && dims[i] != 1)
            .map(|i| (i, dims[i]))
            .collect();
        if axes.is_empty() { x } else { self.expand(x, &axes) }
    }
}

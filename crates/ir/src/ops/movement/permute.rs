//! Permutation of axes.

use super::view;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Axis i of the result is axis `order[i]` of the operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Permute {
    pub(crate) order: Vec<usize>,
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (i, &o) in order.iter().enumerate() {
        inverse[o] = i;
    }
    inverse
}

impl Rule for Permute {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        if sorted != (0..x.rank()).collect::<Vec<_>>() {
            return Err(format!("{:?} is no permutation of the axes of {x}", self.order));
        }
        Ok(vec![TensorType::new(x.dtype, self.order.iter().map(|&o| x.dims[o]).collect::<Vec<_>>())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dy = vjp.grad();
        let dx = vjp.g.permute(dy, &inverse(&self.order));
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| {
            let mut q = vec![0; p.len()];
            for (i, &o) in self.order.iter().enumerate() {
                q[o] = p[i];
            }
            inputs[0].at(&q)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        view(io, Access::at(inverse(&self.order).into_iter().map(IndexExpr::axis).collect()))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        vec![
            (Permute { order: vec![1, 0] }, vec![SampleInput::f32(&[37, 5])]),
            (Permute { order: vec![2, 0, 3, 1] }, vec![SampleInput::f32(&[2, 3, 5, 4])]),
        ]
    }
}

impl Graph {
    /// Reorders axes: axis i of the result is axis `order[i]` of `x`.
    #[track_caller]
    pub fn permute(&mut self, x: Value, order: &[usize]) -> Value {
        self.apply(Payload::Permute(Permute { order: order.to_vec() }), &[x])
    }

    /// Swaps the last two axes.
    #[track_caller]
    pub fn transpose(&mut self, x: Value) -> Value {
        let rank = self.dims(x).len();
        let mut order: Vec<usize> = (0..rank).collect();
        if rank >= 2 {
            order.swap(rank - 1, rank - 2);
        }
        self.permute(x, &order)
    }
}

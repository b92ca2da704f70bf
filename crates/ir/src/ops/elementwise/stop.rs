//! The identity that no gradient passes.

use super::broadcast_body;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `y = x`, and `dx = 0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct StopGradient {}

impl Rule for StopGradient {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(inputs.to_vec())
    }

    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], _: &[TensorType]) -> Vec<Array<R>> {
        vec![inputs[0].clone()]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = broadcast_body(io.inputs, &io.outputs[0].dims);
        body.output(x[0]);
        io.map(body)
    }

    /// Its derivative is not the derivative of its value, so the finite-difference suite must not see it; it has its own
    /// test beside the autodiff tests.
    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        Vec::new()
    }
}

impl Graph {
    /// `x`, but no gradient flows through it.
    #[track_caller]
    pub fn stop_gradient(&mut self, x: Value) -> Value {
        self.apply(Payload::StopGradient(StopGradient {}), &[x])
    }
}

//! `y = if c { a } else { b }`, elementwise and broadcasting.

use super::broadcast_body;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType, broadcast};
use serde::{Deserialize, Serialize};

/// The operation; it has no attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Select {}

impl Rule for Select {
    fn arity(&self) -> Option<usize> {
        Some(3)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        need_dtype("the condition", &inputs[0], DType::Bool)?;
        need_dtype("the second choice", &inputs[2], inputs[1].dtype)?;
        let dims = broadcast(&inputs[1].dims, &inputs[2].dims).and_then(|d| broadcast(&inputs[0].dims, &d));
        let dims =
            dims.ok_or_else(|| format!("{}, {} and {} do not broadcast", inputs[0], inputs[1], inputs[2]))?;
        Ok(vec![TensorType::new(inputs[1].dtype, dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (c, dy) = (vjp.inputs[0], vjp.grad());
        let zero = vjp.g.scalar(0.0);
        if vjp.wants(1) {
            let d = vjp.g.select(c, dy, zero);
            vjp.set_unbroadcast(1, d);
        }
        if vjp.wants(2) {
            let d = vjp.g.select(c, zero, dy);
            vjp.set_unbroadcast(2, d);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| {
            let chosen = if inputs[0].at_broadcast(p).f64() != 0.0 { 1 } else { 2 };
            inputs[chosen].at_broadcast(p)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = broadcast_body(io.inputs, &io.outputs[0].dims);
        let y = body.expr.select(x[0], x[1], x[2]);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = || Select {};
        vec![
            (s(), vec![SampleInput::bools(&[7, 5]), SampleInput::f32(&[5]), SampleInput::f32(&[7, 1])]),
            (s(), vec![SampleInput::bools(&[1]), SampleInput::f32(&[1]), SampleInput::f32(&[1])]),
        ]
    }
}

impl Graph {
    /// `if c { a } else { b }`, elementwise and broadcasting; the value not chosen may be NaN.
    #[track_caller]
    pub fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        self.apply(Payload::Select(Select {}), &[c, a, b])
    }
}

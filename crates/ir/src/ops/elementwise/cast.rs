//! Conversion of values between dtypes.

use super::broadcast_body;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = x` as another dtype. Float to integer truncates and saturates, NaN gives 0; integers keep their 32 bits; a truth
/// value is 0 or 1, and anything but 0 is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Cast {
    pub(crate) dtype: DType,
}

fn converted(from: DType, to: DType, x: f64) -> f64 {
    match (from, to) {
        (_, DType::F32) => x,
        (DType::F32, DType::I32) => f64::from(x as i32),
        (DType::F32, DType::U32) => f64::from(x as u32),
        (_, DType::I32) => f64::from(x as i64 as i32),
        (_, DType::U32) => f64::from(x as i64 as u32),
        (_, DType::Bool) => f64::from(x != 0.0),
    }
}

impl Rule for Cast {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(vec![TensorType::new(self.dtype, inputs[0].dims.clone())])
    }

    /// The identity between floats; nothing flows through other dtypes.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        if self.dtype == DType::F32 {
            let dy = vjp.grad();
            vjp.set(0, dy);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let from = inputs[0].ty.dtype;
        let convert = |x: &R| x.via(|x| converted(from, self.dtype, x));
        vec![Array { ty: outputs[0].clone(), data: inputs[0].data.iter().map(convert).collect() }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = broadcast_body(io.inputs, &io.outputs[0].dims);
        let y = body.expr.cast(self.dtype, x[0]);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |dtype| Cast { dtype };
        vec![
            (s(DType::I32), vec![SampleInput::uniform(&[3, 41], -9.0, 9.0)]),
            (s(DType::I32), vec![SampleInput::uniform(&[11], -1e10, 1e10)]),
            (s(DType::U32), vec![SampleInput::uniform(&[11], -1e10, 1e10)]),
            (s(DType::Bool), vec![SampleInput::ids(&[23], 2)]),
            (s(DType::F32), vec![SampleInput::ids(&[5, 7], 99)]),
            (s(DType::F32), vec![SampleInput::bools(&[1])]),
            (s(DType::F32), vec![SampleInput::f32(&[9])]),
        ]
    }
}

impl Graph {
    /// `x` as another dtype. Float to integer truncates and saturates, NaN gives 0; between integers the bits stay; truth
    /// values are 0 or 1. A gradient flows from float to float only.
    #[track_caller]
    pub fn cast(&mut self, x: Value, dtype: DType) -> Value {
        self.apply(Payload::Cast(Cast { dtype }), &[x])
    }
}

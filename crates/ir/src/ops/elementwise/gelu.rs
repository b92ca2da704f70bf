//! GELU, the Gaussian error linear unit (Hendrycks and Gimpel 2016), exact and in the tanh form.

use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `0.5 x (1 + erf(x / sqrt 2))`, or `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Gelu {
    pub(crate) tanh: bool,
}

const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

impl Rule for Gelu {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        need_dtype("the operand", &inputs[0], DType::F32)?;
        Ok(vec![inputs[0].clone()])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        vjp.through_expansion(&Payload::Gelu(self.clone()))
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let f = |x: f64| {
            if self.tanh {
                0.5 * x * (1.0 + (SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)).tanh())
            } else {
                0.5 * x * (1.0 + Real::erf(x / std::f64::consts::SQRT_2))
            }
        };
        vec![Array { ty: outputs[0].clone(), data: inputs[0].data.iter().map(|x| x.via(f)).collect() }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        io.expand(|g, v| {
            let x = v[0];
            let inner = if self.tanh {
                let (xx, k) = (g.mul(x, x), g.scalar(0.044_715));
                let (kxx, one) = (g.mul(xx, k), g.scalar(1.0));
                let factor = g.add(kxx, one);
                let cubic = g.mul(x, factor);
                let scaled = g.scale(cubic, SQRT_2_OVER_PI as f32);
                g.tanh(scaled)
            } else {
                let scaled = g.scale(x, std::f32::consts::FRAC_1_SQRT_2);
                g.erf(scaled)
            };
            let one = g.scalar(1.0);
            let sum = g.add(inner, one);
            let half = g.scale(x, 0.5);
            vec![g.mul(half, sum)]
        })
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        [true, false].map(|tanh| (Gelu { tanh }, vec![SampleInput::uniform(&[4, 39], -4.0, 4.0)])).into()
    }
}

impl Graph {
    /// GELU with the exact error function.
    #[track_caller]
    pub fn gelu(&mut self, x: Value) -> Value {
        self.apply(Payload::Gelu(Gelu { tanh: false }), &[x])
    }

    /// GELU in the tanh form.
    #[track_caller]
    pub fn gelu_tanh(&mut self, x: Value) -> Value {
        self.apply(Payload::Gelu(Gelu { tanh: true }), &[x])
    }
}

impl Value {
    /// GELU with the exact error function.
    #[track_caller]
    #[must_use]
    pub fn gelu(self, g: &mut Graph) -> Value {
        g.gelu(self)
    }

    /// GELU in the tanh form.
    #[track_caller]
    #[must_use]
    pub fn gelu_tanh(self, g: &mut Graph) -> Value {
        g.gelu_tanh(self)
    }
}

//! The gradient of attention with respect to the queries.

use super::{Setup, gradient_samples, grouped, heads_first, reference_gradients};
use crate::array::Array;
use crate::loops::AttentionVariant;
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `dq = scale ds k` with `ds = p (dy v^T - delta)`, `p = exp(s - lse)` and s the masked scores (Dao 2023).
///
/// Inputs: q, k, v, dy as q, lse `[B, Hq, Sq]`, delta `[B, Hq, Sq]`, bias if there is one. Result: as q.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct AttentionGradQuery {
    #[serde(flatten)]
    pub(crate) setup: Setup,
}

impl Rule for AttentionGradQuery {
    fn arity(&self) -> Option<usize> {
        Some(6 + usize::from(self.setup.bias))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        self.setup.shape_of_gradient(inputs)?;
        Ok(vec![inputs[0].clone()])
    }

    /// Through primitive operations: second derivatives hold the scores in memory.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        vjp.through(|g, v| {
            let [_, ds] = self.setup.probabilities_and_gradient(g, v);
            let k = heads_first(g, v[1]);
            let sums = grouped(g, ds, k, [false, false]);
            let sums = heads_first(g, sums);
            vec![g.scale(sums, self.setup.scale.get())]
        })
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (q, k, scale) = (inputs[0], inputs[1], f64::from(self.setup.scale.get()));
        let group = q.dims()[2] / k.dims()[2];
        let mut dq = Array::filled(&outputs[0], R::of(0.0));
        reference_gradients(&self.setup, inputs, &mut |[b, i, h, j], _, ds| {
            let (at, row) = (dq.offset(&[b, i, h]), k.row(&[b, j, h / group]));
            dq.data[at..].iter_mut().zip(row).for_each(|(dq, k)| *dq += R::of(scale * ds * k.f64()));
        });
        vec![dq]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        self.setup.lower(AttentionVariant::GradQuery, io)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        gradient_samples().into_iter().map(|(setup, inputs)| (Self { setup }, inputs)).collect()
    }
}

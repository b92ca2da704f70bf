//! The gradients of attention with respect to keys and values.

use super::{Setup, gradient_samples, heads_first, reference_gradients};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::loops::AttentionVariant;
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `dk = scale ds^T q` and `dv = p^T dy`, summed over the query heads that share a key head, with p and ds as in
/// [`AttentionGradQuery`](super::AttentionGradQuery).
///
/// Inputs: q, k, v, dy as q, lse `[B, Hq, Sq]`, delta `[B, Hq, Sq]`, bias if there is one. Results: dk as k, dv as v.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct AttentionGradKeyValue {
    #[serde(flatten)]
    pub(crate) setup: Setup,
}

/// `a^T b` per query head, summed over the heads of each of the `kv_heads` groups: `[B, Sk, Hkv, D]`.
fn summed_groups(g: &mut Graph, a: Value, b: Value, kv_heads: usize) -> Value {
    let b = heads_first(g, b);
    let product = g.matmul_with(a, b, [true, false]);
    let groups = g.split_axis(product, 1, &[kv_heads, 0]);
    let sums = g.sum(groups, &[2]);
    heads_first(g, sums)
}

impl Rule for AttentionGradKeyValue {
    fn arity(&self) -> Option<usize> {
        Some(6 + usize::from(self.setup.bias))
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        self.setup.shape_of_gradient(inputs)?;
        Ok(vec![inputs[1].clone(), inputs[2].clone()])
    }

    /// Through primitive operations: second derivatives hold the scores in memory.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        vjp.through(|g, v| {
            let [p, ds] = self.setup.probabilities_and_gradient(g, v);
            let kv_heads = g.dims(v[1]).get(2).copied().unwrap_or(1);
            let dk = summed_groups(g, ds, v[0], kv_heads);
            let dk = g.scale(dk, self.setup.scale.get());
            vec![dk, summed_groups(g, p, v[3], kv_heads)]
        })
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (q, k, dy, scale) = (inputs[0], inputs[1], inputs[3], f64::from(self.setup.scale.get()));
        let group = q.dims()[2] / k.dims()[2];
        let [mut dk, mut dv] = [0, 1].map(|r| Array::filled(&outputs[r], R::of(0.0)));
        reference_gradients(&self.setup, inputs, &mut |[b, i, h, j], p, ds| {
            let at = dk.offset(&[b, j, h / group]);
            let (q, dy) = (q.row(&[b, i, h]), dy.row(&[b, i, h]));
            dk.data[at..].iter_mut().zip(q).for_each(|(dk, q)| *dk += R::of(scale * ds * q.f64()));
            dv.data[at..].iter_mut().zip(dy).for_each(|(dv, dy)| *dv += R::of(p * dy.f64()));
        });
        vec![dk, dv]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        self.setup.lower(AttentionVariant::GradKeyValue, io)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        gradient_samples().into_iter().map(|(setup, inputs)| (Self { setup }, inputs)).collect()
    }
}

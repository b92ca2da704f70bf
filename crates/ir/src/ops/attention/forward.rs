//! Scaled dot-product attention.

use super::{AttentionGradKeyValue, AttentionGradQuery, Setup, operands, reference_scores};
use crate::array::{Array, each_point};
use crate::graph::{Graph, Value};
use crate::loops::{AttentionMask, AttentionVariant};
use crate::ops::normalize::row_statistics;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `y = softmax(scale q k^T + bias) v` per head, over the keys the mask lets a query see (Vaswani et al. 2017); grouped heads
/// as in Ainslie et al. 2023: query head h uses key head `h / (Hq / Hkv)`.
///
/// Inputs: q `[B, Sq, Hq, D]`, k and v `[B, Sk, Hkv, D]`, bias that broadcasts to `[B, Hq, Sq, Sk]` if there is one. Results:
/// y `[B, Sq, Hq, D]`, lse `[B, Hq, Sq]`, the log-sum-exp of the masked scores. A query that sees no key, or whose scores are all
/// -inf, has y = 0 and lse = -inf and gives zero gradients.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Attention {
    #[serde(flatten)]
    pub(crate) setup: Setup,
}

impl Rule for Attention {
    fn arity(&self) -> Option<usize> {
        Some(3 + usize::from(self.setup.bias))
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let shape = self.setup.shape(inputs)?;
        Ok(vec![inputs[0].clone(), TensorType::f32(shape.of_rows())])
    }

    /// With `delta = sum over D of dy y - dlse` (Dao 2023, section 3.1; dlse only where the loss uses lse): [`AttentionGradQuery`],
    /// [`AttentionGradKeyValue`], and for the bias the gradient of the scores, which then exists in memory.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (dy, y, lse) = (vjp.grad(), vjp.outputs[0], vjp.outputs[1]);
        let product = vjp.g.mul(dy, y);
        let sums = vjp.g.sum(product, &[-1]);
        let mut delta = vjp.g.permute(sums, &[0, 2, 1]);
        if let Some(u) = vjp.upstream[1] {
            delta = vjp.g.sub(delta, u);
        }
        let mut inputs = vjp.inputs[..3].to_vec();
        inputs.extend([dy, lse, delta]);
        inputs.extend(vjp.inputs.get(3));
        let setup = self.setup;
        if vjp.wants(0) {
            let dq = vjp.g.apply(Payload::AttentionGradQuery(AttentionGradQuery { setup }), &inputs);
            vjp.set(0, dq);
        }
        if vjp.wants(1) || vjp.wants(2) {
            let op = Payload::AttentionGradKeyValue(AttentionGradKeyValue { setup });
            let both = vjp.g.apply_all(op, &inputs);
            (1..3).filter(|i| vjp.wanted[*i]).for_each(|i| vjp.set(i, both[i - 1]));
        }
        if setup.bias && vjp.wants(3) {
            let [_, ds] = setup.probabilities_and_gradient(vjp.g, &inputs);
            vjp.set_unbroadcast(3, ds);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (q, v) = (inputs[0], inputs[2]);
        let group = q.dims()[2] / v.dims()[2];
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        let mut lse = Array::filled(&outputs[1], R::of(0.0));
        each_point(&q.dims()[..3], |at| {
            let [b, i, h] = [at[0], at[1], at[2]];
            let scores = reference_scores(&self.setup, inputs, [b, i, h]);
            let (m, total) = row_statistics(scores.iter().copied());
            let mut sums = vec![0.0; q.dims()[3]];
            for (j, score) in scores.iter().enumerate().filter(|(_, s)| **s != f64::NEG_INFINITY) {
                let e = (score - m).exp();
                let row = v.row(&[b, j, h / group]);
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += e * x.f64());
            }
            let at = y.offset(&[b, i, h]);
            y.data[at..].iter_mut().zip(&sums).for_each(|(y, sum)| *y = R::of(sum / total));
            let at = lse.offset(&[b, h, i]);
            let none = scores.iter().all(|s| *s == f64::NEG_INFINITY);
            lse.data[at] = R::of(if none { f64::NEG_INFINITY } else { m + total.ln() });
        });
        vec![y, lse]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        self.setup.lower(AttentionVariant::Forward, io)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (full, causal, f) = (AttentionMask::FULL, AttentionMask::CAUSAL, SampleInput::f32);
        let sample = |mask, extents: [usize; 6], bias: Option<SampleInput>| {
            let scale = (extents[5] as f32).sqrt().recip().into();
            let mut inputs = operands(extents);
            let setup = Setup { scale, mask, bias: bias.is_some() };
            inputs.extend(bias);
            (Attention { setup }, inputs)
        };
        let local = AttentionMask { causal: false, window: Some(2) };
        let far = vec![
            SampleInput::uniform(&[1, 2, 1, 8], -6.0, 6.0),
            SampleInput::uniform(&[1, 5, 1, 8], -6.0, 6.0),
            f(&[1, 5, 1, 8]),
        ];
        vec![
            sample(full, [1, 1, 1, 1, 1, 1], None),
            sample(full, [2, 3, 1, 2, 17, 32], None),
            sample(causal, [1, 8, 1, 2, 2, 64], None),
            sample(full, [1, 3, 3, 3, 5, 72], Some(f(&[3, 1]))),
            sample(causal, [2, 2, 1, 2, 3, 80], Some(f(&[2, 1, 1, 3]))),
            sample(full, [1, 2, 2, 1, 2, 128], None),
            sample(full, [1, 1, 1, 2, 2, 256], None),
            sample(causal, [1, 3, 1, 50, 50, 6], None),
            sample(AttentionMask::sliding_window(5), [2, 2, 1, 17, 23, 4], None),
            sample(local, [1, 2, 2, 17, 17, 3], Some(f(&[17, 17]))),
            (Attention { setup: Setup { scale: 0.5.into(), mask: full, bias: false } }, far),
        ]
    }
}

/// What attention takes besides queries, keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AttentionOptions {
    /// Which keys a query sees; all by default.
    pub mask: AttentionMask,
    /// Factor of the products; `D ^ -0.5` by default.
    pub scale: Option<f32>,
    /// Added to the scores; must broadcast to `[B, Hq, Sq, Sk]`. -inf hides a key.
    pub bias: Option<Value>,
}

impl AttentionOptions {
    /// A query sees the keys up to its own position; the last query stands at the last key.
    #[must_use]
    pub fn causal() -> Self {
        Self { mask: AttentionMask::CAUSAL, ..Self::default() }
    }
}

impl Graph {
    /// `softmax(scale q k^T + bias) v` per head: q `[B, Sq, Hq, D]`, k and v `[B, Sk, Hkv, D]`, result `[B, Sq, Hq, D]`. Heads may
    /// be grouped: query head h uses key head `h / (Hq / Hkv)`. A query that sees nothing gives zeros and zero gradients.
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &mut self,
        q: Value,
        k: Value,
        v: Value,
        options: &AttentionOptions,
    ) -> Value {
        self.attention_with_lse([q, k, v], options).0
    }

    /// As [`Graph::scaled_dot_product_attention`], and the log-sum-exp of the scores `[B, Hq, Sq]`.
    #[track_caller]
    pub fn attention_with_lse(&mut self, qkv: [Value; 3], options: &AttentionOptions) -> (Value, Value) {
        let width = self.dims(qkv[0]).last().copied().unwrap_or(1);
        let scale = options.scale.unwrap_or_else(|| (1.0 / (width as f64).sqrt()) as f32).into();
        let setup = Setup { scale, mask: options.mask, bias: options.bias.is_some() };
        let mut inputs = qkv.to_vec();
        inputs.extend(options.bias);
        let all = self.apply_all(Payload::Attention(Attention { setup }), &inputs);
        (all[0], all[1])
    }
}

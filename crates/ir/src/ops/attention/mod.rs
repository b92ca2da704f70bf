//! Scaled dot-product attention with its gradients, and rotary position embedding.
//!
//! Queries are `[B, Sq, Hq, D]`, keys and values `[B, Sk, Hkv, D]`, the result is `[B, Sq, Hq, D]`: what a projection gives,
//! `[B * S, H * D]` or `[B, S, H * D]`, is this tensor with its axes split, and what the output projection takes is it with
//! its axes merged, so neither side is copied or permuted. Log-sum-exps are `[B, Hq, Sq]`, and biases broadcast to
//! `[B, Hq, Sq, Sk]`, as scores do elsewhere.
//!
//! All of it lowers to attention loops (`loops::Attention`), which never hold a tensor of the size of the scores.

mod forward;
mod grad_key_value;
mod grad_query;
mod rotary;
#[cfg(test)]
mod tests;

pub(crate) use forward::Attention;
pub use forward::AttentionOptions;
pub(crate) use grad_key_value::AttentionGradKeyValue;
pub(crate) use grad_query::AttentionGradQuery;
pub(crate) use rotary::Rotary;
pub use rotary::{RotaryStyle, rotary_table};

use super::rule::need_dtype;
use super::{Lowering, SampleInput, Signature};
use crate::array::Array;
use crate::attr::F32;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr, Store};
use crate::loops::{self, AttentionMask, AttentionShape, AttentionVariant, Body, LoopKind, Saved};
use crate::real::Real;
use crate::types::{DType, TensorType, broadcast};
use serde::{Deserialize, Serialize};

/// The attributes of attention and its gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) scale: F32,
    pub(crate) mask: AttentionMask,
    /// Whether the last operand is added to the scores.
    pub(crate) bias: bool,
}

/// Axes of queries, keys, values and results that are batch, heads, sequence and width.
const ORDER: [usize; 4] = [0, 2, 1, 3];

impl Setup {
    /// The extents for operands q, k, v, ..., and the bias last where there is one.
    fn shape(&self, inputs: &[TensorType]) -> Result<AttentionShape, String> {
        let (q, k, v) = (&inputs[0], &inputs[1], &inputs[2]);
        for (what, x) in [("the query", q), ("the key", k), ("the value", v)] {
            need_dtype(what, x, DType::F32)?;
            if x.rank() != 4 {
                return Err(format!("{what} must be [batch, sequence, heads, width], it is {x}"));
            }
        }
        if k != v {
            return Err(format!("key and value must have the same type, they are {k} and {v}"));
        }
        let [batch, queries, heads, width] = [0, 1, 2, 3].map(|i| q.dims[i]);
        let [kv_batch, keys, kv_heads, kv_width] = [0, 1, 2, 3].map(|i| k.dims[i]);
        if (batch, width) != (kv_batch, kv_width) {
            return Err(format!("query {q} and key {k} must have the same batch and width"));
        }
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(format!("{heads} query heads are no multiple of {kv_heads} key heads"));
        }
        if self.mask.window == Some(0) {
            return Err("a window of 0 keys sees nothing, the least is 1".into());
        }
        if !self.scale.get().is_finite() {
            return Err(format!("scale must be finite, it is {}", self.scale.get()));
        }
        let shape = AttentionShape { batch, heads, kv_heads, queries, keys, width };
        if let Some(bias) = inputs.last().filter(|_| self.bias) {
            need_dtype("the bias", bias, DType::F32)?;
            if broadcast(&bias.dims, &shape.of_scores()) != Some(shape.of_scores()) {
                return Err(format!("the bias is {bias}, the scores it is added to {:?}", shape.of_scores()));
            }
        }
        Ok(shape)
    }

    /// As [`Setup::shape`], for a gradient with operands q, k, v, dy, lse, delta and the bias.
    fn shape_of_gradient(&self, inputs: &[TensorType]) -> Result<AttentionShape, String> {
        let shape = self.shape(inputs)?;
        let rows = TensorType::f32(shape.of_rows());
        for (what, x, wanted) in [
            ("the gradient of the result", &inputs[3], &inputs[0]),
            ("the log-sum-exp", &inputs[4], &rows),
            ("delta", &inputs[5], &rows),
        ] {
            if x != wanted {
                return Err(format!("{what} must be {wanted}, it is {x}"));
            }
        }
        Ok(shape)
    }

    /// The loop with these operands.
    fn lower(&self, variant: AttentionVariant, io: &Signature<'_>) -> Lowering {
        let Ok(shape) = self.shape(io.inputs) else { return Lowering::Leaf };
        let coords: Vec<IndexExpr> = ORDER.iter().map(|a| IndexExpr::axis(*a)).collect();
        let load = |i: usize| Body::of_load(i, &io.inputs[i], Access::at(coords.clone()));
        let per_row = |i: usize| Body::of_load(i, &io.inputs[i], Access::identity(3));
        let last = io.inputs.len() - 1;
        let bias = || {
            let ty = &io.inputs[last];
            Body::of_load(last, ty, Access::broadcast(&ty.dims, &shape.of_scores()))
        };
        let is_gradient = variant != AttentionVariant::Forward;
        let store = |result: usize| match (variant, result) {
            (AttentionVariant::Forward, 1) => Store::identity(1, 3),
            _ => Store { result, coords: coords.clone() },
        };
        io.loop_of(LoopKind::Attention(Box::new(loops::Attention {
            variant,
            shape,
            scale: self.scale,
            mask: self.mask,
            q: load(0),
            k: load(1),
            v: load(2),
            bias: self.bias.then(bias),
            saved: is_gradient.then(|| Saved { dy: load(3), lse: per_row(4), delta: per_row(5) }),
            stores: (0..io.outputs.len()).map(store).collect(),
        })))
    }

    /// The scores `[B, Hq, Sq, Sk]` in primitive operations; -inf where a query does not see a key.
    fn scores(&self, g: &mut Graph, v: &[Value]) -> Value {
        let (q, k) = (heads_first(g, v[0]), heads_first(g, v[1]));
        let products = grouped(g, q, k, [false, true]);
        let mut scores = g.scale(products, self.scale.get());
        if let Some(bias) = v.last().filter(|_| self.bias) {
            scores = g.add(scores, *bias);
        }
        if self.mask == AttentionMask::FULL {
            return scores;
        }
        let [queries, keys] = [2, 3].map(|a| g.dims(scores)[a]);
        let mut words = vec![0; queries * keys];
        for i in 0..queries {
            self.mask.keys(i, [queries, keys]).for_each(|j| words[i * keys + j] = 1);
        }
        let seen = g.constant_words(words.into(), TensorType::new(DType::Bool, [queries, keys]));
        let nothing = g.scalar(f32::NEG_INFINITY);
        g.select(seen, scores, nothing)
    }

    /// Probabilities and gradient of the scores, from the operands of a gradient, in primitive operations.
    fn probabilities_and_gradient(&self, g: &mut Graph, v: &[Value]) -> [Value; 2] {
        let scores = self.scores(g, v);
        let (lse, delta, lowest) = (g.per_row(v[4]), g.per_row(v[5]), g.scalar(f32::MIN));
        let shift = g.maximum(lse, lowest);
        let shifted = g.sub(scores, shift);
        let p = g.exp(shifted);
        let (dy, values) = (heads_first(g, v[3]), heads_first(g, v[2]));
        let dp = grouped(g, dy, values, [false, true]);
        let centred = g.sub(dp, delta);
        [p, g.mul(p, centred)]
    }
}

/// `[B, S, H, D]` to `[B, H, S, D]` or back.
fn heads_first(g: &mut Graph, x: Value) -> Value {
    g.permute(x, &ORDER)
}

/// The product of something per query head `[B, Hq, ..]` with something per key head `[B, Hkv, ..]`: `[B, Hq, ..]`.
fn grouped(g: &mut Graph, a: Value, b: Value, transpose: [bool; 2]) -> Value {
    let kv_heads = g.dims(b).get(1).copied().unwrap_or(1);
    let (a, b) = (g.split_axis(a, 1, &[kv_heads, 0]), g.insert_axes(b, &[2]));
    let product = g.matmul_with(a, b, transpose);
    g.merge_axes(product, 1, 2)
}

/// A sample of operands q, k, v with these extents (batch, query heads, key heads, queries, keys, width).
fn operands([b, hq, hkv, sq, sk, d]: [usize; 6]) -> Vec<SampleInput> {
    let f = SampleInput::f32;
    vec![f(&[b, sq, hq, d]), f(&[b, sk, hkv, d]), f(&[b, sk, hkv, d])]
}

/// Samples of gradients: their operands with log-sum-exps that occur, and a bias where the setup has one.
fn gradient_samples() -> Vec<(Setup, Vec<SampleInput>)> {
    let setup = |scale: f32, mask, bias| Setup { scale: scale.into(), mask, bias };
    let sample = |setup: Setup, e: [usize; 6], bias: &[usize]| {
        let (mut inputs, [b, hq, _, sq, ..]) = (operands(e), e);
        let rows = [b, hq, sq];
        inputs.extend([inputs[0].clone(), SampleInput::uniform(&rows, 1.0, 3.0), SampleInput::f32(&rows)]);
        inputs.extend(setup.bias.then(|| SampleInput::f32(bias)));
        (setup, inputs)
    };
    let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
    vec![
        sample(setup(1.0, full, false), [1, 1, 1, 1, 1, 1], &[]),
        sample(setup(0.3, full, true), [2, 3, 1, 2, 5, 3], &[3, 1, 5]),
        sample(setup(0.5, causal, false), [1, 2, 2, 17, 17, 5], &[]),
        sample(setup(0.1, AttentionMask::sliding_window(3), false), [1, 8, 1, 3, 7, 72], &[]),
    ]
}

fn dot<R: Real>(x: &[R], y: &[R]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x.f64() * y.f64()).sum()
}

/// The reference at one query: scores of all keys, -inf where not seen.
fn reference_scores<R: Real>(setup: &Setup, inputs: &[&Array<R>], [b, i, h]: [usize; 3]) -> Vec<f64> {
    let (q, k) = (inputs[0], inputs[1]);
    let (queries, keys) = (q.dims()[1], k.dims()[1]);
    let position = (i + keys) as i64 - queries as i64;
    let key_head = h / (q.dims()[2] / k.dims()[2]);
    let score = |j: usize| {
        let ahead = j as i64 - position;
        let outside = setup.mask.window.is_some_and(|w| ahead.abs() >= w as i64);
        if outside || (setup.mask.causal && ahead > 0) {
            return f64::NEG_INFINITY;
        }
        let bias = inputs.last().filter(|_| setup.bias);
        dot(q.row(&[b, i, h]), k.row(&[b, j, key_head])) * f64::from(setup.scale.get())
            + bias.map_or(0.0, |x| x.at_broadcast(&[b, h, i, j][..]).f64())
    };
    (0..keys).map(score).collect()
}

/// The reference of a gradient: calls `f(batch, query, head, key, probability, gradient of the score)` for every pair
/// of which the score is not -inf.
fn reference_gradients<R: Real>(
    setup: &Setup,
    inputs: &[&Array<R>],
    f: &mut dyn FnMut([usize; 4], f64, f64),
) {
    let (q, v, dy) = (inputs[0], inputs[2], inputs[3]);
    let group = q.dims()[2] / v.dims()[2];
    crate::array::each_point(&q.dims()[..3], |at| {
        let [b, i, h] = [at[0], at[1], at[2]];
        let (lse, delta) = (inputs[4].at(&[b, h, i]).f64(), inputs[5].at(&[b, h, i]).f64());
        for (j, score) in reference_scores(setup, inputs, [b, i, h]).into_iter().enumerate() {
            if score == f64::NEG_INFINITY {
                continue;
            }
            let p = (score - lse).exp();
            f([b, i, h, j], p, p * (dot(dy.row(&[b, i, h]), v.row(&[b, j, h / group])) - delta));
        }
    });
}

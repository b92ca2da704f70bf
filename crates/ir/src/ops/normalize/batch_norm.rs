//! Batch normalisation over the channels of `[N, C, ..]` (Ioffe and Szegedy 2015): training, inference, and folded into the
//! convolution before it.

use super::{Frame, Norm, NormGrad, Split};
use crate::graph::{Graph, Value};
use crate::ops::Payload;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// One row per channel: of `x [N, C, ..]` statistics and weights are `[C]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Channels {}

impl Split for Channels {
    const VARIANCE: bool = true;

    fn frame(&self, x: &TensorType) -> Result<Frame, String> {
        let frame = Frame::channels(x)?;
        match frame.count() {
            1 => Err(format!("the variance of a channel needs more than one value, {x} has 1 per channel")),
            _ => Ok(frame),
        }
    }

    fn gradient(op: NormGrad<Self>) -> Payload {
        Payload::BatchNormGrad(op)
    }

    fn shapes() -> Vec<(Self, Vec<usize>)> {
        [vec![2, 1], vec![37, 5], vec![3, 4, 5, 7], vec![1, 2, 33]].map(|dims| (Channels {}, dims)).into()
    }
}

impl Graph {
    /// Batch norm of `x [N, C, ..]` with the statistics of this batch and `gamma [C]`, `beta [C]`: the result, and mean and
    /// *unbiased* variance of each channel `[C]`, which running averages take (the result uses the biased one).
    ///
    /// Recorded as errors: fewer than two axes, one value per channel, weights of another size, an eps that is negative or
    /// not finite.
    #[track_caller]
    pub fn batch_norm(&mut self, x: Value, [gamma, beta]: [Value; 2], eps: f32) -> [Value; 3] {
        let op = Norm { eps: eps.into(), split: Channels {} };
        let all = self.apply_all(Payload::BatchNorm(op), &[x, gamma, beta]);
        [all[0], all[1], all[3]]
    }

    /// Batch norm of `x [N, C, ..]` with `[mean, variance]` that are known, each `[C]`.
    #[track_caller]
    pub fn batch_norm_inference(
        &mut self,
        x: Value,
        [gamma, beta]: [Value; 2],
        statistics: [Value; 2],
        eps: f32,
    ) -> Value {
        if let Some(poison) = self.refuse_channels(x, 1, &[gamma, beta, statistics[0], statistics[1]]) {
            return poison;
        }
        let [scale, shift] = self.batch_norm_affine([gamma, beta], statistics, eps);
        let after: Vec<usize> = (1..self.dims(x).len().saturating_sub(1)).collect();
        let (scale, shift) = (self.insert_axes(scale, &after), self.insert_axes(shift, &after));
        let scaled = self.mul(x, scale);
        self.add(scaled, shift)
    }

    /// Weight `[C, ..]` and bias `[C]` of a convolution that gives what the one with this weight and bias gives after
    /// batch norm with `[mean, variance]` that are known, each `[C]`.
    #[track_caller]
    pub fn fold_batch_norm(
        &mut self,
        [weight, bias]: [Value; 2],
        [gamma, beta]: [Value; 2],
        statistics: [Value; 2],
        eps: f32,
    ) -> [Value; 2] {
        let vectors = [bias, gamma, beta, statistics[0], statistics[1]];
        if let Some(poison) = self.refuse_channels(weight, 0, &vectors) {
            return [poison; 2];
        }
        let [scale, shift] = self.batch_norm_affine([gamma, beta], statistics, eps);
        let after: Vec<usize> = (1..self.dims(weight).len().max(1)).collect();
        let per_output = self.insert_axes(scale, &after);
        let (weight, bias) = (self.mul(weight, per_output), self.mul(bias, scale));
        [weight, self.add(bias, shift)]
    }

    /// Records an error unless each of `vectors` has one element per channel, along `axis` of `x`: they would broadcast.
    #[track_caller]
    fn refuse_channels(&mut self, x: Value, axis: usize, vectors: &[Value]) -> Option<Value> {
        if let Some(v) = [x].iter().chain(vectors).find(|v| self.ty(**v).is_none()) {
            // Says what is wrong with a value that is none of this graph.
            return Some(self.mul(x, *v));
        }
        let ty = self.ty(x)?;
        let wanted = ty.dims.get(axis).map(|c| TensorType::f32([*c]));
        let bad = *vectors.iter().find(|v| self.ty(**v) != wanted.as_ref())?;
        let reason =
            format!("takes one element per channel, axis {axis} of {ty}, given {:?}", self.dims(bad));
        Some(self.fail("batch_norm", &[x, bad], reason))
    }

    /// Batch norm as `scale x + shift`: `scale = gamma / sqrt(variance + eps)`, `shift = beta - mean scale`.
    #[track_caller]
    fn batch_norm_affine(
        &mut self,
        [gamma, beta]: [Value; 2],
        [mean, variance]: [Value; 2],
        eps: f32,
    ) -> [Value; 2] {
        let eps = self.scalar(eps);
        let shifted = self.add(variance, eps);
        let rstd = self.rsqrt(shifted);
        let scale = self.mul(gamma, rstd);
        let moved = self.mul(mean, scale);
        [scale, self.sub(beta, moved)]
    }
}

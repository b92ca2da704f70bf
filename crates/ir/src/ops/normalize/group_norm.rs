//! Group normalisation (Wu and He 2018).

use super::{Frame, Norm, NormGrad, Split};
use crate::graph::{Graph, Value};
use crate::ops::Payload;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Rows of one sample and `C / groups` consecutive channels: of `x [N, C, ..]` the statistics are `[N, groups]` and the
/// weights `[C]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Groups {
    groups: usize,
}

impl Split for Groups {
    fn frame(&self, x: &TensorType) -> Result<Frame, String> {
        Frame::groups(x, self.groups)
    }

    fn gradient(op: NormGrad<Self>) -> Payload {
        Payload::GroupNormGrad(op)
    }

    fn shapes() -> Vec<(Self, Vec<usize>)> {
        let s = |groups, dims: &[usize]| (Groups { groups }, dims.to_vec());
        vec![s(1, &[1, 1]), s(2, &[3, 4]), s(3, &[2, 6, 5, 7]), s(5, &[1, 5, 3]), s(1, &[2, 3, 11])]
    }
}

impl Graph {
    /// Group norm of `x [N, C, ..]`: each sample's channels in `groups` groups of neighbours, normalised over a group's
    /// channels and all further axes, then `gamma [C]` and `beta [C]`. One group per channel is instance norm.
    ///
    /// Recorded as errors: fewer than two axes, channels that do not divide into the groups, weights of another size, an
    /// eps that is negative or not finite.
    #[track_caller]
    pub fn group_norm(&mut self, x: Value, groups: usize, weights: [Value; 2], eps: f32) -> Value {
        let [gamma, beta] = weights;
        let op = Norm { eps: eps.into(), split: Groups { groups } };
        self.apply(Payload::GroupNorm(op), &[x, gamma, beta])
    }
}

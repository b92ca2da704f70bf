//! Layer normalisation over the last axis (Ba, Kiros and Hinton 2016).

use super::{Frame, Norm, NormGrad, Split};
use crate::graph::{Graph, Value};
use crate::ops::Payload;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Rows along the last axis: of `x [.., C]` the statistics are `[..]` and the weights `[C]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Last {}

impl Split for Last {
    fn frame(&self, x: &TensorType) -> Result<Frame, String> {
        Frame::last(x)
    }

    fn gradient(op: NormGrad<Self>) -> Payload {
        Payload::LayerNormGrad(op)
    }

    fn shapes() -> Vec<(Self, Vec<usize>)> {
        [vec![1], vec![5, 67], vec![2, 3, 8], vec![2, 33]].map(|dims| (Last {}, dims)).into()
    }
}

impl Graph {
    /// Layer norm of `x [.., C]` over its last axis with `gamma [C]` and `beta [C]`; biased variance, as everywhere.
    #[track_caller]
    pub fn layer_norm(&mut self, x: Value, gamma: Value, beta: Value, eps: f32) -> Value {
        self.apply(Payload::LayerNorm(Norm { eps: eps.into(), split: Last {} }), &[x, gamma, beta])
    }
}

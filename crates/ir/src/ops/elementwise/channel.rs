//! One number per channel, added or multiplied.

use crate::graph::{Graph, Value};
use crate::ops::Payload;
use crate::scalar::BinaryFn;

impl Graph {
    /// `x [N, C, ..]` with `c [C]` along its second axis.
    #[track_caller]
    fn by_channel(&mut self, op: &str, f: BinaryFn, x: Value, c: Value) -> Value {
        let (Some(xt), Some(ct)) = (self.ty(x).cloned(), self.ty(c).cloned()) else {
            return self.apply(Payload::Binary(super::Binary { f }), &[x, c]);
        };
        if xt.dims.get(1).map(std::slice::from_ref) != Some(ct.dims.as_slice()) {
            let e = format!("{ct} must have one element per channel, the second axis of {xt}");
            return self.fail(op, &[x, c], e);
        }
        let inserted: Vec<usize> = (1..xt.rank() - 1).collect();
        let spread = if inserted.is_empty() { c } else { self.insert_axes(c, &inserted) };
        self.apply(Payload::Binary(super::Binary { f }), &[x, spread])
    }

    /// `x [N, C, ..]` plus `bias [C]` of its channel.
    #[track_caller]
    pub fn channel_bias(&mut self, x: Value, bias: Value) -> Value {
        self.by_channel("channel_bias", BinaryFn::Add, x, bias)
    }

    /// `x [N, C, ..]` times `scale [C]` of its channel.
    #[track_caller]
    pub fn channel_scale(&mut self, x: Value, scale: Value) -> Value {
        self.by_channel("channel_scale", BinaryFn::Mul, x, scale)
    }

    /// `x [.., C]` times `gamma [C]`: LayerScale (Touvron et al. 2021), where features are the last axis.
    #[track_caller]
    pub fn layer_scale(&mut self, x: Value, gamma: Value) -> Value {
        if let (Some(xt), Some(gt)) = (self.ty(x), self.ty(gamma))
            && (gt.rank() != 1 || xt.dims.last() != gt.dims.first())
        {
            let e = format!("{gt} must have one element per feature, the last axis of {xt}");
            return self.fail("layer_scale", &[x, gamma], e);
        }
        self.mul(x, gamma)
    }
}

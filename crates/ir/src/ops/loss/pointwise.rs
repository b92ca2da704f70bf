//! Losses that compare two tensors element by element, as compositions with PyTorch's meaning.
//!
//! The shapes must be equal: broadcasting here hides mistakes.

use super::Reduction;
use crate::graph::{Graph, Value};

impl Graph {
    /// The same value again, or the error that the types of the two differ.
    #[track_caller]
    pub(super) fn like(&mut self, op: &str, a: Value, b: Value) -> Value {
        if let (Some(x), Some(y)) = (self.ty(a), self.ty(b))
            && x != y
        {
            let e = format!("{x} and {y} differ: this loss needs equal types");
            return self.fail(op, &[a, b], e);
        }
        a
    }

    /// `average((a - b)^2)` over all elements: a scalar.
    #[track_caller]
    pub fn mse(&mut self, a: Value, b: Value) -> Value {
        let a = self.like("mse", a, b);
        let d = self.sub(a, b);
        let dd = self.mul(d, d);
        self.mean_all(dd)
    }

    /// `|a - b|` of every element; derivative 0 where they are equal.
    #[track_caller]
    pub fn l1_loss(&mut self, a: Value, b: Value, reduction: Reduction) -> Value {
        let a = self.like("l1_loss", a, b);
        let d = self.sub(a, b);
        let size = self.abs(d);
        self.reduced(size, reduction)
    }

    /// With `d = |a - b|`: `d^2 / 2` up to `delta`, above `delta (d - delta / 2)` (Huber 1964). `delta` must be above 0.
    #[track_caller]
    pub fn huber_loss(&mut self, a: Value, b: Value, delta: f32, reduction: Reduction) -> Value {
        if delta <= 0.0 || delta.is_nan() {
            return self.fail("huber_loss", &[a, b], format!("delta must be above 0, it is {delta}"));
        }
        let a = self.like("huber_loss", a, b);
        let d = self.sub(a, b);
        // With m = min(d, delta) both cases are m (d - m / 2): nothing overflows in a case that is not taken.
        let (d, most) = (self.abs(d), self.scalar(delta));
        let m = self.minimum(d, most);
        let half = self.scale(m, 0.5);
        let rest = self.sub(d, half);
        let loss = self.mul(m, rest);
        self.reduced(loss, reduction)
    }

    /// With `d = |a - b|`: `d^2 / (2 beta)` up to `beta`, above `d - beta / 2`; for beta 0 it is [`Graph::l1_loss`].
    #[track_caller]
    pub fn smooth_l1_loss(&mut self, a: Value, b: Value, beta: f32, reduction: Reduction) -> Value {
        if beta == 0.0 {
            return self.l1_loss(a, b, reduction);
        }
        let loss = self.huber_loss(a, b, beta, reduction);
        self.scale(loss, 1.0 / beta)
    }

    /// Kullback-Leibler divergence `p (log p - q)` of every element, from log-probabilities `q` and target probabilities
    /// `p`; 0 where p is 0. The mean is over all elements: for the divergence per distribution sum and divide by their
    /// number (PyTorch's `batchmean`).
    #[track_caller]
    pub fn kl_div(&mut self, q: Value, p: Value, reduction: Reduction) -> Value {
        let q = self.like("kl_div", q, p);
        let (zero, one) = (self.scalar(0.0), self.scalar(1.0));
        let absent = self.equal(p, zero);
        // What is not chosen must be finite: its derivative would be 0 times infinity.
        let present = self.select(absent, one, p);
        let log = self.log(present);
        let gap = self.sub(log, q);
        let gap = self.select(absent, zero, gap);
        let loss = self.mul(p, gap);
        self.reduced(loss, reduction)
    }

    /// Binary cross-entropy of logits `x` with targets `t` in 0..1, stable for logits of any size:
    /// `(1 - t) x + (1 + (pos_weight - 1) t) log(1 + e^-x)`. `pos_weight` broadcasts against the logits.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(
        &mut self,
        x: Value,
        t: Value,
        pos_weight: Option<Value>,
        reduction: Reduction,
    ) -> Value {
        let x = self.like("binary_cross_entropy_with_logits", x, t);
        let one = self.scalar(1.0);
        let (absent, minus) = (self.sub(one, t), self.neg(x));
        let (linear, mut soft) = (self.mul(absent, x), self.softplus(minus));
        if let Some(weight) = pos_weight {
            let extra = self.sub(weight, one);
            let extra = self.mul(extra, t);
            let factor = self.add(extra, one);
            soft = self.mul(factor, soft);
        }
        let loss = self.add(linear, soft);
        let loss = if pos_weight.is_some() { self.like("pos_weight", loss, x) } else { loss };
        self.reduced(loss, reduction)
    }
}

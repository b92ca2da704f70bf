//! Cross-entropy as users call it: rows or mean, ids that are ignored, smoothed labels, probabilities as targets.

use super::{CrossEntropy, Reduction};
use crate::graph::{Graph, Value};
use crate::ops::Payload;
use crate::types::{DType, TensorType};

impl Graph {
    /// Cross-entropy of every row of `logits [.., C]` with its class id: `[..]`; 0 where the id is `ignore`.
    #[track_caller]
    pub fn cross_entropy_rows(&mut self, logits: Value, ids: Value, ignore: Option<i32>) -> Value {
        self.cross_entropy_rows_smoothed(logits, ids, ignore, 0.0)
    }

    /// The same with the target `(1 - label_smoothing) [class = id] + label_smoothing / C`, `label_smoothing` in 0..=1.
    #[track_caller]
    pub fn cross_entropy_rows_smoothed(
        &mut self,
        logits: Value,
        ids: Value,
        ignore: Option<i32>,
        label_smoothing: f32,
    ) -> Value {
        let op = CrossEntropy { ignore, smoothing: label_smoothing.into() };
        self.apply(Payload::CrossEntropy(op), &[logits, ids])
    }

    /// Mean over all rows of the cross-entropy of `logits [.., C]` with class ids i32 `[..]`: a scalar.
    #[track_caller]
    pub fn cross_entropy(&mut self, logits: Value, ids: Value) -> Value {
        let rows = self.cross_entropy_rows(logits, ids, None);
        self.mean_all(rows)
    }

    /// Mean of the cross-entropy over the rows whose id is not `ignore`, and the number of these rows (an `f32` scalar).
    /// With none left the loss is 0, its gradients are 0, and the count is 0.
    #[track_caller]
    pub fn cross_entropy_ignoring(&mut self, logits: Value, ids: Value, ignore: i32) -> (Value, Value) {
        self.cross_entropy_smoothed(logits, ids, ignore, 0.0)
    }

    /// The same with smoothed labels, as [`Graph::cross_entropy_rows_smoothed`].
    #[track_caller]
    pub fn cross_entropy_smoothed(
        &mut self,
        logits: Value,
        ids: Value,
        ignore: i32,
        label_smoothing: f32,
    ) -> (Value, Value) {
        let rows = self.cross_entropy_rows_smoothed(logits, ids, Some(ignore), label_smoothing);
        if rows.is_poison() {
            return (rows, rows);
        }
        let word = std::sync::Arc::from([ignore as u32]);
        let ignored = self.constant_words(word, TensorType::new(DType::I32, []));
        let counts = self.not_equal(ids, ignored);
        let (one, ones) = (self.scalar(1.0), self.cast(counts, DType::F32));
        let (total, count) = (self.sum_all(rows), self.sum_all(ones));
        let divisor = self.maximum(count, one);
        (self.div(total, divisor), count)
    }

    /// Cross-entropy of every row of `logits [.., C]` with target probabilities `p [.., C]`: `- sum p log softmax(logits)`,
    /// where classes of probability 0 count nothing, even at a logit of -inf. The mean is over the rows.
    #[track_caller]
    pub fn cross_entropy_soft(&mut self, logits: Value, p: Value, reduction: Reduction) -> Value {
        let logits = self.like("cross_entropy_soft", logits, p);
        let (log, zero) = (self.log_softmax(logits, -1), self.scalar(0.0));
        let (none, lowest) = (self.equal(p, zero), self.scalar(f32::MIN));
        let hidden = self.lt(log, lowest);
        let absent = self.and(none, hidden);
        let counted = self.select(absent, zero, log);
        let gain = self.mul(p, counted);
        let rows = self.sum(gain, &[-1]);
        let rows = self.neg(rows);
        self.reduced(rows, reduction)
    }
}

//! Floor division and remainder of integers, composed of the truncating division.

use crate::graph::{Graph, Value};
use crate::types::{DType, TensorType};
use std::sync::Arc;

impl Graph {
    /// Quotient and remainder of integers with the quotient rounded down.
    #[track_caller]
    fn floor_division(&mut self, op: &str, a: Value, b: Value) -> (Value, Value) {
        let (Some(x), Some(y)) = (self.ty(a).cloned(), self.ty(b).cloned()) else {
            let poison = self.div(a, b);
            return (poison, poison);
        };
        if x.dtype != y.dtype || !matches!(x.dtype, DType::I32 | DType::U32) {
            let e = format!("takes two i32 or two u32 operands, given {x} and {y}");
            let poison = self.fail(op, &[a, b], e);
            return (poison, poison);
        }
        let word = |g: &mut Graph, w: u32| g.constant_words(Arc::from([w]), TensorType::new(x.dtype, []));
        let (zero, one) = (word(self, 0), word(self, 1));
        let q = self.div(a, b);
        let qb = self.mul(q, b);
        let r = self.sub(a, qb);
        // One too many where the remainder is not 0 and has the other sign than the divisor.
        let (r_below, b_below) = (self.lt(r, zero), self.lt(b, zero));
        let (apart, rest, divides) =
            (self.not_equal(r_below, b_below), self.not_equal(r, zero), self.not_equal(b, zero));
        let over = self.and(apart, rest);
        let over = self.and(over, divides);
        let (less, more) = (self.sub(q, one), self.add(r, b));
        (self.select(over, less, q), self.select(over, more, r))
    }

    /// `floor(a / b)` of integers, broadcasting: rounded down, as Python's `//`. Division by 0 gives 0; i32 wraps.
    #[track_caller]
    pub fn floor_divide(&mut self, a: Value, b: Value) -> Value {
        self.floor_division("floor_divide", a, b).0
    }

    /// `a - b floor(a / b)` of integers, broadcasting: it has the sign of `b`, as Python's `%`. By 0 it gives `a`.
    #[track_caller]
    pub fn remainder(&mut self, a: Value, b: Value) -> Value {
        self.floor_division("remainder", a, b).1
    }
}

//! Rounding and bounds, composed of `floor`, comparisons and extrema: exact, and NaN stays NaN.

use crate::graph::{Graph, Value};

impl Graph {
    /// Smallest integer not below x, elementwise; no gradient flows.
    #[track_caller]
    pub fn ceil(&mut self, x: Value) -> Value {
        let n = self.neg(x);
        let f = self.floor(n);
        self.neg(f)
    }

    /// The integer part of x, elementwise (towards 0); no gradient flows.
    #[track_caller]
    pub fn trunc(&mut self, x: Value) -> Value {
        let (zero, up, down) = (self.scalar(0.0), self.ceil(x), self.floor(x));
        let negative = self.lt(x, zero);
        self.select(negative, up, down)
    }

    /// The nearest integer, elementwise; of two equally near ones the even one. No gradient flows.
    #[track_caller]
    pub fn round(&mut self, x: Value) -> Value {
        let x = self.stop_gradient(x);
        let (zero, half, one) = (self.scalar(0.0), self.scalar(0.5), self.scalar(1.0));
        let f = self.floor(x);
        // Exact but for tiny negative x, where it is still above 1/2.
        let above = self.sub(x, f);
        let halved = self.scale(f, 0.5);
        let whole = self.floor(halved);
        let odd = self.not_equal(halved, whole);
        let tie = self.equal(above, half);
        let (tie_up, nearer_up) = (self.and(tie, odd), self.lt(half, above));
        let up = self.or(tie_up, nearer_up);
        let step = self.select(up, one, zero);
        self.add(f, step)
    }

    /// 1, -1 or 0 with the sign of x, elementwise; NaN for NaN. No gradient flows.
    #[track_caller]
    pub fn sign(&mut self, x: Value) -> Value {
        let x = self.stop_gradient(x);
        let (zero, one, minus) = (self.scalar(0.0), self.scalar(1.0), self.scalar(-1.0));
        let (up, down) = (self.lt(zero, x), self.lt(x, zero));
        let rest = self.select(down, minus, x);
        self.select(up, one, rest)
    }

    /// x kept between two bounds, either of which may be left out, elementwise. The gradient is 1 inside and at the bounds,
    /// 0 outside. A lower bound above the upper one, a bound that is NaN, and no bound at all are errors.
    #[track_caller]
    pub fn clamp(&mut self, x: Value, min: Option<f32>, max: Option<f32>) -> Value {
        if !matches!((min, max), (Some(a), Some(b)) if a <= b)
            && !matches!((min, max), (Some(a), None) | (None, Some(a)) if !a.is_nan())
        {
            let bound = |b: Option<f32>| b.map_or("none".to_string(), |b| b.to_string());
            let e = format!("min is {}, max is {}: min must not be above max", bound(min), bound(max));
            return self.fail("clamp", &[x], e);
        }
        // In a tie the gradient goes to the first operand: to x.
        let low = min.map(|min| self.scalar(min));
        let y = low.map_or(x, |low| self.maximum(x, low));
        let high = max.map(|max| self.scalar(max));
        high.map_or(y, |high| self.minimum(y, high))
    }
}

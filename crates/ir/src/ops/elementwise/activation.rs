//! Activations and gates that are compositions; the derivative at a kink is PyTorch's.

use crate::graph::{Graph, Value};

impl Graph {
    /// `1 / x`, elementwise.
    #[track_caller]
    pub fn reciprocal(&mut self, x: Value) -> Value {
        let one = self.scalar(1.0);
        self.div(one, x)
    }

    /// Logarithm to base 2, elementwise, within 2 ulp.
    #[track_caller]
    pub fn log2(&mut self, x: Value) -> Value {
        let y = self.log(x);
        self.scale(y, std::f32::consts::LOG2_E)
    }

    /// `x` above 0, else `slope x`, elementwise; the derivative at 0 is `slope`.
    #[track_caller]
    pub fn leaky_relu(&mut self, x: Value, slope: f32) -> Value {
        let (zero, low) = (self.scalar(0.0), self.scale(x, slope));
        let up = self.lt(zero, x);
        self.select(up, x, low)
    }

    /// `x` above 0, else `alpha (e^x - 1)`, elementwise; the derivative at 0 is `alpha`.
    #[track_caller]
    pub fn elu(&mut self, x: Value, alpha: f32) -> Value {
        let zero = self.scalar(0.0);
        // The exponential of what is not chosen must not overflow: its derivative would be 0 times infinity.
        let below = self.minimum(x, zero);
        let e = self.expm1(below);
        let (low, up) = (self.scale(e, alpha), self.lt(zero, x));
        self.select(up, x, low)
    }

    /// x kept between `min` and `max`, elementwise; unlike that of [`Graph::clamp`] the derivative at the bounds is 0.
    #[track_caller]
    pub fn hardtanh(&mut self, x: Value, min: f32, max: f32) -> Value {
        if min >= max || min.is_nan() || max.is_nan() {
            return self.fail("hardtanh", &[x], format!("min is {min}, max is {max}: min must be below max"));
        }
        let (low, high) = (self.scalar(min), self.scalar(max));
        let y = self.maximum(low, x);
        self.minimum(high, y)
    }

    /// `silu(gate) up`, elementwise: SwiGLU (Shazeer 2020).
    #[track_caller]
    pub fn swiglu(&mut self, gate: Value, up: Value) -> Value {
        let s = self.silu(gate);
        self.mul(s, up)
    }

    /// `gelu(gate) up` with the exact error function, elementwise: GEGLU (Shazeer 2020).
    #[track_caller]
    pub fn geglu(&mut self, gate: Value, up: Value) -> Value {
        let s = self.gelu(gate);
        self.mul(s, up)
    }

    /// `gelu(gate) up` with GELU in the tanh form, elementwise.
    #[track_caller]
    pub fn geglu_tanh(&mut self, gate: Value, up: Value) -> Value {
        let s = self.gelu_tanh(gate);
        self.mul(s, up)
    }

    /// `min(max(x, 0), 6)`, elementwise; the derivative at 0 and 6 is 0.
    #[track_caller]
    pub fn relu6(&mut self, x: Value) -> Value {
        self.hardtanh(x, 0.0, 6.0)
    }
}

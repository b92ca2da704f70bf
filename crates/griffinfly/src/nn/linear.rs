//! Fully connected layer.

use super::fan_in_uniform;
use griffinfly_ir::graph::{Graph, Value};

/// `y = x W^T + b` over the last axis; weight `[out, in]`, bias `[out]`.
#[derive(Clone, Debug)]
pub struct Linear {
    name: String,
    inputs: usize,
    outputs: usize,
    bias: bool,
}

impl Linear {
    /// A layer with a bias.
    #[must_use]
    pub fn new(name: impl Into<String>, inputs: usize, outputs: usize) -> Linear {
        Linear { name: name.into(), inputs, outputs, bias: true }
    }

    /// With or without a bias.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Linear {
        self.bias = bias;
        self
    }

    /// Adds the layer: `x [.., in]` of at least two dimensions gives `[.., out]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.name, |g| {
            let init = fan_in_uniform(self.inputs);
            let weight = g.parameter(&format!("{}.weight", self.name), [self.outputs, self.inputs], init);
            let bias = self.bias.then(|| g.parameter(&format!("{}.bias", self.name), [self.outputs], init));
            let y = g.matmul_with(x, weight, [false, true]);
            bias.map_or(y, |bias| g.add(y, bias))
        })
    }
}

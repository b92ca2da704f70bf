//! Fully connected layer.

use super::fan_in_uniform;
use griffinfly_ir::graph::{Graph, Init, Value};

/// `y = x W^T + b` over the last axis; weight `[out, in]`, bias `[out]`.
#[derive(Clone, Debug)]
pub struct Linear {
    name: String,
    inputs: usize,
    outputs: usize,
    bias: bool,
    init: Init,
}

impl Linear {
    /// A layer with a bias.
    #[must_use]
    pub fn new(name: impl Into<String>, inputs: usize, outputs: usize) -> Linear {
        Linear { name: name.into(), inputs, outputs, bias: true, init: fan_in_uniform(inputs) }
    }

    /// How weight and bias begin, instead of PyTorch's default.
    #[must_use]
    pub fn init(mut self, init: Init) -> Linear {
        self.init = init;
        self
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
            let weight =
                g.parameter(&format!("{}.weight", self.name), [self.outputs, self.inputs], self.init);
            let bias =
                self.bias.then(|| g.parameter(&format!("{}.bias", self.name), [self.outputs], self.init));
            let y = g.matmul_with(x, weight, [false, true]);
            bias.map_or(y, |bias| g.add(y, bias))
        })
    }
}

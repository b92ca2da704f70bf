//! Two-dimensional convolution.

use super::{Extents, fan_in_uniform};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Window2d;

/// Convolution of `[N, C, H, W]`; weight `[out, in, kh, kw]`, bias `[out]`.
#[derive(Clone, Debug)]
pub struct Conv2d {
    name: String,
    channels: [usize; 2],
    kernel: [usize; 2],
    window: Window2d,
    bias: bool,
}

impl Conv2d {
    /// A layer with stride 1, no padding and a bias.
    #[must_use]
    pub fn new(name: impl Into<String>, inputs: usize, outputs: usize, kernel: impl Into<Extents>) -> Conv2d {
        let (kernel, window) = (kernel.into().0, Window2d::default());
        Conv2d { name: name.into(), channels: [inputs, outputs], kernel, window, bias: true }
    }

    /// Distance of neighbouring windows.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Extents>) -> Conv2d {
        self.window.stride = stride.into().0;
        self
    }

    /// Zeros added on both sides of height and width.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Extents>) -> Conv2d {
        self.window.padding = padding.into().0.map(|p| [p; 2]);
        self
    }

    /// Stride and padding per side.
    #[must_use]
    pub fn window(mut self, window: Window2d) -> Conv2d {
        self.window = window;
        self
    }

    /// With or without a bias.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Conv2d {
        self.bias = bias;
        self
    }

    /// Adds the layer: `x [N, in, H, W]` gives `[N, out, H', W']`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.name, |g| {
            let ([inputs, outputs], [kh, kw]) = (self.channels, self.kernel);
            let init = fan_in_uniform(inputs.saturating_mul(kh).saturating_mul(kw));
            let weight = g.parameter(&format!("{}.weight", self.name), [outputs, inputs, kh, kw], init);
            let bias = self.bias.then(|| g.parameter(&format!("{}.bias", self.name), [outputs], init));
            let y = g.conv2d(x, weight, self.window);
            let Some(bias) = bias else { return y };
            let bias = g.insert_axes(bias, &[1, 2]);
            g.add(y, bias)
        })
    }
}

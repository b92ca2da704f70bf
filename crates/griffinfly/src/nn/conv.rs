//! Convolutions over images and lines, and transposed ones.

use super::{Extents, fan_in_uniform};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Window2d;

/// What the layers have in common: name, channels in and out, windows, groups, bias.
#[derive(Clone, Debug)]
struct Conv {
    name: String,
    channels: [usize; 2],
    window: Window2d,
    groups: usize,
    bias: bool,
}

impl Conv {
    fn new(name: String, inputs: usize, outputs: usize) -> Conv {
        Conv { name, channels: [inputs, outputs], window: Window2d::default(), groups: 1, bias: true }
    }

    /// Channels of one group, if `all` divide into the groups.
    fn share(&self, all: usize) -> Option<usize> {
        all.checked_div(self.groups).filter(|share| share * self.groups == all)
    }

    /// Parameters of this weight: fan-in is what lies behind its first axis, as in PyTorch.
    #[track_caller]
    fn parameters(&self, g: &mut Graph, weight: Vec<usize>) -> (Value, Option<Value>) {
        let init = fan_in_uniform(weight[1..].iter().fold(1, |n: usize, d| n.saturating_mul(*d)));
        let weight = g.parameter(&format!("{}.weight", self.name), weight, init);
        let outputs = self.channels[1];
        (weight, self.bias.then(|| g.parameter(&format!("{}.bias", self.name), [outputs], init)))
    }
}

/// `y + bias` along axis 1.
fn biased(g: &mut Graph, y: Value, bias: Option<Value>) -> Value {
    let Some(bias) = bias else { return y };
    let after: Vec<usize> = (1..g.dims(y).len().saturating_sub(1)).collect();
    let bias = g.insert_axes(bias, &after);
    g.add(y, bias)
}

/// Along height and width.
fn both(extents: impl Into<Extents>) -> [usize; 2] {
    extents.into().0
}

/// Along the only axis; the operations pass over the height.
fn width(extent: usize) -> [usize; 2] {
    [1, extent]
}

/// The settings that all of these layers have.
macro_rules! settings {
    ($layer:ident, $extents:ty, $axes:ident) => {
        impl $layer {
            /// Distance of neighbouring windows.
            #[must_use]
            pub fn stride(mut self, stride: $extents) -> $layer {
                self.conv.window.stride = $axes(stride);
                self
            }

            /// Zeros added on both sides of each axis.
            #[must_use]
            pub fn padding(mut self, padding: $extents) -> $layer {
                self.conv.window.padding = $axes(padding).map(|p| [p; 2]);
                self
            }

            /// Distance of neighbouring taps.
            #[must_use]
            pub fn dilation(mut self, dilation: $extents) -> $layer {
                self.conv.window.dilation = $axes(dilation);
                self
            }

            /// Groups of channels that do not see each other.
            #[must_use]
            pub fn groups(mut self, groups: usize) -> $layer {
                self.conv.groups = groups;
                self
            }

            /// With or without a bias.
            #[must_use]
            pub fn bias(mut self, bias: bool) -> $layer {
                self.conv.bias = bias;
                self
            }
        }
    };
}

/// Convolution of `[N, C, H, W]`; weight `[out, in / groups, kh, kw]`, bias `[out]`.
#[derive(Clone, Debug)]
pub struct Conv2d {
    conv: Conv,
    kernel: [usize; 2],
}

settings!(Conv2d, impl Into<Extents>, both);

impl Conv2d {
    /// A layer with stride 1, no padding and a bias.
    #[must_use]
    pub fn new(name: impl Into<String>, inputs: usize, outputs: usize, kernel: impl Into<Extents>) -> Conv2d {
        Conv2d { conv: Conv::new(name.into(), inputs, outputs), kernel: kernel.into().0 }
    }

    /// Stride, dilation and padding per side.
    #[must_use]
    pub fn window(mut self, window: Window2d) -> Conv2d {
        self.conv.window = window;
        self
    }

    /// Adds the layer: `x [N, in, H, W]` gives `[N, out, H', W']`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.conv.name, |g| {
            let (weight, bias) = self.parameters(g);
            self.with(g, x, weight, bias)
        })
    }

    /// Adds the layer followed by `norm` for inference, as one convolution: `norm` is folded into weight and bias.
    #[track_caller]
    pub fn apply_folded(&self, g: &mut Graph, x: Value, norm: &super::BatchNorm2d) -> Value {
        let (weight, bias) = g.layer(&self.conv.name, |g| self.parameters(g));
        let [weight, bias] = norm.fold(g, weight, bias);
        g.layer(&self.conv.name, |g| self.with(g, x, weight, Some(bias)))
    }

    fn parameters(&self, g: &mut Graph) -> (Value, Option<Value>) {
        let ([inputs, outputs], [kh, kw]) = (self.conv.channels, self.kernel);
        // The operation refuses channels that do not divide, with the numbers.
        self.conv.parameters(g, vec![outputs, self.conv.share(inputs).unwrap_or(inputs), kh, kw])
    }

    fn with(&self, g: &mut Graph, x: Value, weight: Value, bias: Option<Value>) -> Value {
        let y = g.conv2d_grouped(x, weight, self.conv.window, self.conv.groups);
        biased(g, y, bias)
    }
}

/// Convolution of `[N, C, L]`; weight `[out, in / groups, k]`, bias `[out]`.
#[derive(Clone, Debug)]
pub struct Conv1d {
    conv: Conv,
    kernel: usize,
}

settings!(Conv1d, usize, width);

impl Conv1d {
    /// A layer with stride 1, no padding and a bias.
    #[must_use]
    pub fn new(name: impl Into<String>, inputs: usize, outputs: usize, kernel: usize) -> Conv1d {
        Conv1d { conv: Conv::new(name.into(), inputs, outputs), kernel }
    }

    /// Adds the layer: `x [N, in, L]` gives `[N, out, L']`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.conv.name, |g| {
            let [inputs, outputs] = self.conv.channels;
            let share = self.conv.share(inputs).unwrap_or(inputs);
            let (weight, bias) = self.conv.parameters(g, vec![outputs, share, self.kernel]);
            let y = g.conv1d(x, weight, self.conv.window, self.conv.groups);
            biased(g, y, bias)
        })
    }
}

/// Transposed convolution of `[N, C, H, W]`; weight `[in, out / groups, kh, kw]`, bias `[out]`.
#[derive(Clone, Debug)]
pub struct ConvTranspose2d {
    conv: Conv,
    kernel: [usize; 2],
    output_padding: [usize; 2],
}

settings!(ConvTranspose2d, impl Into<Extents>, both);

impl ConvTranspose2d {
    /// A layer with stride 1, no padding and a bias.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Extents>,
    ) -> ConvTranspose2d {
        let conv = Conv::new(name.into(), inputs, outputs);
        ConvTranspose2d { conv, kernel: kernel.into().0, output_padding: [0; 2] }
    }

    /// Elements added after height and width of the result, less than the stride.
    #[must_use]
    pub fn output_padding(mut self, padding: impl Into<Extents>) -> ConvTranspose2d {
        self.output_padding = padding.into().0;
        self
    }

    /// Adds the layer: `x [N, in, H, W]` gives `[N, out, H', W']`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.conv.name, |g| {
            let ([inputs, outputs], [kh, kw]) = (self.conv.channels, self.kernel);
            // No parameter may have an extent of 0: outputs that do not divide are refused there.
            let share = self.conv.share(outputs).unwrap_or(0);
            let (weight, bias) = self.conv.parameters(g, vec![inputs, share, kh, kw]);
            let (window, groups) = (self.conv.window, self.conv.groups);
            let y = g.conv_transpose2d([x, weight], window, self.output_padding, groups);
            biased(g, y, bias)
        })
    }
}

//! Normalisation: over the last axis, over groups of channels, over the batch.

use griffinfly_ir::graph::{Graph, Init, Value};

/// Layer norm: zero mean and unit variance, then `weight` and `bias` `[width]`.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    name: String,
    width: usize,
    eps: f32,
}

/// RMS norm: unit mean square, then `weight` `[width]`.
#[derive(Clone, Debug)]
pub struct RmsNorm {
    name: String,
    width: usize,
    eps: f32,
}

impl LayerNorm {
    /// A layer with eps 1e-5.
    #[must_use]
    pub fn new(name: impl Into<String>, width: usize) -> LayerNorm {
        LayerNorm { name: name.into(), width, eps: 1e-5 }
    }

    /// Added to the variance.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> LayerNorm {
        self.eps = eps;
        self
    }

    /// Adds the layer to `x [.., width]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.name, |g| {
            let [weight, bias] = affine(g, &self.name, self.width);
            g.layer_norm(x, weight, bias, self.eps)
        })
    }
}

impl RmsNorm {
    /// A layer with eps 1e-5.
    #[must_use]
    pub fn new(name: impl Into<String>, width: usize) -> RmsNorm {
        RmsNorm { name: name.into(), width, eps: 1e-5 }
    }

    /// Added to the mean square.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> RmsNorm {
        self.eps = eps;
        self
    }

    /// Adds the layer to `x [.., width]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.name, |g| {
            let weight = g.parameter(&format!("{}.weight", self.name), [self.width], Init::ONES);
            g.rms_norm(x, weight, self.eps)
        })
    }
}

/// Group norm: zero mean and unit variance of each group of neighbouring channels of a sample, then `weight` and `bias`
/// `[channels]`.
#[derive(Clone, Debug)]
pub struct GroupNorm {
    name: String,
    groups: usize,
    channels: usize,
    eps: f32,
}

impl GroupNorm {
    /// A layer with eps 1e-5.
    #[must_use]
    pub fn new(name: impl Into<String>, groups: usize, channels: usize) -> GroupNorm {
        GroupNorm { name: name.into(), groups, channels, eps: 1e-5 }
    }

    /// Added to the variance.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> GroupNorm {
        self.eps = eps;
        self
    }

    /// Adds the layer to `x [N, channels, ..]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.name, |g| {
            let weights = affine(g, &self.name, self.channels);
            g.group_norm(x, self.groups, weights, self.eps)
        })
    }
}

/// Batch norm: zero mean and unit variance of each channel, then `weight` and `bias` `[channels]`. For training with the
/// statistics of the batch, which the state `running_mean` and `running_var` `[channels]` follows; for inference with
/// those of the state.
#[derive(Clone, Debug)]
pub struct BatchNorm2d {
    name: String,
    channels: usize,
    eps: f32,
    momentum: f32,
    training: bool,
}

impl BatchNorm2d {
    /// A layer for training with eps 1e-5 and momentum 0.1.
    #[must_use]
    pub fn new(name: impl Into<String>, channels: usize) -> BatchNorm2d {
        BatchNorm2d { name: name.into(), channels, eps: 1e-5, momentum: 0.1, training: true }
    }

    /// Added to the variance.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> BatchNorm2d {
        self.eps = eps;
        self
    }

    /// What the newest batch counts in the running averages.
    #[must_use]
    pub fn momentum(mut self, momentum: f32) -> BatchNorm2d {
        self.momentum = momentum;
        self
    }

    /// For training, or for inference.
    #[must_use]
    pub fn training(mut self, training: bool) -> BatchNorm2d {
        self.training = training;
        self
    }

    /// Adds the layer to `x [N, channels, ..]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.layer(&self.name, |g| {
            let [weights, running] = self.leaves(g);
            if !self.training {
                return g.batch_norm_inference(x, weights, running, self.eps);
            }
            let [y, mean, variance] = g.batch_norm(x, weights, self.eps);
            g.update_running(running[0], mean, self.momentum);
            g.update_running(running[1], variance, self.momentum);
            y
        })
    }

    /// Adds the layer for inference as part of the convolution before it: weight and bias for that one.
    #[track_caller]
    pub(super) fn fold(&self, g: &mut Graph, weight: Value, bias: Option<Value>) -> [Value; 2] {
        g.layer(&self.name, |g| {
            let [weights, running] = self.leaves(g);
            let bias = bias.unwrap_or_else(|| g.splat(0.0, [self.channels]));
            g.fold_batch_norm([weight, bias], weights, running, self.eps)
        })
    }

    /// Weight and bias, running mean and variance.
    fn leaves(&self, g: &mut Graph) -> [[Value; 2]; 2] {
        let state = [("running_mean", 0.0), ("running_var", 1.0)];
        let running = state.map(|(s, init)| g.state(&format!("{}.{s}", self.name), [self.channels], init));
        [affine(g, &self.name, self.channels), running]
    }
}

/// The parameters `weight` (ones at first) and `bias` (zeros).
fn affine(g: &mut Graph, name: &str, width: usize) -> [Value; 2] {
    let all = [("weight", Init::ONES), ("bias", Init::ZEROS)];
    all.map(|(what, init)| g.parameter(&format!("{name}.{what}"), [width], init))
}

//! Normalisation over the last axis.

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
            let weight = g.parameter(&format!("{}.weight", self.name), [self.width], Init::ONES);
            let bias = g.parameter(&format!("{}.bias", self.name), [self.width], Init::ZEROS);
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

//! Sinusoidal embeddings of diffusion timesteps (Ho, Jain and Abbeel 2020), with the options of `diffusers`.

use crate::graph::{Graph, Value};
use crate::types::DType;

/// Options of [`Graph::timestep_embedding`]; the default is that of `diffusers.get_timestep_embedding`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimestepEmbedding {
    /// Cosines come first instead of sines.
    pub flip_sin_to_cos: bool,
    /// The exponents of the frequencies are `-j / (half - this)`.
    pub downscale_freq_shift: f64,
    /// The longest period is 2 pi times this.
    pub max_period: f64,
}

impl Default for TimestepEmbedding {
    fn default() -> Self {
        Self { flip_sin_to_cos: false, downscale_freq_shift: 1.0, max_period: 10_000.0 }
    }
}

impl Graph {
    /// Timesteps `t [N]` as `[N, dim]`: with `half = dim / 2` and `w_j = max_period^(-j / (half - shift))`, `sin(w_j t)` for
    /// j in `0..half`, then `cos(w_j t)`, then 0 if `dim` is odd. The frequencies are computed in `f64`; `w_j t` is rounded
    /// to `f32`, as in PyTorch: for t = 1000 it is right to 3e-5.
    #[track_caller]
    pub fn timestep_embedding(&mut self, t: Value, dim: usize, options: &TimestepEmbedding) -> Value {
        let Some(ty) = self.ty(t).cloned() else { return self.sin(t) };
        let half = dim / 2;
        let span = half as f64 - options.downscale_freq_shift;
        let fault = if ty.rank() != 1 || ty.dtype != DType::F32 {
            Some(format!("the timesteps must be f32[N], they are {ty}"))
        } else if half == 0 {
            Some(format!("a dimension of {dim} holds no pair of sine and cosine"))
        } else if !(options.max_period > 0.0 && span.is_finite()) || (span <= 0.0 && half > 1) {
            Some(format!("{options:?} gives no falling frequencies for a dimension of {dim}"))
        } else {
            None
        };
        if let Some(e) = fault {
            return self.fail("timestep_embedding", &[t], e);
        }
        let exponent = |j: usize| if j == 0 { 0.0 } else { -(j as f64) / span };
        let frequency = |j: usize| options.max_period.powf(exponent(j)) as f32;
        let frequencies: Vec<f32> = (0..half).map(frequency).collect();
        let w = self.constant(&frequencies, [half]);
        let column = self.per_row(t);
        let angle = self.mul(column, w);
        let (sin, cos) = (self.sin(angle), self.cos(angle));
        let pair = if options.flip_sin_to_cos { [cos, sin] } else { [sin, cos] };
        let both = self.concat(&pair, 1);
        if dim % 2 == 1 { self.pad(both, 1, [0, 1], 0.0) } else { both }
    }
}

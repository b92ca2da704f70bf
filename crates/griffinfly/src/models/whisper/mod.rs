//! Whisper. Source: Radford et al. 2022; names and the exact GELU as in its published checkpoints.

mod encoder;
mod full;

pub use encoder::WhisperEncoderConfig;
pub use full::WhisperConfig;

use crate::nn;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::AttentionOptions;

/// What the layers of encoder and decoder are made of: parts behind a norm, inside a residual sum.
#[derive(Clone, Copy)]
struct Parts {
    width: usize,
    heads: usize,
    ffn: usize,
}

/// What attention looks at.
#[derive(Clone, Copy)]
enum Seen {
    /// Its own sequence.
    All,
    /// What came before in its own sequence.
    Past,
    /// Another sequence.
    Other(Value),
}

impl Parts {
    /// Attention called `name`, whose keys have no bias.
    fn attend(&self, g: &mut Graph, name: &str, x: Value, seen: Seen) -> Value {
        let h = nn::LayerNorm::new(format!("{name}_layer_norm"), self.width).apply(g, x);
        let project = |part: &str| nn::Linear::new(format!("{name}.{part}_proj"), self.width, self.width);
        let projections = [project("q"), project("k").bias(false), project("v"), project("out")];
        let attention = nn::MultiHeadAttention::new(projections, self.heads);
        let h = match seen {
            Seen::All => attention.apply(g, h),
            Seen::Past => attention.options(AttentionOptions::causal()).apply(g, h),
            Seen::Other(states) => attention.apply_across(g, h, states),
        };
        g.add(x, h)
    }

    /// The feed-forward of the layer called `name`.
    fn feed_forward(&self, g: &mut Graph, name: &str, x: Value) -> Value {
        let h = nn::LayerNorm::new(format!("{name}.final_layer_norm"), self.width).apply(g, x);
        let h = nn::Linear::new(format!("{name}.fc1"), self.width, self.ffn).apply(g, h).gelu(g);
        let h = nn::Linear::new(format!("{name}.fc2"), self.ffn, self.width).apply(g, h);
        g.add(x, h)
    }
}

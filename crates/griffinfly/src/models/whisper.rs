//! The encoder of Whisper. Source: Radford et al. 2022; names and the exact GELU as in its published checkpoints. The position
//! table is a parameter that is not trained.

use super::{Model, check_multiple, check_numbers, parts};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Init, Value};
use serde::{Deserialize, Serialize};

/// An encoder of spectrograms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhisperEncoderConfig {
    /// Spectrograms per step.
    pub batch: usize,
    /// Frequencies.
    pub mels: usize,
    /// Frames; every second one becomes a position.
    pub frames: usize,
    /// Width of the state.
    pub width: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Layers.
    pub layers: usize,
    /// Width of the feed-forward.
    pub ffn: usize,
}

impl WhisperEncoderConfig {
    /// Whisper-tiny's: 8,208,384 parameters, 576,000 of them positions.
    #[must_use]
    pub fn tiny(batch: usize) -> WhisperEncoderConfig {
        WhisperEncoderConfig { batch, mels: 80, frames: 3000, width: 384, heads: 6, layers: 4, ffn: 1536 }
    }

    /// The model: input `mel [N, mels, frames]`, output `[N, frames / 2, width]`, mean square of the output.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits, an odd number of frames, a width that heads do not divide.
    pub fn build(&self) -> Result<Model, Error> {
        let WhisperEncoderConfig { batch, mels, frames, width, heads, layers, ffn } = *self;
        check_numbers(&[("batch", batch), ("mels", mels), ("frames", frames), ("width", width)])?;
        check_numbers(&[("heads", heads), ("layers", layers), ("ffn", ffn)])?;
        check_multiple("width", width, heads, "heads")?;
        check_multiple("frames", frames, 2, "the stride")?;
        let mut g = Graph::new();
        let mel = g.input("mel", [batch, mels, frames]);
        let conv =
            |i: usize, inputs| nn::Conv1d::new(format!("model.encoder.conv{i}"), inputs, width, 3).padding(1);
        let x = conv(1, mels).apply(&mut g, mel).gelu(&mut g);
        let x = conv(2, width).stride(2).apply(&mut g, x).gelu(&mut g);
        let x = g.permute(x, &[0, 2, 1]);
        let name = "model.encoder.embed_positions.weight";
        let positions = g.parameter(name, [frames / 2, width], Init::Normal(0.02.into()));
        let positions = g.stop_gradient(positions);
        let mut x = g.add(x, positions);
        for i in 0..layers {
            x = self.layer(&mut g, &format!("model.encoder.layers.{i}"), x);
        }
        let output = nn::LayerNorm::new("model.encoder.layer_norm", width).apply(&mut g, x);
        let squares = g.mul(output, output);
        let loss = g.mean_all(squares);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    fn layer(&self, g: &mut Graph, name: &str, x: Value) -> Value {
        let (width, ffn) = (self.width, self.ffn);
        let n = |part: &str| format!("{name}.{part}");
        let h = nn::LayerNorm::new(n("self_attn_layer_norm"), width).apply(g, x);
        let project = |part: &str| nn::Linear::new(n(&format!("self_attn.{part}_proj")), width, width);
        let qkv = [project("q"), project("k").bias(false), project("v")].map(|p| p.apply(g, h));
        let qkv = qkv.map(|x| parts::heads(g, x, width / self.heads));
        let h = parts::attention(g, qkv, false);
        let h = project("out").apply(g, h);
        let x = g.add(x, h);
        let h = nn::LayerNorm::new(n("final_layer_norm"), width).apply(g, x);
        let h = nn::Linear::new(n("fc1"), width, ffn).apply(g, h).gelu(g);
        let h = nn::Linear::new(n("fc2"), ffn, width).apply(g, h);
        g.add(x, h)
    }
}

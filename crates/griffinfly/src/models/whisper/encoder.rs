//! The encoder of Whisper. The position table is a parameter that is not trained.

use super::{Parts, Seen};
use crate::error::Error;
use crate::models::{Model, check_multiple, check_numbers};
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
        self.check()?;
        let mut g = Graph::new();
        let output = self.apply(&mut g);
        let squares = g.mul(output, output);
        let loss = g.mean_all(squares);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let WhisperEncoderConfig { batch, mels, frames, width, heads, layers, ffn } = *self;
        check_numbers(&[("batch", batch), ("mels", mels), ("frames", frames), ("width", width)])?;
        check_numbers(&[("heads", heads), ("layers", layers), ("ffn", ffn)])?;
        check_multiple("width", width, heads, "heads")?;
        check_multiple("frames", frames, 2, "the stride")
    }

    /// Adds the encoder with its input.
    pub(super) fn apply(&self, g: &mut Graph) -> Value {
        let WhisperEncoderConfig { batch, mels, frames, width, .. } = *self;
        let mel = g.input("mel", [batch, mels, frames]);
        let conv =
            |i: usize, inputs| nn::Conv1d::new(format!("model.encoder.conv{i}"), inputs, width, 3).padding(1);
        let x = conv(1, mels).apply(g, mel).gelu(g);
        let x = conv(2, width).stride(2).apply(g, x).gelu(g);
        let x = g.permute(x, &[0, 2, 1]);
        let name = "model.encoder.embed_positions.weight";
        let positions = g.parameter(name, [frames / 2, width], Init::Normal(0.02.into()));
        let positions = g.stop_gradient(positions);
        let mut x = g.add(x, positions);
        let parts = self.parts();
        for i in 0..self.layers {
            let name = format!("model.encoder.layers.{i}");
            x = parts.attend(g, &format!("{name}.self_attn"), x, Seen::All);
            x = parts.feed_forward(g, &name, x);
        }
        nn::LayerNorm::new("model.encoder.layer_norm", width).apply(g, x)
    }

    pub(super) fn parts(&self) -> Parts {
        Parts { width: self.width, heads: self.heads, ffn: self.ffn }
    }
}

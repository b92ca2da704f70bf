//! Whisper's encoder and the decoder that attends to it, the decoder's embedding and output head tied.

use super::{Parts, Seen, WhisperEncoderConfig};
use crate::error::Error;
use crate::models::{Model, check_at_most, check_numbers};
use crate::nn;
use griffinfly_ir::graph::{Graph, Init, Value};
use serde::{Deserialize, Serialize};

/// A model from spectrograms to text. Batch, width, heads and feed-forward of the decoder are the encoder's.
///
/// Whatever it is built for, it has the parameters of the whole model in the same order, so one [`crate::Weights`] serves a
/// session that encodes once and another one that decodes often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhisperConfig {
    /// The encoder.
    pub encoder: WhisperEncoderConfig,
    /// Layers of the decoder.
    pub layers: usize,
    /// Tokens there are.
    pub vocab: usize,
    /// Positions of the decoder's table.
    pub positions: usize,
    /// Tokens per sequence.
    pub tokens: usize,
}

impl WhisperConfig {
    /// Whisper-tiny: 37,760,640 parameters.
    #[must_use]
    pub fn tiny(batch: usize, tokens: usize) -> WhisperConfig {
        let encoder = WhisperEncoderConfig::tiny(batch);
        WhisperConfig { encoder, layers: 4, vocab: 51_865, positions: 448, tokens }
    }

    /// The whole model: inputs `mel [N, mels, frames]`, `ids [N, T]` and `label [N, T]` (the next token of each, so already
    /// shifted), output logits `[N, T, vocab]`, mean cross-entropy over all tokens.
    ///
    /// # Errors
    /// What [`WhisperEncoderConfig::build`] refuses, other numbers that are 0 or beyond all limits, more tokens than positions.
    pub fn build(&self) -> Result<Model, Error> {
        let (mut g, states) = self.encoded()?;
        let [output, loss] = self.decode(&mut g, states);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    /// The encoder: input and output as [`WhisperEncoderConfig::build`] says, mean square of the output.
    ///
    /// # Errors
    /// As [`WhisperConfig::build`].
    pub fn build_encoder(&self) -> Result<Model, Error> {
        let (mut g, output) = self.encoded()?;
        self.decode(&mut g, output);
        let squares = g.mul(output, output);
        let loss = g.mean_all(squares);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    /// The decoder: as the whole model, but with the encoder's output `states [N, frames / 2, width]` as input instead of `mel`.
    ///
    /// # Errors
    /// As [`WhisperConfig::build`].
    pub fn build_decoder(&self) -> Result<Model, Error> {
        let (mut g, _) = self.encoded()?;
        let WhisperEncoderConfig { batch, frames, width, .. } = self.encoder;
        let states = g.input("states", [batch, frames / 2, width]);
        let [output, loss] = self.decode(&mut g, states);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    /// A graph with the encoder, and its output.
    fn encoded(&self) -> Result<(Graph, Value), Error> {
        self.encoder.check()?;
        check_numbers(&[("layers", self.layers), ("vocab", self.vocab)])?;
        check_numbers(&[("positions", self.positions), ("tokens", self.tokens)])?;
        check_at_most("tokens", self.tokens, self.positions, "positions")?;
        let mut g = Graph::new();
        let states = self.encoder.apply(&mut g);
        Ok((g, states))
    }

    /// Adds the decoder with its inputs: logits and loss.
    fn decode(&self, g: &mut Graph, states: Value) -> [Value; 2] {
        let (parts, sequences): (Parts, _) = (self.encoder.parts(), [self.encoder.batch, self.tokens]);
        let (ids, label) = (g.input_ids("ids", sequences), g.input_ids("label", sequences));
        let embedding = nn::Embedding::new("model.decoder.embed_tokens", self.vocab, parts.width).tied();
        let x = embedding.apply(g, ids);
        let name = "model.decoder.embed_positions.weight";
        let positions = g.parameter(name, [self.positions, parts.width], Init::Normal(0.02.into()));
        let positions = g.slice(positions, 0, 0, Some(self.tokens as isize));
        let mut x = g.add(x, positions);
        for i in 0..self.layers {
            let name = format!("model.decoder.layers.{i}");
            x = parts.attend(g, &format!("{name}.self_attn"), x, Seen::Past);
            x = parts.attend(g, &format!("{name}.encoder_attn"), x, Seen::Other(states));
            x = parts.feed_forward(g, &name, x);
        }
        let x = nn::LayerNorm::new("model.decoder.layer_norm", parts.width).apply(g, x);
        // The table that the embedding reads is the head's weight too; without it the graph has errors already.
        let table = g.leaf("model.decoder.embed_tokens.weight").unwrap_or(x);
        let logits = g.matmul_with(x, table, [false, true]);
        [logits, g.cross_entropy(logits, label)]
    }
}

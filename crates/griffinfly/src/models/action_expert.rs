//! The action expert of SmolVLA: a decoder that turns noisy actions into their change, every other layer attending to what a
//! vision-language model saw. Positions are not embedded and there is no last norm. Source: Shukor et al. 2025.

use super::decoder::{Decoder, Source};
use super::{Model, check_numbers};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::Graph;
use serde::{Deserialize, Serialize};

/// An action expert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionExpertConfig {
    /// Sequences per step.
    pub batch: usize,
    /// Actions per sequence.
    pub tokens: usize,
    /// Numbers per action.
    pub action: usize,
    /// Width of the state.
    pub hidden: usize,
    /// Layers; every second one, from the second on, attends to the other model.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Width of the feed-forward.
    pub ffn: usize,
    /// Added to the mean square by the norms.
    pub eps: f32,
    /// Tokens of the vision-language model.
    pub vlm_tokens: usize,
}

impl ActionExpertConfig {
    /// SmolVLA's: 99,848,592 parameters.
    #[must_use]
    pub fn smolvla(batch: usize, tokens: usize) -> ActionExpertConfig {
        ActionExpertConfig {
            batch,
            tokens,
            action: 32,
            hidden: 720,
            layers: 16,
            heads: 15,
            kv_heads: 5,
            head_dim: 64,
            ffn: 2048,
            eps: 1e-5,
            vlm_tokens: 16,
        }
    }

    /// The model: inputs `noisy [N, T, action]`, `timestep [N, 1, 2 hidden]` (embedded already), `vlm [N, V, kv_heads head_dim]`
    /// and `target` as `noisy`; output as `noisy`; mean squared error.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits, query heads that are no multiple of the others.
    pub fn build(&self) -> Result<Model, Error> {
        let ActionExpertConfig { batch, tokens, action, hidden, layers, vlm_tokens, .. } = *self;
        check_numbers(&[("batch", batch), ("tokens", tokens), ("action", action), ("layers", layers)])?;
        check_numbers(&[("vlm_tokens", vlm_tokens)])?;
        let decoder = self.decoder();
        decoder.check()?;
        let mut g = Graph::new();
        let context = self.kv_heads * self.head_dim;
        let actions = [batch, tokens, action];
        let (noisy, target) = (g.input("noisy", actions), g.input("target", actions));
        let timestep = g.input("timestep", [batch, 1, 2 * hidden]);
        let vlm = g.input("vlm", [batch, vlm_tokens, context]);
        let linear = |name: &str, inputs, outputs| nn::Linear::new(format!("model.{name}"), inputs, outputs);
        let time = linear("action_time_mlp_in", 2 * hidden, hidden).apply(&mut g, timestep).silu(&mut g);
        let time = linear("action_time_mlp_out", hidden, hidden).apply(&mut g, time);
        let x = linear("action_in_proj", action, hidden).apply(&mut g, noisy);
        let mut x = g.add(x, time);
        for i in 0..layers {
            let source = if i % 2 == 0 { Source::Own } else { Source::Other(vlm, context) };
            let name = format!("model.vlm_with_expert.lm_expert.layers.{i}");
            x = decoder.layer(&mut g, &name, x, source);
        }
        let output = linear("action_out_proj", hidden, action).apply(&mut g, x);
        let loss = g.mse(output, target);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    fn decoder(&self) -> Decoder {
        Decoder {
            hidden: self.hidden,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            ffn: self.ffn,
            eps: self.eps,
            rotary: None,
        }
    }
}

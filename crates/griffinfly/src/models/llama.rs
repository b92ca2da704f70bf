//! Decoder-only language models of the Llama family, input embedding and output head tied.

use super::decoder::{Decoder, Source};
use super::{Model, check_numbers, check_rotary};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::Graph;
use serde::{Deserialize, Serialize};

/// A language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlamaConfig {
    /// Sequences per step.
    pub batch: usize,
    /// Tokens per sequence.
    pub sequence: usize,
    /// Tokens there are.
    pub vocab: usize,
    /// Width of the state.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads, each of which serves as many query heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Width of the feed-forward.
    pub ffn: usize,
    /// Added to the mean square by the norms.
    pub eps: f32,
    /// Base of the rotary position embedding.
    pub rope_base: f64,
}

impl LlamaConfig {
    /// SmolLM2-135M: 134,515,008 parameters.
    #[must_use]
    pub fn smollm2_135m(batch: usize, sequence: usize) -> LlamaConfig {
        LlamaConfig {
            batch,
            sequence,
            vocab: 49_152,
            hidden: 576,
            layers: 30,
            heads: 9,
            kv_heads: 3,
            head_dim: 64,
            ffn: 1536,
            eps: 1e-5,
            rope_base: 1e5,
        }
    }

    /// SmolLM2-360M: 361,821,120 parameters.
    #[must_use]
    pub fn smollm2_360m(batch: usize, sequence: usize) -> LlamaConfig {
        LlamaConfig {
            hidden: 960,
            layers: 32,
            heads: 15,
            kv_heads: 5,
            ffn: 2560,
            ..LlamaConfig::smollm2_135m(batch, sequence)
        }
    }

    /// SmolLM2-1.7B: 1,711,376,384 parameters.
    #[must_use]
    pub fn smollm2_1_7b(batch: usize, sequence: usize) -> LlamaConfig {
        LlamaConfig {
            hidden: 2048,
            layers: 24,
            heads: 32,
            kv_heads: 32,
            ffn: 8192,
            rope_base: 1.3e5,
            ..LlamaConfig::smollm2_135m(batch, sequence)
        }
    }

    /// The model: inputs `ids [N, S]` and `label [N, S]` (the next token of each, so already shifted), output logits
    /// `[N, S, vocab]`, mean cross-entropy over all tokens.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits, query heads that are no multiple of the others, a base that is not positive.
    pub fn build(&self) -> Result<Model, Error> {
        let LlamaConfig { batch, sequence, vocab, hidden, layers, .. } = *self;
        check_numbers(&[("batch", batch), ("sequence", sequence), ("vocab", vocab), ("layers", layers)])?;
        let mut decoder = self.decoder();
        decoder.check()?;
        check_rotary(sequence, self.head_dim, self.rope_base)?;
        let mut g = Graph::new();
        decoder.rotary = Some(g.rotary_constants(sequence, self.head_dim, self.rope_base));
        let (ids, label) = (g.input_ids("ids", [batch, sequence]), g.input_ids("label", [batch, sequence]));
        let mut x = nn::Embedding::new("model.embed_tokens", vocab, hidden).tied().apply(&mut g, ids);
        for i in 0..layers {
            x = decoder.layer(&mut g, &format!("model.layers.{i}"), x, Source::Own);
        }
        let x = decoder.norm(&mut g, "model.norm", x);
        // The table that the embedding reads is the head's weight too; without it the graph has errors already.
        let table = g.leaf("model.embed_tokens.weight").unwrap_or(x);
        let output = g.matmul_with(x, table, [false, true]);
        let loss = g.cross_entropy(output, label);
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

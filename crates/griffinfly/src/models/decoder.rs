//! Layers of decoders: grouped-query attention and a gated feed-forward, each behind an RMS norm and inside a residual sum.
//! Source: Touvron et al. 2023 (Llama); names as in its published checkpoints.

use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::{AttentionOptions, RotaryStyle};

/// What the layers of a decoder have in common.
#[derive(Clone, Copy)]
pub(super) struct Decoder {
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) ffn: usize,
    pub(super) eps: f32,
    /// Cosines and sines of the rotary embedding, where positions are embedded.
    pub(super) rotary: Option<[Value; 2]>,
}

/// What a layer attends to.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// Its own sequence, causally.
    Own,
    /// Another sequence of this width, all of it.
    Other(Value, usize),
}

impl Decoder {
    pub(super) fn check(&self) -> Result<(), Error> {
        super::check_numbers(&[
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("ffn", self.ffn),
        ])?;
        super::check_multiple("heads", self.heads, self.kv_heads, "kv_heads")?;
        super::check_multiple("head_dim", self.head_dim, 2, "the members of a rotated pair")
    }

    /// The layer of this name over `x [B, S, hidden]`.
    pub(super) fn layer(&self, g: &mut Graph, name: &str, x: Value, source: Source) -> Value {
        g.layer(name, |g| {
            let h = self.norm(g, &format!("{name}.input_layernorm"), x);
            let a = self.attend(g, &format!("{name}.self_attn"), h, source);
            let x = g.add(x, a);
            let h = self.norm(g, &format!("{name}.post_attention_layernorm"), x);
            let f = self.feed_forward(g, &format!("{name}.mlp"), h);
            g.add(x, f)
        })
    }

    pub(super) fn norm(&self, g: &mut Graph, name: &str, x: Value) -> Value {
        nn::RmsNorm::new(name, self.hidden).eps(self.eps).apply(g, x)
    }

    fn attend(&self, g: &mut Graph, name: &str, h: Value, source: Source) -> Value {
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let (seen, width, options) = match source {
            Source::Own => (h, self.hidden, AttentionOptions::causal()),
            Source::Other(value, width) => (value, width, AttentionOptions::default()),
        };
        let project = |part: &str, inputs, outputs| linear(&format!("{name}.{part}_proj"), inputs, outputs);
        let projections = [
            project("q", self.hidden, queries),
            project("k", width, keys),
            project("v", width, keys),
            project("o", queries, self.hidden),
        ];
        let attention = nn::MultiHeadAttention::new(projections, self.heads).kv_heads(self.kv_heads);
        let attention = attention.options(options);
        let attention = match self.rotary {
            Some(tables) => attention.rotary(tables, RotaryStyle::HalfSplit),
            None => attention,
        };
        attention.apply_across(g, h, seen)
    }

    /// `down(silu(gate(h)) * up(h))`.
    fn feed_forward(&self, g: &mut Graph, name: &str, h: Value) -> Value {
        let gate = linear(&format!("{name}.gate_proj"), self.hidden, self.ffn).apply(g, h);
        let up = linear(&format!("{name}.up_proj"), self.hidden, self.ffn).apply(g, h);
        let gate = gate.silu(g);
        let product = g.mul(gate, up);
        linear(&format!("{name}.down_proj"), self.ffn, self.hidden).apply(g, product)
    }
}

fn linear(name: &str, inputs: usize, outputs: usize) -> nn::Linear {
    nn::Linear::new(name, inputs, outputs).bias(false)
}

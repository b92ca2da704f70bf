//! Multi-head attention between four projections.

use super::Linear;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::{AttentionOptions, RotaryStyle};

/// Projects to queries, keys and values, attends per head, projects back. The projections are layers of their own, so their
/// names and biases are the model's: `q_proj`, `k_proj`, `v_proj`, `o_proj` and the like.
#[derive(Clone, Debug)]
pub struct MultiHeadAttention {
    projections: [Linear; 4],
    heads: usize,
    kv_heads: usize,
    options: AttentionOptions,
    rotary: Option<([Value; 2], RotaryStyle)>,
}

impl MultiHeadAttention {
    /// Attention of `heads` heads between the projections of queries, keys, values and the result.
    #[must_use]
    pub fn new(projections: [Linear; 4], heads: usize) -> MultiHeadAttention {
        let options = AttentionOptions::default();
        MultiHeadAttention { projections, heads, kv_heads: heads, options, rotary: None }
    }

    /// Fewer heads of keys and values, each shared by `heads / kv_heads` heads of queries.
    #[must_use]
    pub fn kv_heads(mut self, kv_heads: usize) -> MultiHeadAttention {
        self.kv_heads = kv_heads;
        self
    }

    /// Mask, scale and bias of the scores.
    #[must_use]
    pub fn options(mut self, options: AttentionOptions) -> MultiHeadAttention {
        self.options = options;
        self
    }

    /// Rotates queries and keys by tables `[cos, sin]`, see [`Graph::rotary_embedding`].
    #[must_use]
    pub fn rotary(mut self, tables: [Value; 2], style: RotaryStyle) -> MultiHeadAttention {
        self.rotary = Some((tables, style));
        self
    }

    /// Adds the layer, attending within `x [B, S, width]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        self.apply_across(g, x, x)
    }

    /// Adds the layer, attending from `x [B, Sq, width]` to `memory [B, Sk, width]`.
    #[track_caller]
    pub fn apply_across(&self, g: &mut Graph, x: Value, memory: Value) -> Value {
        let [q, k, v, o] = &self.projections;
        let mut project = |layer: &Linear, x: Value, heads: usize| {
            let y = layer.apply(g, x);
            g.split_axis(y, 2, &[heads, 0])
        };
        let mut q = project(q, x, self.heads);
        let mut k = project(k, memory, self.kv_heads);
        let v = project(v, memory, self.kv_heads);
        if let Some((tables, style)) = self.rotary {
            [q, k] = [q, k].map(|x| g.rotary_embedding(x, tables, style));
        }
        let y = g.scaled_dot_product_attention(q, k, v, &self.options);
        let y = g.merge_axes(y, 2, 2);
        o.apply(g, y)
    }
}

//! What the architectures share.

use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::AttentionOptions;

/// `[B, S, H * D]` as `[B, S, H, D]`.
pub(super) fn heads(g: &mut Graph, x: Value, head_dim: usize) -> Value {
    g.split_axis(x, 2, &[0, head_dim])
}

/// Attention of queries `[B, Sq, Hq, D]` to keys and values `[B, Sk, Hkv, D]`, its heads merged: `[B, Sq, Hq * D]`.
pub(super) fn attention(g: &mut Graph, [q, k, v]: [Value; 3], causal: bool) -> Value {
    let options = if causal { AttentionOptions::causal() } else { AttentionOptions::default() };
    let y = g.scaled_dot_product_attention(q, k, v, &options);
    g.merge_axes(y, 2, 2)
}

//! What the architectures share.

use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::types::{DType, TensorType};

/// `[B, S, H * D]` as `[B, S, H, D]`.
pub(super) fn heads(g: &mut Graph, x: Value, head_dim: usize) -> Value {
    g.split_axis(x, 2, &[0, head_dim])
}

/// Attention of queries `[B, Sq, Hq, D]` to keys and values `[B, Sk, Hkv, D]`, its heads merged: `[B, Sq, Hq * D]`.
pub(super) fn attention(g: &mut Graph, qkv: [Value; 3], causal: bool) -> Value {
    let [kv_heads, width] = [2, 3].map(|i| g.dims(qkv[1]).get(i).copied().unwrap_or(1));
    let [q, k, v] = qkv.map(|x| g.permute(x, &[0, 2, 1, 3]));
    let q = g.split_axis(q, 1, &[kv_heads, 0]);
    let [k, v] = [k, v].map(|x| g.insert_axes(x, &[2]));
    let scores = g.matmul_with(q, k, [false, true]);
    let mut scores = g.scale(scores, (width as f32).sqrt().recip());
    if causal {
        let length = g.dims(scores).last().copied().unwrap_or(0);
        let words: Vec<u32> = (0..length * length).map(|i| u32::from(i % length <= i / length)).collect();
        let seen = g.constant_words(words.into(), TensorType::new(DType::Bool, [length, length]));
        let nothing = g.scalar(f32::NEG_INFINITY);
        scores = g.select(seen, scores, nothing);
    }
    let p = g.softmax(scores, -1);
    let y = g.matmul(p, v);
    let y = g.merge_axes(y, 1, 2);
    let y = g.permute(y, &[0, 2, 1, 3]);
    g.merge_axes(y, 2, 2)
}

/// Rotary position embedding of `[B, S, H, D]`, pairs (j, j + D / 2).
pub(super) fn rotary(g: &mut Graph, x: Value, base: f64) -> Value {
    let [s, d] = [1, 3].map(|i| g.dims(x).get(i).copied().unwrap_or(0));
    let half = d / 2;
    let angle = |i: usize| (i / half) as f64 * base.powf(-((i % half) as f64) / half as f64);
    let table = |g: &mut Graph, f: fn(f64) -> f64| {
        let values: Vec<f32> = (0..s * half).map(|i| f(angle(i)) as f32).collect();
        g.constant(&values, [s, 1, half])
    };
    let (cos, sin) = (table(g, f64::cos), table(g, f64::sin));
    let a = g.slice(x, 3, 0, Some(half as isize));
    let b = g.slice(x, 3, half as isize, None);
    let product = |g: &mut Graph, x, y| g.mul(x, y);
    let (ac, bs, as_, bc) = (product(g, a, cos), product(g, b, sin), product(g, a, sin), product(g, b, cos));
    let (first, second) = (g.sub(ac, bs), g.add(as_, bc));
    g.concat(&[first, second], 3)
}

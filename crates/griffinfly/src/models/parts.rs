//! What the architectures share.

use griffinfly_ir::graph::{Graph, Init, Value};
use griffinfly_ir::ops::Window2d;
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

/// Group norm of `[N, C, H, W]`.
pub(super) fn group_norm(g: &mut Graph, name: &str, groups: usize, channels: usize, x: Value) -> Value {
    let weight = g.parameter(&format!("{name}.weight"), [channels], Init::ONES);
    let bias = g.parameter(&format!("{name}.bias"), [channels], Init::ZEROS);
    let grouped = g.split_axis(x, 1, &[groups, 0]);
    let mean = g.mean_keep(grouped, &[2, 3, 4]);
    let centred = g.sub(grouped, mean);
    let squares = g.mul(centred, centred);
    let variance = g.mean_keep(squares, &[2, 3, 4]);
    let eps = g.scalar(1e-5);
    let variance = g.add(variance, eps);
    let scale = g.rsqrt(variance);
    let y = g.mul(centred, scale);
    let y = g.merge_axes(y, 1, 2);
    let [weight, bias] = [weight, bias].map(|p| g.insert_axes(p, &[1, 2]));
    let y = g.mul(y, weight);
    g.add(y, bias)
}

/// Convolution of `[N, C, T]` with kernel 3 and padding 1, with a bias.
pub(super) fn conv1d(g: &mut Graph, name: &str, channels: [usize; 2], stride: usize, x: Value) -> Value {
    let init = Init::Normal(0.02.into());
    let weight = g.parameter(&format!("{name}.weight"), [channels[1], channels[0], 3], init);
    let bias = g.parameter(&format!("{name}.bias"), [channels[1]], Init::ZEROS);
    let (x, weight) = (g.insert_axes(x, &[2]), g.insert_axes(weight, &[2]));
    let window = Window2d { stride: [1, stride], padding: [[0, 0], [1, 1]], ..Window2d::default() };
    let y = g.conv2d(x, weight, window);
    let y = g.drop_axes(y, &[2]);
    let bias = g.insert_axes(bias, &[1]);
    g.add(y, bias)
}

/// Nearest neighbours: `[N, C, H, W]` to twice the height and width.
pub(super) fn upsample(g: &mut Graph, x: Value) -> Value {
    let x = g.insert_axes(x, &[3, 5]);
    let x = g.expand(x, &[(3, 2), (5, 2)]);
    let x = g.merge_axes(x, 2, 2);
    g.merge_axes(x, 3, 2)
}

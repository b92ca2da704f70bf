//! Attention in whole programs: packed projections are read in place, whatever the bindings.

use crate::terms::compared;
use griffinfly_compile::{Options, compile, loops};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::Archetype;
use griffinfly_ir::ops::{AttentionOptions, RotaryStyle};
use griffinfly_ir::target::Target;

/// Grouped heads over one packed projection and an output projection, with the gradients of both weights.
fn block(has_bias: bool) -> Graph {
    let (b, s, hq, hkv, d) = (2, 12, 4, 2, 8);
    let mut g = Graph::new();
    let (x, w) = (g.input("x", [b * s, 24]), g.input("w", [(hq + 2 * hkv) * d, 24]));
    let out = g.input("out", [24, hq * d]);
    let bias = has_bias.then(|| g.input("bias", [hq, s, s]));
    let qkv = g.matmul_with(x, w, [false, true]);
    let qkv = g.split_axis(qkv, 0, &[b, s]);
    let heads = g.split_axis(qkv, 2, &[hq + 2 * hkv, d]);
    let [q, k, v] = [(0, hq), (hq, hq + hkv), (hq + hkv, hq + 2 * hkv)]
        .map(|(from, to)| g.slice(heads, 2, from as isize, Some(to as isize)));
    let options = AttentionOptions { bias, ..AttentionOptions::causal() };
    let y = g.scaled_dot_product_attention(q, k, v, &options);
    let y = g.merge_axes(y, 2, 2);
    let y = g.matmul_with(y, out, [false, true]);
    let loss = g.mean_all(y);
    g.output("loss", loss);
    for (i, d) in gradients(&mut g, loss, &[x, w, out]).expect("differentiable").into_iter().enumerate() {
        g.output(&format!("d{i}"), d);
    }
    g
}

#[test]
fn packed_projections_are_not_copied() {
    let made = loops(&block(false), &Target::minimal_vulkan(), &Options::default()).expect("compiles");
    let count = |kind| made.loops.iter().filter(|n| n.l.archetype() == kind).count();
    assert_eq!((count(Archetype::Attention), count(Archetype::Move)), (3, 0), "{made}");
}

/// With a bias the gradients of keys and values have seven operands and two results.
#[test]
fn gradients_with_a_bias_compile_for_eight_bindings() {
    let program = compile(&block(true), &Target::minimal_vulkan(), &Options::default()).expect("compiles");
    let most = program.dispatches.iter().map(|d| d.bindings.len()).max();
    assert!(most <= Some(8), "{most:?} bindings");
    let attention = program.dispatches.iter().filter(|d| d.instance.starts_with("attention")).count();
    assert_eq!(attention, 4);
}

/// Attention of rotated queries and keys over `s` positions, with its gradients.
fn rotated(s: usize, style: RotaryStyle, rotated: usize) -> Graph {
    let (heads, kv_heads, d, wide) = (2, 1, 8, 6);
    let mut g = Graph::new();
    let x = g.input("x", [s, wide]);
    let tables = g.rotary_constants(s, rotated, 100.0);
    let weights =
        [("q", heads), ("k", kv_heads), ("v", kv_heads)].map(|(name, n)| (g.input(name, [n * d, wide]), n));
    let projected = weights.map(|(w, n)| {
        let y = g.matmul_with(x, w, [false, true]);
        let y = g.split_axis(y, 0, &[1, s]);
        g.split_axis(y, 2, &[n, d])
    });
    let [q, k] = [0, 1].map(|i| g.rotary_embedding(projected[i], tables, style));
    let y = g.scaled_dot_product_attention(q, k, projected[2], &AttentionOptions::causal());
    let loss = g.mul(y, y);
    let loss = g.mean_all(loss);
    g.output("y", y);
    for (i, d) in
        gradients(&mut g, loss, &weights.map(|w| w.0)).expect("differentiable").into_iter().enumerate()
    {
        g.output(&format!("d{i}"), d);
    }
    g
}

#[test]
fn rotations_are_done_on_load() {
    for (style, part) in
        [(RotaryStyle::HalfSplit, 8), (RotaryStyle::HalfSplit, 4), (RotaryStyle::Interleaved, 8)]
    {
        let made = compared(&rotated(13, style, part));
        let maps: Vec<_> = made.loops.iter().filter(|n| n.l.archetype() == Archetype::Map).collect();
        let rotary =
            |n: &&&griffinfly_compile::lower::LoopNode| n.labels.iter().any(|l| l.contains("rotary"));
        assert_eq!(maps.iter().filter(rotary).count(), 0, "{style:?} {part}: {made}");
    }
}

#[test]
fn rotations_of_long_sequences_are_done_once() {
    let of = |s: usize| {
        let made = loops(&rotated(s, RotaryStyle::HalfSplit, 8), &Target::host(), &Options::default());
        let made = made.expect("compiles");
        made.loops.iter().filter(|n| n.l.archetype() == Archetype::Map).count()
    };
    // Queries and keys, and the gradients of both.
    assert_eq!(of(513) - of(512), 4);
}

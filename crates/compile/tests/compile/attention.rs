//! Attention in whole programs: packed projections are read in place, whatever the bindings.

use crate::terms::compared;
use griffinfly_compile::lower::{LoopGraph, LoopNode};
use griffinfly_compile::{Options, compile, loops};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::{Archetype, AttentionVariant, LoopKind};
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

/// Attention of rotated queries and keys over `s` positions, with its gradients or without.
fn rotated(s: usize, (style, rotated): (RotaryStyle, usize), has_gradients: bool) -> Graph {
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
    g.output("y", y);
    if has_gradients {
        let loss = g.mul(y, y);
        let loss = g.mean_all(loss);
        let made = gradients(&mut g, loss, &weights.map(|w| w.0)).expect("differentiable");
        made.into_iter().enumerate().for_each(|(i, d)| g.output(&format!("d{i}"), d));
    }
    g
}

/// Loops that do nothing but rotate.
fn rotations(made: &LoopGraph) -> usize {
    let is_rotation =
        |n: &&LoopNode| n.l.archetype() == Archetype::Map && n.labels.iter().any(|l| l.contains("rotary"));
    made.loops.iter().filter(is_rotation).count()
}

#[test]
fn attention_rotates_on_load() {
    let (half, interleaved) = (RotaryStyle::HalfSplit, RotaryStyle::Interleaved);
    for kind in [(half, 8), (half, 4), (interleaved, 8)] {
        let made = compared(&rotated(13, kind, false));
        assert_eq!(rotations(&made), 0, "{kind:?}: {made}");
        let made = compared(&rotated(13, kind, true));
        let operands = made.loops.iter().filter_map(|n| match &n.l.kind {
            LoopKind::Attention(a) => Some((a.variant, n.inputs.len())),
            _ => None,
        });
        // Queries, keys, values and tables; besides the results of the forward pass and what they are differentiated by, without tables.
        let (forward, gradient) = (AttentionVariant::Forward, 6);
        let mut operands: Vec<_> = operands.collect();
        operands.retain(|(variant, count)| (*variant, *count) != (forward, 5));
        assert!(operands.iter().all(|(variant, n)| *variant != forward && *n == gradient), "{operands:?}");
        // What the gradients read; the rotations back are part of the products that read them.
        assert_eq!((operands.len(), rotations(&made)), (2, 2), "{kind:?}: {made}");
    }
}

#[test]
fn rotations_of_long_sequences_are_done_once() {
    let target = Target { max_bindings: 16, ..Target::minimal_vulkan() };
    let of = |s: usize| {
        let graph = rotated(s, (RotaryStyle::HalfSplit, 8), false);
        rotations(&loops(&graph, &target, &Options::default()).expect("compiles"))
    };
    assert_eq!([of(512), of(513)], [0, 2]);
}

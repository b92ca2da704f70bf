//! Attention in whole programs: packed projections are read in place, whatever the bindings.

use griffinfly_compile::{Options, compile, loops};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::Archetype;
use griffinfly_ir::ops::AttentionOptions;
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

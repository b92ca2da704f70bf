//! The default geometries on a large device.

use super::{Geometry, choose, choose_among, realise_with};
use crate::{print, spirv};
use griffinfly_ir::attr::F32;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::loops::{Attention, AttentionMask, AttentionShape, AttentionVariant, Body};
use griffinfly_ir::ops::{AttentionOptions, Lowering};
use griffinfly_ir::target::{Contract, HalfFormat, Target};

/// An NVIDIA H200 as far as the choice looks at it.
fn large() -> Target {
    Target {
        is_hardware: true,
        compute_units: 132,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        ..Target::minimal_vulkan()
    }
}

fn choices(extents: [usize; 5], mask: AttentionMask) -> [String; 3] {
    use AttentionVariant::{Forward, GradKeyValue, GradQuery};
    [Forward, GradQuery, GradKeyValue]
        .map(|variant| choose(&attention(variant, extents, mask), &large()).unwrap().to_string())
}

fn attention(
    variant: AttentionVariant,
    [heads, kv_heads, queries, keys, width]: [usize; 5],
    mask: AttentionMask,
) -> Attention {
    Attention {
        variant,
        shape: AttentionShape { batch: 1, heads, kv_heads, queries, keys, width },
        scale: F32::from_f32(0.125),
        mask,
        q: Body::new(),
        k: Body::new(),
        v: Body::new(),
        bias: None,
        saved: None,
        stores: vec![],
    }
}

#[test]
fn long_sequences_get_large_blocks_and_short_ones_many() {
    let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
    let long = choices([6, 6, 1500, 1500, 64], full);
    assert_eq!(long, ["24x64 by 8x16", "24x32 by 8x16", "24x32 by 8x16"]);
    let short = choices([9, 3, 128, 128, 64], causal);
    assert_eq!(short, ["8x32 by 8x16", "4x32 by 4x32", "4x64 by 4x64"]);
    let middle = choices([4, 4, 1024, 1024, 32], full);
    assert_eq!(middle, ["32x64 by 8x16", "32x64 by 8x16", "32x64 by 8x16"]);
    let cross = choices([15, 5, 50, 16, 64], full);
    assert_eq!(cross, ["8x32 by 8x16", "8x32 by 8x16", "4x64 by 4x32"]);
}

/// One query leaves most of the device idle, however long the sequence; short sequences are not worth a second dispatch.
#[test]
fn few_queries_of_long_sequences_get_keys_in_parts() {
    let chosen = |keys| choices([9, 3, 1, keys, 64], AttentionMask::FULL);
    let [forward, dq, dkv] = chosen(4096);
    assert!(forward.ends_with(" split8") || forward.ends_with(" split4"), "{forward}");
    assert!(!dq.contains("split") && !dkv.contains("split"), "{dq} {dkv}");
    assert!(!chosen(128)[0].contains("split"), "{}", chosen(128)[0]);
}

/// What no driver here runs: every kernel with matrices of half precision as a module, within its memory.
#[test]
fn kernels_for_matrix_units_are_modules() {
    let target = Target { matrix_formats: vec![HalfFormat::F16, HalfFormat::Bf16], ..large() };
    let mut g = Graph::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name, [1, 100, 6, 64]));
    let y = g.scaled_dot_product_attention(q, k, v, &AttentionOptions::default());
    let loss = g.mean_all(y);
    gradients(&mut g, loss, &[q, k, v]).unwrap();
    let mut count = 0;
    for id in g.ids() {
        let Lowering::Loop(l) = g.lowering(id) else { continue };
        let LoopKind::Attention(a) = &l.kind else { continue };
        for geometry in Geometry::all().into_iter().filter(|geometry| geometry.is_matrix) {
            if !geometry.fits(a, &target) {
                continue;
            }
            let dispatch = realise_with(&l, &target, geometry).unwrap().dispatches.remove(0);
            assert_eq!(dispatch.numeric, geometry.class(a.variant));
            let text = print::wgsl(&dispatch.kernel, &print::PrintOptions::default());
            spirv::compile(&text, print::ENTRY)
                .unwrap_or_else(|error| panic!("{geometry} {:?}: {error}\n{text}", a.variant));
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}

/// With leave to round: matrices where much is run over.
#[test]
fn matrix_units_take_long_sequences() {
    let units = Target { matrix_formats: vec![HalfFormat::F16, HalfFormat::Bf16], ..large() };
    let full = AttentionMask::FULL;
    let chosen = |target: &Target, queries: usize, is_derivative: bool| {
        let variant = if is_derivative { AttentionVariant::GradQuery } else { AttentionVariant::Forward };
        let a = attention(variant, [6, 6, queries, queries, 64], full);
        choose_among(&a, target, Contract::Fast.classes(is_derivative)).unwrap()
    };
    assert_eq!(chosen(&units, 1500, false).to_string(), "matrix 96x32");
    assert_eq!(chosen(&units, 1500, true).to_string(), "matrix 96x32");
    assert!(!chosen(&units, 64, false).is_matrix);
    // Ordinary arithmetic would only be slower with rounded operands.
    assert!(!chosen(&large(), 1500, false).is_matrix);
    // f16 has no range for gradients.
    let a = attention(AttentionVariant::GradQuery, [6, 6, 1500, 1500, 64], full);
    assert!(!choose_among(&a, &units, Contract::Fast.classes(false)).unwrap().is_matrix);
}

//! The default geometries on a large device.

use super::choose;
use griffinfly_ir::attr::F32;
use griffinfly_ir::loops::{Attention, AttentionMask, AttentionShape, AttentionVariant, Body};
use griffinfly_ir::target::Target;

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

fn choices([heads, kv_heads, queries, keys, width]: [usize; 5], mask: AttentionMask) -> [String; 3] {
    use AttentionVariant::{Forward, GradKeyValue, GradQuery};
    [Forward, GradQuery, GradKeyValue].map(|variant| {
        let a = Attention {
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
        };
        choose(&a, &large()).unwrap().to_string()
    })
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

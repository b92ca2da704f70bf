//! Programs for targets that track the use of whole buffers keep their rules.

use super::digits::digits;
use griffinfly_compile::program::{BindingAccess, Dispatch, Program, Work};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::optimizer::{Optimizer, SgdConfig};
use griffinfly_ir::target::Target;
use griffinfly_kernel::{print, spirv};
use std::collections::HashSet;

/// Asserts the rules for every dispatch; the number of those that declare an operand writable, or bind one as a result.
fn check(p: &Program) -> usize {
    let mut special = 0;
    for d in &p.dispatches {
        let Work::Kernel { kernel, .. } = &d.work else { panic!("{p}") };
        let kernel = &p.kernels[kernel.index()];
        assert_eq!(d.bindings.len(), kernel.bindings.len(), "{}", d.instance);
        let declared = || d.bindings.iter().zip(&kernel.bindings);
        for (n, (x, access)) in declared().enumerate() {
            assert!(x.access != BindingAccess::Write || *access == BindingAccess::Write, "{}", d.instance);
            for (y, other) in declared().skip(n + 1).filter(|(y, _)| y.arena == x.arena) {
                assert_eq!(access, other, "{}: one arena, two uses", d.instance);
                let meet = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
                assert!(*access == BindingAccess::Read || !meet, "{}: overlap", d.instance);
            }
        }
        special += usize::from(is_special(d, &kernel.bindings));
    }
    for kernel in &p.kernels {
        let text = &kernel.wgsl;
        assert!(!text.contains("@coherent") && !text.contains("atomic"), "{}", kernel.name);
        assert!(!text.contains("var<immediate>"), "{}", kernel.name);
        assert_eq!(kernel.parameter_words > 0, text.contains("var<uniform> params"), "{}", kernel.name);
        for cast in text.split("bitcast<f32>(0x").skip(1) {
            let bits = u32::from_str_radix(&cast[..8], 16).expect("eight digits");
            assert!(f32::from_bits(bits).is_finite(), "{}: a constant is {bits:#x}", kernel.name);
        }
        spirv::compile(text, print::ENTRY).expect("valid");
        assert!(kernel.spirv.is_empty());
    }
    special
}

fn is_special(d: &Dispatch, declared: &[BindingAccess]) -> bool {
    d.bindings.iter().zip(declared).any(|(binding, access)| binding.access != *access)
}

fn targets() -> [Target; 2] {
    let hardware = Target {
        is_hardware: true,
        compute_units: 132,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        max_workgroup_bytes: 32 << 10,
        ..Target::minimal_webgpu()
    };
    [Target::minimal_webgpu(), hardware]
}

#[test]
fn no_dispatch_mixes_uses_of_a_buffer() {
    for target in targets() {
        for optimizer in [Optimizer::Sgd(SgdConfig::default()), Optimizer::adam(1e-3)] {
            let p = compile(&digits(64, &optimizer), &target, &Options::default()).expect("compiles");
            assert!(check(&p) > 0, "nothing to declare otherwise\n{p}");
            let codes: HashSet<&str> = p.kernels.iter().map(|kernel| kernel.wgsl.as_str()).collect();
            assert_eq!(codes.len(), p.kernels.len(), "every kernel once");
        }
    }
}

#[test]
fn an_update_in_place_binds_its_parameter_once() {
    let mut g = Graph::new();
    let w = g.parameter("w", [300], Init::ZEROS);
    let x = g.input("x", [300]);
    let product = g.mul(w, x);
    let loss = g.sum(product, &[0]);
    griffinfly_ir::optimizer::attach(&mut g, &Optimizer::Sgd(SgdConfig::default()), loss).expect("attaches");
    let vulkan = compile(&g, &Target::minimal_vulkan(), &Options::default()).expect("compiles");
    let webgpu = compile(&g, &Target::minimal_webgpu(), &Options::default()).expect("compiles");
    check(&webgpu);
    let most = |p: &Program| p.dispatches.iter().map(|d| d.bindings.len()).max();
    assert!(most(&webgpu) < most(&vulkan), "{webgpu}\n{vulkan}");
}

/// An intermediate that a convolution reads element by element and its epilogue four at a time is bound once.
#[test]
fn a_residual_around_a_convolution_compiles() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 8, 16, 16]);
    let w = g.parameter("w", [8, 8, 3, 3], Init::ZEROS);
    let window = griffinfly_ir::ops::Window2d::strided(1).padded(1);
    let mut h = g.conv2d(x, w, window);
    for _ in 0..3 {
        let y = g.conv2d(h, w, window);
        h = g.add(h, y);
    }
    g.output("h", h);
    let vulkan = Target { backend: griffinfly_ir::target::Backend::Vulkan, ..targets()[1].clone() };
    let twice = |d: &Dispatch| {
        let same = |n: usize, m: usize| {
            let (a, b) = (d.bindings[n], d.bindings[m]);
            (a.arena, a.offset) == (b.arena, b.offset)
        };
        (0..d.bindings.len()).any(|n| (0..n).any(|m| same(n, m)))
    };
    let p = compile(&g, &vulkan, &Options::default()).expect("compiles");
    assert!(p.dispatches.iter().any(twice), "Vulkan binds it both ways\n{p}");
    for target in targets() {
        check(&compile(&g, &target, &Options::default()).expect("compiles"));
    }
}

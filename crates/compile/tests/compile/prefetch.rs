//! Dispatches that bring weights into the cache a level early.

use griffinfly_compile::program::{BindingAccess, Dispatch, Program, SectionKind};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::ops::Window2d;
use griffinfly_ir::target::Target;

/// A large device.
fn large() -> Target {
    Target {
        max_bindings: 16,
        is_hardware: true,
        compute_units: 132,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        ..Target::minimal_vulkan()
    }
}

/// Convolutions with so many channels, one after the other.
fn convolutions(count: usize, channels: usize, target: &Target) -> Program {
    let mut g = Graph::new();
    let mut y = g.input("x", [1, channels, 7, 7]);
    for i in 0..count {
        let w = g.parameter(&format!("w{i}"), [channels, channels, 3, 3], Init::ZEROS);
        y = g.conv2d(y, w, Window2d::strided(1).padded(1));
    }
    g.output("y", y);
    compile(&g, target, &Options::default()).expect("compiles")
}

/// Prefetches of the levels of the forward section, and the other dispatches.
fn levels(p: &Program) -> Vec<[Vec<&Dispatch>; 2]> {
    let section = p.sections.iter().find(|s| s.kind == SectionKind::ForwardBackward).expect("is there");
    let of = |level: &Vec<_>| {
        let all = level.iter().map(|id: &griffinfly_compile::program::DispatchId| &p.dispatches[id.index()]);
        let (prefetches, others): (Vec<_>, Vec<_>) = all.partition(|d| d.is_prefetch());
        [prefetches, others]
    };
    section.levels.iter().map(of).collect()
}

#[test]
fn large_weights_are_read_a_level_early() {
    let p = convolutions(4, 512, &large());
    let levels = levels(&p);
    // 9 MiB each; the first convolution has no level before it.
    assert_eq!(levels.iter().map(|[prefetches, _]| prefetches.len()).sum::<usize>(), 3, "{p}");
    for (number, [prefetches, _]) in levels.iter().enumerate() {
        for d in prefetches {
            let [range, sink] = d.bindings[..] else { panic!("{d:?}") };
            let [_, next] = &levels[number + 1];
            let reader = next.iter().find(|d| d.bindings.contains(&range)).expect("the next level reads it");
            assert_eq!((range.access, sink.access), (BindingAccess::Read, BindingAccess::Write));
            assert_eq!((range.bytes, reader.source), (512 * 512 * 9 * 4, d.source));
            let used = p.dispatches.iter().filter(|d| !d.is_prefetch()).flat_map(|d| &d.bindings);
            assert!(used.into_iter().all(|b| b.arena != sink.arena), "nobody reads what it writes");
        }
    }
    assert_eq!(p.memory.physical_bytes, p.arenas.iter().map(|a| a.bytes).sum::<u64>());
}

#[test]
fn what_stays_in_the_cache_is_not_read_early_nor_on_other_devices() {
    let none = |p: &Program| p.dispatches.iter().all(|d| !d.is_prefetch());
    // 2.3 MiB each: from one step to the next they stay.
    assert!(none(&convolutions(4, 256, &large())));
    assert!(!none(&convolutions(14, 256, &large())));
    assert!(none(&convolutions(4, 512, &Target { compute_units: 24, ..large() })));
    assert!(none(&convolutions(4, 512, &Target { is_hardware: false, ..large() })));
}

//! Memory of whole programs: modes, budgets, and that no reuse of bytes changes what a dispatch reads.

use super::digits::digits;
use super::guard::lookup;
use super::programs::{Feeds, feeds, network, run};
use super::targets::lavapipe;
use griffinfly_compile::memory::Mode;
use griffinfly_compile::program::{BindingAccess, Program, SectionKind};
use griffinfly_compile::{CompileError, Options, compile};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::optimizer::{Optimizer, SgdConfig};
use griffinfly_ir::target::Target;
use std::collections::{BTreeMap, BTreeSet};

fn options(memory: Mode, budget: Option<u64>) -> Options {
    Options { memory, budget, ..Options::default() }
}

fn planned(g: &Graph, target: &Target, mode: Mode) -> Program {
    compile(g, target, &options(mode, None)).expect("compiles")
}

/// Eight branches of two products each: side by side they hold eight large temporaries, one after the other two.
fn branches() -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", [64, 32]);
    let w = g.parameter("w", [96, 32], Init::ZEROS);
    let mut total = g.scalar(0.0);
    for i in 0..8 {
        let k = g.parameter(&format!("k{i}"), [64, 96], Init::ZEROS);
        let wide = g.scale(w, i as f32 + 1.5);
        let y = g.matmul_with(x, wide, [false, true]);
        let z = g.matmul_with(k, y, [true, false]);
        let mean = g.mean_all(z);
        total = g.add(total, mean);
    }
    g.output("total", total);
    g
}

fn graphs() -> Vec<(&'static str, Graph)> {
    vec![
        ("digits", digits(5, &Optimizer::adamw(1e-3))),
        ("network", network()),
        ("branches", branches()),
        ("lookup", lookup(&Optimizer::momentum(0.1, 0.9))),
    ]
}

/// A dispatch whatever its number: its loop, and which of that loop's dispatches it is.
type Name = (u32, usize);

/// For every read of every dispatch, the dispatches whose bytes it sees.
fn flow(p: &Program) -> BTreeMap<(Name, usize), BTreeSet<Name>> {
    let mut written: Vec<BTreeMap<u64, Name>> = vec![BTreeMap::new(); p.arenas.len()];
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for id in p.sections.iter().flat_map(|s| s.levels.iter().flatten()) {
        let d = &p.dispatches[id.index()];
        let count = seen.entry(d.source.0).or_default();
        let name = (d.source.0, *count);
        *count += 1;
        for (i, b) in d.bindings.iter().enumerate().filter(|(_, b)| b.access == BindingAccess::Read) {
            let words = (b.offset..b.offset + b.bytes).step_by(4);
            let from = words.filter_map(|at| written[b.arena.index()].get(&at).copied()).collect();
            out.insert((name, i), from);
        }
        for b in d.bindings.iter().filter(|b| b.access == BindingAccess::Write) {
            for at in (b.offset..b.offset + b.bytes).step_by(4) {
                written[b.arena.index()].insert(at, name);
            }
        }
    }
    out
}

#[test]
fn in_every_mode_every_dispatch_reads_what_was_written_for_it() {
    for target in [Target::host(), lavapipe(), Target::minimal_vulkan()] {
        for (what, g) in graphs() {
            let expected = flow(&planned(&g, &target, Mode::Separate));
            for mode in [Mode::Speed, Mode::Memory] {
                let p = planned(&g, &target, mode);
                assert!(flow(&p) == expected, "{what} on {} in mode {mode:?}\n{p}", target.name);
            }
        }
    }
}

#[test]
fn every_mode_gives_the_same_bits() {
    let all = [("digits", digits(3, &Optimizer::Sgd(SgdConfig::default()))), ("network", network())];
    for (what, g) in all.into_iter().chain([("branches", branches())]) {
        let feeds: Feeds = feeds(&g);
        let expected = run(&planned(&g, &Target::host(), Mode::Separate), &feeds);
        for mode in [Mode::Speed, Mode::Memory] {
            assert!(run(&planned(&g, &Target::host(), mode), &feeds) == expected, "{what} in mode {mode:?}");
        }
    }
}

#[test]
fn speed_first_levels_are_those_without_any_reuse() {
    for (target, fuse) in [(Target::host(), true), (Target::host(), false), (lavapipe(), true)] {
        for (what, g) in graphs() {
            let [speed, separate] = [Mode::Speed, Mode::Separate].map(|mode| {
                compile(&g, &target, &Options { fuse, ..options(mode, None) }).expect("compiles")
            });
            assert_eq!(speed.sections, separate.sections, "{what} on {}, fused: {fuse}", target.name);
            assert_eq!((speed.memory.width, speed.memory.mode), (None, Mode::Speed));
            assert!(speed.memory.scratch_bytes <= separate.memory.scratch_bytes);
            assert_eq!(separate.memory.physical_bytes, separate.memory.logical_bytes);
        }
    }
}

#[test]
fn memory_first_is_smaller_and_close_to_its_bound() {
    for target in [Target::host(), lavapipe()] {
        for (what, g) in graphs() {
            let [speed, memory] = [Mode::Speed, Mode::Memory].map(|mode| planned(&g, &target, mode).memory);
            assert!(memory.scratch_bytes <= speed.scratch_bytes, "{what} on {}", target.name);
            assert!(memory.scratch_bytes as f64 <= 1.05 * memory.scratch_lower_bound as f64, "{what}");
            assert_eq!((memory.width, memory.mode), (Some(1), Mode::Memory));
        }
    }
    let bytes = |mode| planned(&branches(), &Target::host(), mode).memory.scratch_bytes;
    assert!(3 * bytes(Mode::Memory) < bytes(Mode::Speed), "{} {}", bytes(Mode::Memory), bytes(Mode::Speed));
}

#[test]
fn a_budget_is_met_step_by_step() {
    for target in [Target::host(), lavapipe()] {
        let g = branches();
        let speed = planned(&g, &target, Mode::Speed);
        let least = planned(&g, &target, Mode::Memory).memory.physical_bytes;
        let most = speed.memory.physical_bytes;
        let with = |budget| compile(&g, &target, &options(Mode::Speed, Some(budget)));
        assert_eq!(with(most).expect("fits"), speed);
        let mut widths = BTreeSet::new();
        let mut levels = Vec::new();
        for part in 0..=8 {
            let budget = least + (most - least) * part / 8;
            let p = with(budget).expect("fits");
            assert!(p.memory.physical_bytes <= budget, "{} over {budget}", p.memory.physical_bytes);
            widths.insert(p.memory.width);
            let forward = p.sections.iter().filter(|s| s.kind == SectionKind::ForwardBackward);
            levels.push(forward.map(|s| s.levels.len()).sum::<usize>());
        }
        assert!(widths.len() >= 3, "no step between: {widths:?}");
        assert!(levels[0] > levels[8], "{levels:?}");
    }
}

#[test]
fn a_budget_below_the_smallest_plan_is_refused_with_the_numbers() {
    let g = digits(8, &Optimizer::adam(1e-3));
    for target in [Target::host(), lavapipe()] {
        let memory = planned(&g, &target, Mode::Memory).memory;
        for mode in [Mode::Speed, Mode::Memory] {
            let refused = compile(&g, &target, &options(mode, Some(1000))).expect_err("too small");
            let text = refused.to_string();
            let CompileError::Budget { needed, budget, fixed, holders } = refused else {
                panic!("{refused}")
            };
            assert_eq!((needed, budget), (memory.physical_bytes, 1000));
            assert_eq!(fixed, memory.physical_bytes - memory.scratch_bytes);
            assert_eq!(holders, memory.peak_holders);
            assert!(text.contains(&format!("needs {needed} bytes, the budget is 1000")), "{text}");
            let p = compile(&g, &target, &options(mode, Some(needed))).expect("exactly enough");
            assert_eq!(p.memory.physical_bytes, needed);
            let again = compile(&g, &target, &options(mode, Some(needed - 1)));
            assert!(matches!(again, Err(CompileError::Budget { needed: n, .. }) if n == needed));
        }
    }
}

//! Ids made on the device: a flag tells of one out of range, and nothing is updated while it is raised.

use super::digits::digits;
use super::programs::{Feeds, check, feeds, run};
use griffinfly_compile::program::{IdGuard, Program, SectionKind};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::array::Array;
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::optimizer::{Optimizer, attach};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::TensorType;
use std::collections::HashMap;

/// Classes from a looked-up row: the ids and the classes are sums, so only the device knows them.
pub(crate) fn lookup(optimizer: &Optimizer) -> Graph {
    let mut g = Graph::new();
    let (a, b) = (g.input_ids("a", [6]), g.input_ids("b", [6]));
    let table = g.parameter("table", [5, 3], Init::ZEROS);
    let weight = g.parameter("weight", [4, 3], Init::ZEROS);
    let ids = g.add(a, b);
    let rows = g.scoped("lookup", |g| g.embedding(table, ids));
    let logits = g.matmul_with(rows, weight, [false, true]);
    let loss = g.scoped("loss", |g| g.cross_entropy(logits, ids));
    g.output("loss", loss);
    let seen = g.state("seen", [], 2.0);
    let one = g.scalar(1.0);
    let more = g.add(seen, one);
    g.update(seen, more);
    attach(&mut g, optimizer, loss).expect("differentiable");
    g
}

fn built(g: &Graph, target: &Target) -> (Program, IdGuard) {
    let p = compile(g, target, &Options::default()).expect("compiles");
    let guard = p.id_guard.clone().expect("has ids of its own");
    (p, guard)
}

/// Feeds with these ids, and values in all that is updated.
fn with_ids(g: &Graph, b: [f64; 6]) -> Feeds {
    let mut feeds = feeds(g);
    for (name, data) in [("a", vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), ("b", b.to_vec())] {
        feeds.insert(name.into(), Array { ty: feeds[name].ty.clone(), data });
    }
    feeds
}

fn flag(words: &HashMap<String, Vec<u32>>, p: &Program, external: usize) -> f32 {
    f32::from_bits(words[&p.externals[external].name][0])
}

const GOOD: [f64; 6] = [0.0, 0.0, 1.0, 2.0, 3.0, 2.0];

#[test]
fn good_ids_leave_the_flag_down() {
    let g = lookup(&Optimizer::momentum(0.1, 0.9));
    let feeds = with_ids(&g, GOOD);
    check(&g, &feeds, "lookup");
    let (p, guard) = built(&g, &Target::host());
    let words = run(&p, &feeds);
    assert_eq!((flag(&words, &p, guard.state), flag(&words, &p, guard.output)), (0.0, 0.0));
    assert_eq!(guard.failed(0.0), None);
}

/// Hosts with all the bindings there are, and with as few as the smallest devices have: there the guard is a step of its own.
fn hosts() -> [Target; 2] {
    [Target::host(), Target { max_bindings: 8, ..Target::host() }]
}

#[test]
fn an_id_out_of_range_is_told_by_its_first_use_and_stops_every_update() {
    for optimizer in [Optimizer::adamw(0.1), Optimizer::momentum(0.1, 0.9)] {
        let g = lookup(&optimizer);
        for target in hosts() {
            // 4 is a row of the table but no class; 5 and -1 are neither.
            assert_stopped(&g, &target, 4.0, ("loss.cross_entropy", 4));
            assert_stopped(&g, &target, 5.0, ("lookup.embedding", 5));
            assert_stopped(&g, &target, -1.0, ("lookup.embedding", 5));
        }
    }
}

/// With this id among good ones, the flag tells of this use and limit, and everything is as it was.
fn assert_stopped(g: &Graph, target: &Target, id: f64, told: (&str, i32)) {
    let (p, guard) = built(g, target);
    let mut ids = GOOD;
    ids[2] = id;
    let words = run(&p, &with_ids(g, ids));
    let raised = flag(&words, &p, guard.output);
    let failed = guard.failed(raised).expect("raised");
    assert_eq!((failed.operation.as_str(), failed.limit), told);
    assert_eq!(flag(&words, &p, guard.state), raised);
    assert_eq!(words["seen"], [2.0_f32.to_bits()]);
    let before = with_ids(g, GOOD);
    for name in ["table", "weight"] {
        assert_eq!(words[name], before[name].to_words(), "'{name}' after {id}");
    }
    let is_moment = |name: &str| name.contains(".adam_") || name.contains(".sgd_");
    for (name, kept) in words.iter().filter(|(name, _)| is_moment(name)) {
        assert!(kept.iter().all(|w| *w == 0), "'{name}' after {id}");
    }
}

#[test]
fn good_steps_update_as_the_oracle_does_however_few_the_bindings() {
    let g = lookup(&Optimizer::adamw(0.1));
    let [wide, narrow] = hosts().map(|target| run(&built(&g, &target).0, &with_ids(&g, GOOD)));
    assert!(wide == narrow);
    assert_ne!(wide["table"], with_ids(&g, GOOD)["table"].to_words());
    assert_eq!(wide["seen"], [3.0_f32.to_bits()]);
}

#[test]
fn a_raised_flag_stays_and_keeps_good_steps_from_updating() {
    let g = lookup(&Optimizer::adam(0.1));
    let (p, guard) = built(&g, &Target::host());
    let mut feeds = with_ids(&g, GOOD);
    let raised = Array { ty: TensorType::f32([]), data: vec![1.0] };
    feeds.insert(p.externals[guard.state].name.clone(), raised);
    let words = run(&p, &feeds);
    assert_eq!(flag(&words, &p, guard.output), 1.0);
    assert_eq!(words["seen"], [2.0_f32.to_bits()]);
    assert_eq!(words["table"], feeds["table"].to_words());
}

#[test]
fn the_guard_rides_the_update_where_bindings_allow() {
    let g = lookup(&Optimizer::adam(0.1));
    let updates = |p: &Program| -> usize {
        let sections = p.sections.iter().filter(|s| s.kind == SectionKind::Update);
        sections.flat_map(|s| &s.levels).map(Vec::len).sum()
    };
    let (p, _) = built(&g, &Target::host());
    assert_eq!(updates(&p), 3, "parameters, the state, the flag\n{p}");
    let (p, _) = built(&g, &Target::minimal_vulkan());
    assert!(p.kernels.iter().all(|k| k.bindings.len() <= 8), "{p}");
}

#[test]
fn ids_of_the_host_cost_nothing() {
    let p = compile(&digits(16, &Optimizer::adam(1e-3)), &Target::host(), &Options::default());
    assert_eq!(p.expect("compiles").id_guard, None);
}

#[test]
fn the_names_of_the_flag_are_free() {
    let mut g = lookup(&Optimizer::sgd(0.1));
    let taken = g.state("griffinfly.id_flag", [], 7.0);
    g.output("griffinfly.id_fault", taken);
    let (p, guard) = built(&g, &Target::host());
    let words = run(&p, &with_ids(&g, GOOD));
    assert_eq!(words["griffinfly.id_fault"], [7.0_f32.to_bits()]);
    assert_eq!(flag(&words, &p, guard.state), 0.0);
}

//! Whole programs: compiled, executed by the loop interpreter over plain memory, compared with the oracle.

use griffinfly_compile::program::{External, Program, Role, SectionKind, Work};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{Graph, Init, LeafKind, Region};
use griffinfly_ir::loops::interpret;
use griffinfly_ir::ops::samples;
use griffinfly_ir::target::Target;
use griffinfly_ir::types::DType;
use std::collections::HashMap;

pub(crate) type Feeds = HashMap<String, Array<f64>>;

/// Runs one step of a host program over NaN-poisoned memory and gives all externals' words after it.
pub(crate) fn run(p: &Program, feeds: &Feeds) -> HashMap<String, Vec<u32>> {
    let poisoned = |r: &Role| if *r == Role::Scratch { 0x7fc0_beef } else { 0 };
    let mut arenas: Vec<Vec<u32>> =
        p.arenas.iter().map(|a| vec![poisoned(&a.role); a.bytes as usize / 4]).collect();
    let range = |offset: u64, bytes: u64| offset as usize / 4..(offset + bytes) as usize / 4;
    for c in &p.constants {
        arenas[c.place.arena.index()][range(c.place.offset, c.words.len() as u64 * 4)]
            .copy_from_slice(&c.words);
    }
    for e in &p.externals {
        if let Some(v) = feeds.get(&e.name) {
            arenas[e.place.arena.index()][range(e.place.offset, e.ty.bytes() as u64)]
                .copy_from_slice(&v.to_words());
        }
    }
    for id in p.sections.iter().flat_map(|s| s.levels.iter().flatten()) {
        let d = &p.dispatches[id.index()];
        assert_eq!(d.work, Work::Loop);
        let l = &p.loops[d.source.index()];
        let operands: Vec<Vec<u32>> = d.bindings[..l.operands.len()]
            .iter()
            .map(|b| arenas[b.arena.index()][range(b.offset, b.bytes)].to_vec())
            .collect();
        let operands: Vec<&[u32]> = operands.iter().map(Vec::as_slice).collect();
        for (b, words) in d.bindings[l.operands.len()..].iter().zip(interpret(l, &operands)) {
            arenas[b.arena.index()][range(b.offset, b.bytes)].copy_from_slice(&words);
        }
    }
    let read = |e: &External| {
        (e.name.clone(), arenas[e.place.arena.index()][range(e.place.offset, e.ty.bytes() as u64)].to_vec())
    };
    p.externals.iter().map(read).collect()
}

/// Deterministic feeds for every leaf the host sets or owns.
pub(crate) fn feeds(g: &Graph) -> Feeds {
    let limits = g.id_limits();
    let mut out = Feeds::new();
    for (id, leaf) in g.leaves() {
        if matches!(leaf.kind, LeafKind::Constant(_) | LeafKind::State { .. }) {
            continue;
        }
        let n = leaf.ty.elements();
        let wave = |i: usize| f64::from(((i as f64 * 0.37 + id.index() as f64).sin() * 0.5) as f32);
        let data = match leaf.ty.dtype {
            DType::F32 => (0..n).map(wave).collect(),
            _ => {
                let limit = limits.get(&id).map_or(2, |l| l.limit as usize);
                (0..n).map(|i| (i * 7 % limit) as f64).collect()
            }
        };
        out.insert(leaf.name.clone(), Array { ty: leaf.ty.clone(), data });
    }
    out
}

/// Compiled with and without optimisation, a graph gives what the oracle gives.
pub(crate) fn check(g: &Graph, feeds: &Feeds, what: &str) {
    let oracle = eval::<f64>(g, feeds).unwrap_or_else(|e| panic!("{what}: {e}"));
    for optimise in [true, false] {
        let options = Options { fuse: optimise, rewrite: optimise, ..Options::default() };
        let p = compile(g, &Target::host(), &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        let reread = Program::from_bytes(&p.to_bytes().expect("serialises")).expect("rereads");
        assert_eq!(reread, p, "{what}");
        let found = run(&p, feeds);
        let updates = g.updates().iter().map(|u| (g.as_leaf(u.leaf).expect("leaf").name.clone(), u.value));
        let outputs = g.outputs().iter().map(|o| (o.name.clone(), o.value));
        for (name, v) in outputs.chain(updates) {
            let expected = oracle.get(v);
            let got: Array<f64> = Array::from_words(&expected.ty, &found[&name]);
            for (i, (x, y)) in got.data.iter().zip(&expected.data).enumerate() {
                let ok = (x - y).abs() <= 2e-5 * (1.0 + y.abs()) || (x.is_nan() && y.is_nan()) || x == y;
                assert!(ok, "{what} optimise {optimise} '{name}' [{i}]: {x}, expected {y}");
            }
        }
    }
}

#[test]
fn samples_and_their_gradients_survive_compilation() {
    for s in samples() {
        let mut feeds = Feeds::new();
        for (i, input) in s.inputs.iter().enumerate() {
            feeds.insert(i.to_string(), Array { ty: input.ty.clone(), data: input.values(i as u64 + 3) });
        }
        check(&s.graph(), &feeds, &s.describe());
        if !s.is_without_gradient()
            && let Ok(g) = s.gradient_graph()
        {
            check(&g, &feeds, &format!("gradient of {}", s.describe()));
        }
    }
}

/// A small network whose training step exercises epilogues, views, updates in place and copies.
pub(crate) fn network() -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", [6, 4, 5]);
    let w1 = g.parameter("w1", [7, 20], Init::ZEROS);
    let b1 = g.parameter("b1", [7], Init::ZEROS);
    let w2 = g.parameter("w2", [3, 7], Init::ZEROS);
    let flat = g.flatten(x, 1);
    let h = g.matmul_with(flat, w1, [false, true]);
    let h = g.add(h, b1);
    let h = g.relu(h);
    let y = g.matmul_with(h, w2, [false, true]);
    let y2 = g.mul(y, y);
    let loss = g.mean_all(y2);
    g.output("loss", loss);
    g.output("y", y);
    let p = [w1, b1, w2];
    let d = gradients(&mut g, loss, &p).expect("differentiable");
    let lr = g.step_scalar("lr");
    let running = g.state("running", [], 0.25);
    g.in_region(Region::Update, |g| {
        for (w, d) in p.into_iter().zip(d) {
            let v = g.mirror("velocity", w);
            let v2 = g.add(v, d);
            let s = g.mul(v2, lr);
            let w2 = g.sub(w, s);
            g.update(v, v2);
            g.update(w, w2);
        }
        let r = g.add(running, loss);
        g.update(running, r);
    });
    g
}

#[test]
fn a_training_step_equals_the_oracle() {
    let g = network();
    g.finish().expect("builds");
    check(&g, &feeds(&g), "network");
}

#[test]
fn a_training_step_is_fused_and_its_updates_are_one_dispatch() {
    let p = compile(&network(), &Target::host(), &Options::default()).expect("compiles");
    println!("{p}");
    let updates = p.sections.iter().filter(|s| s.kind == SectionKind::Update);
    let dispatches: usize = updates.flat_map(|s| &s.levels).map(Vec::len).sum();
    assert_eq!(dispatches, 2, "one multi-tensor update, one for the running state\n{p}");
    assert!(p.dispatches.len() <= 12, "{} dispatches\n{p}", p.dispatches.len());
}

#[test]
fn step_scalars_can_be_read_named_and_kept() {
    let mut g = Graph::new();
    let x = g.input("x", [3, 5]);
    let [a, b, c] = ["a", "b", "c"].map(|name| g.step_scalar(name));
    let y = g.mul(x, b);
    let y = g.add(y, c);
    let kept = g.state("kept", [], 0.5);
    g.output("y", y);
    g.output("b", b);
    g.output("again", b);
    g.update(kept, a);
    g.finish().expect("builds");
    check(&g, &feeds(&g), "step scalars");
}

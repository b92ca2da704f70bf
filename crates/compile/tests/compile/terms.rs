//! Contractions that become one of several terms.

use crate::programs::{Feeds, feeds};
use griffinfly_compile::lower::{LoopGraph, Source, TensorId};
use griffinfly_compile::{Options, loops};
use griffinfly_ir::array::Array;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{ConstantData, Graph};
use griffinfly_ir::loops::{Contract, LoopKind, interpret};
use griffinfly_ir::target::Target;
use std::collections::HashMap;

/// Runs loops one by one and gives the words of the outputs.
pub(crate) fn run(made: &LoopGraph, feeds: &Feeds) -> HashMap<String, Vec<u32>> {
    let mut words: HashMap<TensorId, Vec<u32>> = HashMap::new();
    for (id, t) in (0..).map(TensorId).zip(&made.tensors) {
        let known = match &t.source {
            Source::Input { name, .. } | Source::Parameter(name, _) => feeds[name].to_words(),
            Source::Constant(ConstantData::Splat(s)) => vec![s.bits(); t.ty.elements()],
            Source::Constant(ConstantData::Words(w)) => w.to_vec(),
            _ => continue,
        };
        words.insert(id, known);
    }
    for node in &made.loops {
        assert_eq!(node.l.verify(), Vec::<String>::new());
        let operands: Vec<&[u32]> = node.inputs.iter().map(|t| words[t].as_slice()).collect();
        let results = interpret(&node.l, &operands);
        words.extend(node.outputs.iter().copied().zip(results));
    }
    made.outputs.iter().map(|(name, t)| (name.clone(), words[t].clone())).collect()
}

/// The contractions of a graph for a device with kernels, after comparison with the oracle.
fn contractions(g: &Graph) -> Vec<Contract> {
    let contract = |kind: &LoopKind| if let LoopKind::Contract(c) = kind { Some(c.clone()) } else { None };
    compared(g).loops.iter().filter_map(|node| contract(&node.l.kind)).collect()
}

/// The loops of a graph for a device with kernels, after comparison with the oracle.
pub(crate) fn compared(g: &Graph) -> LoopGraph {
    g.finish().expect("builds");
    let target = Target { max_bindings: 16, ..Target::minimal_vulkan() };
    let made = loops(g, &target, &Options::default()).expect("compiles");
    let feeds = feeds(g);
    let (oracle, found) = (eval::<f64>(g, &feeds).expect("evaluates"), run(&made, &feeds));
    for output in g.outputs() {
        let expected = oracle.get(output.value);
        let got: Array<f64> = Array::from_words(&expected.ty, &found[&output.name]);
        for (i, (x, y)) in got.data.iter().zip(&expected.data).enumerate() {
            assert!((x - y).abs() <= 2e-5 * (1.0 + y.abs()), "'{}' [{i}]: {x}, expected {y}", output.name);
        }
    }
    made
}

/// Terms and sums of each contraction.
fn shapes(g: &Graph) -> Vec<(usize, usize)> {
    contractions(g).iter().map(|c| (c.terms().count(), c.sums())).collect()
}

#[test]
fn a_gate_and_what_it_gates_share_the_left_factor() {
    for keeps in [false, true] {
        let mut g = Graph::new();
        let x = g.input("x", [5, 12]);
        let [gate, up] = ["gate", "up"].map(|name| g.input(name, [9, 12]));
        let a = g.matmul_with(x, gate, [false, true]);
        let b = g.matmul_with(x, up, [false, true]);
        let a = a.silu(&mut g);
        let y = g.mul(a, b);
        g.output("y", y);
        if keeps {
            g.output("b", b);
        }
        let made = contractions(&g);
        assert_eq!(made.len(), 1);
        assert_eq!((made[0].terms().count(), made[0].sums()), (2, 2));
        let left: Vec<_> = made[0].terms().map(|(_, a, ..)| a.clone()).collect();
        assert_eq!(left[0], left[1], "one left factor");
        assert_eq!(made[0].stores.len(), 1 + usize::from(keeps));
    }
}

#[test]
fn products_that_are_added_become_one_sum() {
    let mut g = Graph::new();
    let product = |g: &mut Graph, name: &str, k: usize| {
        let [x, w] =
            [("x", [5, k]), ("w", [k, 9])].map(|(kind, dims)| g.input(&format!("{kind}{name}"), dims));
        g.matmul(x, w)
    };
    let [p, q, r] = [("p", 7), ("q", 12), ("r", 3)].map(|(name, k)| product(&mut g, name, k));
    let residual = g.input("residual", [5, 9]);
    let y = g.add(p, q);
    let y = g.add(y, r);
    let y = g.add(y, residual);
    g.output("y", y);
    assert_eq!(shapes(&g), [(3, 1)]);
}

#[test]
fn a_difference_keeps_two_sums() {
    let mut g = Graph::new();
    let [x, v, w] = [("x", [5, 7]), ("v", [7, 9]), ("w", [7, 9])].map(|(name, dims)| g.input(name, dims));
    let (p, q) = (g.matmul(x, v), g.matmul(x, w));
    let y = g.sub(p, q);
    g.output("y", y);
    assert_eq!(shapes(&g), [(2, 2)]);
}

#[test]
fn what_depends_on_the_first_product_otherwise_stays_apart() {
    // The second product reads the first one's result as a factor too.
    let mut g = Graph::new();
    let (x, v, w) = (g.input("x", [5, 9]), g.input("v", [9, 9]), g.input("w", [9, 9]));
    let p = g.matmul(x, v);
    let q = g.matmul(p, w);
    let y = g.add(p, q);
    g.output("y", y);
    assert_eq!(shapes(&g), [(1, 1), (1, 1)]);
    // The result is read at another place.
    let mut g = Graph::new();
    let (x, v, w) = (g.input("x", [9, 7]), g.input("v", [7, 9]), g.input("w", [7, 9]));
    let (p, q) = (g.matmul(x, v), g.matmul(x, w));
    let p = g.transpose(p);
    let y = g.add(p, q);
    g.output("y", y);
    assert_eq!(contractions(&g).iter().map(|c| c.terms().count()).sum::<usize>(), 2);
}

#[test]
fn more_terms_than_a_loop_may_have_are_several_loops() {
    let mut g = Graph::new();
    let mut sum = g.input("y", [4, 6]);
    for i in 0..6 {
        let (x, w) = (g.input(&format!("x{i}"), [4, 5]), g.input(&format!("w{i}"), [5, 6]));
        let p = g.matmul(x, w);
        sum = g.add(sum, p);
    }
    g.output("sum", sum);
    let made = shapes(&g);
    assert_eq!(made.iter().map(|(terms, _)| terms).sum::<usize>(), 6);
    assert!(made.iter().all(|(terms, sums)| *terms <= 4 && *sums == 1), "{made:?}");
}

#[test]
fn a_split_product_of_nothing_but_constants_compiles() {
    let mut g = Graph::new();
    let (a, b) = (g.splat(1.0, [64, 512]), g.splat(2.0, [512, 64]));
    let y = g.matmul(a, b);
    g.output("y", y);
    let target = Target {
        is_hardware: true,
        compute_units: 132,
        max_workgroup_bytes: 48 << 10,
        max_iterations: u32::MAX,
        ..Target::minimal_vulkan()
    };
    let program = griffinfly_compile::compile(&g, &target, &Options::default()).expect("compiles");
    assert!(program.dispatches.iter().any(|d| d.instance.contains("joined")), "{program}");
}

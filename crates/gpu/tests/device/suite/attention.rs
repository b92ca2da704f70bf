//! The grid of attention problems on a device: results, log-sum-exps and all gradients against the oracle.
//!
//! A sample of the grid in the ordinary run, all of it with `GRIFFINFLY_TEST_FULL=1`.

use super::{Feeds, run_graph, with_device};
use crate::attention_grid::{Cell, grid};
use crate::under_test::{self, Wanted};
use griffinfly_gpu::Device;
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::SampleInput;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The outputs of a cell, named.
fn graph(cell: &Cell) -> Graph {
    let mut g = Graph::new();
    let operands = cell.operands();
    let leaves: Vec<Value> = operands.iter().map(|(name, dims)| g.input(name, dims.clone())).collect();
    let results = cell.attend(&mut g, &leaves);
    let loss = cell.loss(&mut g, results);
    let found = gradients(&mut g, loss, &leaves).unwrap_or_else(|e| panic!("{cell:?}: {e}"));
    ["y", "lse"].into_iter().zip(results).for_each(|(name, v)| g.output(name, v));
    operands.iter().zip(found).for_each(|((name, _), v)| g.output(&format!("d{name}"), v));
    g.finish().unwrap_or_else(|e| panic!("{cell:?}: {e}"));
    g
}

/// Runs a cell twice (over poison, then over what the first step left) and compares.
fn check(device: &Arc<dyn Device>, cell: &Cell) {
    let (g, mut feeds) = (graph(cell), Feeds::new());
    for (k, (_, leaf)) in g.leaves().filter(|(_, l)| !l.name.is_empty()).enumerate() {
        let sample = SampleInput::uniform(&leaf.ty.dims, -2.0, 2.0);
        feeds.insert(leaf.name.clone(), Array { data: sample.values(k as u64 + 5), ty: sample.ty });
    }
    let oracle = eval::<f64>(&g, &feeds).unwrap_or_else(|e| panic!("{e}"));
    let found = run_graph(device, &g, &feeds);
    // A single key has the probability 1: what its score's gradient is made of cancels out.
    let least = if cell.keys == 1 { 3e-5 } else { 1e-6 };
    for o in g.outputs() {
        let expected = oracle.get(o.value);
        let finite = expected.data.iter().filter(|x| x.is_finite());
        let scale = finite.fold(0.0f64, |m, x| m.max(x.abs()));
        let got: Array<f64> = Array::from_words(&expected.ty, &found[&o.name]);
        for (i, (x, y)) in got.data.iter().zip(&expected.data).enumerate() {
            let close = x == y || (x - y).abs() <= 1e-5 * (scale + y.abs()) + least;
            assert!(close, "{cell:?} '{}' [{i}]: {x}, expected {y}", o.name);
        }
    }
}

/// Every width, ratio and mode at lengths up to 128, and two of the long ones. The host also takes the longest.
fn sample() -> Vec<Cell> {
    let on_host = under_test::wanted() == Wanted::Host;
    let wanted = |c: &Cell| match [c.queries, c.keys, c.width] {
        [1500, 1500, _] => on_host,
        problem => SAMPLE.contains(&problem),
    };
    grid().into_iter().filter(wanted).collect()
}

/// Queries, keys and width of the cells that the ordinary run takes.
const SAMPLE: [[usize; 3]; 9] = [
    [50, 2, 32],
    [50, 50, 64],
    [128, 128, 72],
    [17, 1500, 80],
    [1500, 17, 80],
    [128, 50, 80],
    [17, 128, 128],
    [17, 50, 256],
    [50, 17, 256],
];

#[test]
fn device_attends_over_the_grid() {
    let full = std::env::var_os("GRIFFINFLY_TEST_FULL").is_some_and(|value| value == "1");
    let cells = if full { grid() } else { sample() };
    let of = |f: fn(&Cell) -> usize| cells.iter().map(f).collect::<BTreeSet<_>>().len();
    assert_eq!([of(|c| c.width), of(|c| c.ratio), of(|c| c.mode as usize)], [6, 3, 6]);
    with_device(|device| cells.iter().for_each(|cell| check(device, cell)));
}

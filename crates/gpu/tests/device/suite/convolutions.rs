//! The grid of convolutions on a device: results and both gradients against the sums of their products.
//!
//! Two cells of each kind in the ordinary run, all with `GRIFFINFLY_TEST_FULL=1`.

use super::{Feeds, run_graph, with_device};
use crate::convolution_grid::{Cell, grid};
use griffinfly_gpu::Device;
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::SampleInput;
use std::sync::Arc;

const LEAVES: [&str; 3] = ["x", "w", "c"];
const RESULTS: [&str; 3] = ["y", "dx", "dw"];

/// Adds a cell to a graph: its inputs and outputs have its number in front. "c" is the gradient of the result.
fn add(g: &mut Graph, n: usize, cell: &Cell) {
    let dims = cell.dims();
    let [x, w, c] = [0, 1, 2].map(|i| g.input(&format!("{n}.{}", LEAVES[i]), dims[i].clone()));
    let y = cell.build(g, [x, w]);
    let product = g.mul(c, y);
    let axes: Vec<isize> = (0..dims[2].len() as isize).collect();
    let loss = g.sum(product, &axes);
    let d = gradients(g, loss, &[x, w]).unwrap_or_else(|e| panic!("{cell:?}: {e}"));
    let results: [Value; 3] = [y, d[0], d[1]];
    RESULTS.into_iter().zip(results).for_each(|(name, v)| g.output(&format!("{n}.{name}"), v));
}

/// Runs cells as one program and compares.
fn check(device: &Arc<dyn Device>, cells: &[&Cell]) {
    let (mut g, mut feeds) = (Graph::new(), Feeds::new());
    for (n, cell) in cells.iter().enumerate() {
        add(&mut g, n, cell);
        for (k, (name, dims)) in LEAVES.into_iter().zip(cell.dims()).enumerate() {
            let sample = SampleInput::f32(&dims);
            let data = sample.values((3 * n + k) as u64);
            feeds.insert(format!("{n}.{name}"), Array { ty: sample.ty, data });
        }
    }
    g.finish().unwrap_or_else(|e| panic!("{e}"));
    let found = run_graph(device, &g, &feeds);
    for (n, cell) in cells.iter().enumerate() {
        let [x, w, c] = LEAVES.map(|name| &feeds[&format!("{n}.{name}")].data);
        for (name, expected) in RESULTS.into_iter().zip(cell.by_hand(x, w, c)) {
            let words = &found[&format!("{n}.{name}")];
            assert_eq!(words.len(), expected.len(), "{cell:?} {name}");
            for (i, (word, y)) in words.iter().zip(expected).enumerate() {
                let x = f64::from(f32::from_bits(*word));
                assert!((x - y).abs() <= 2e-5 * (1.0 + y.abs()), "{cell:?} {name} [{i}]: {x}, expected {y}");
            }
        }
    }
}

#[test]
fn device_convolves_over_the_grid() {
    let full = std::env::var_os("GRIFFINFLY_TEST_FULL").is_some_and(|value| value == "1");
    let cells = grid();
    let of_kind = |transposed: bool, line: bool| {
        let all = cells.iter().filter(move |c| (c.transposed, c.line) == (transposed, line));
        all.take(if full { usize::MAX } else { 2 })
    };
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    let cells: Vec<&Cell> =
        kinds.into_iter().flat_map(|(transposed, line)| of_kind(transposed, line)).collect();
    assert!(cells.len() >= 8);
    with_device(|device| cells.chunks(12).for_each(|some| check(device, some)));
}

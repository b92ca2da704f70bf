//! Faults that released systems of this kind had, each as a test of the whole kind.

use crate::support::{
    assert_close, by_lowering, by_reference, check_gradients, feeds, gradients_of, weighted,
};
use griffinfly_ir::graph::{Graph, Value};

fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(((i * 7919 % 101) as f32 - 50.0) / 40.0)).collect()
}

/// A loss kept as one partial per row breaks when it is scaled in the graph for batches above 1.
#[test]
fn a_scaled_loss_is_a_scalar_for_every_batch() {
    for batch in [1, 2, 5] {
        let mut g = Graph::new();
        let x = g.input("x", [batch, 3]);
        let ids = g.input_ids("ids", [batch]);
        let loss = g.cross_entropy(x, ids);
        assert_eq!(g.dims(loss), [0usize; 0]);
        let scaled = g.scale(loss, 8.0);
        let labels: Vec<f64> = (0..batch).map(|i| (i % 3) as f64).collect();
        let f = feeds(&g, &[("x", &ramp(batch * 3)), ("ids", &labels)]);
        check_gradients(&g, scaled, &["x"], &f, 15);
    }
}

/// Mean over all rows and positions, as for sequences.
#[test]
fn cross_entropy_averages_over_batch_and_positions() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 4]);
    let ids = g.input_ids("ids", [2, 3]);
    let loss = g.cross_entropy(x, ids);
    let f = feeds(&g, &[("x", &[0.0; 24]), ("ids", &[0.0, 1.0, 2.0, 3.0, 0.0, 1.0])]);
    assert_close(&crate::support::value(&g, &f, loss), &[4f64.ln()], 1e-12);
}

/// Weight gradients of norms were out of bounds for two or three rows.
#[test]
fn norm_gradients_for_few_and_many_rows() {
    for (rows, n) in [(1, 5), (2, 3), (3, 7), (17, 2)] {
        let mut g = Graph::new();
        let x = g.input("x", [rows, n]);
        let [gamma, beta] = ["gamma", "beta"].map(|name| g.input(name, [n]));
        let y = g.layer_norm(x, gamma, beta, 1e-3);
        let z = g.rms_norm(y, gamma, 1e-3);
        let loss = weighted(&mut g, z);
        let f = feeds(&g, &[("x", &ramp(rows * n)), ("gamma", &ramp(n)), ("beta", &[0.3; 7][..n])]);
        check_gradients(&g, loss, &["x", "gamma", "beta"], &f, 6);
    }
}

/// Variance as E[x^2] - E[x]^2 is 0 or negative for a row of 1e4 plus tiny differences.
#[test]
fn a_large_mean_does_not_swallow_the_variance() {
    let n = 64;
    let tiny: Vec<f64> = (0..n).map(|i| f64::from(1e4f32 + (i * 37 % n) as f32 / 256.0)).collect();
    let mut g = Graph::new();
    let x = g.input("x", [2, n]);
    let (gamma, beta) = (g.splat(1.0, [n]), g.splat(0.0, [n]));
    let y = g.layer_norm(x, gamma, beta, 1e-8);
    let constant = g.slice(x, 1, 0, Some(1));
    let constant = g.expand(constant, &[(1, n)]);
    let z = g.layer_norm(constant, gamma, beta, 1e-8);
    g.output("y", y);
    g.output("z", z);
    let f = feeds(&g, &[("x", &[tiny.clone(), tiny].concat())]);
    let (exact, found) = (by_reference(&g, &f), by_lowering(&g, &f));
    assert_close(&found[0], &exact[0], 1e-4);
    let variance = found[0][..n].iter().map(|v| v * v).sum::<f64>() / n as f64;
    assert!((variance - 1.0).abs() < 1e-3, "{variance}");
    assert!(found[1].iter().all(|v| v.abs() < 1e-3), "{:?}", found[1]);
}

/// The gradient of a split (slices of one value) was zero in one system.
#[test]
fn gradients_of_splits_join_again() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 6]);
    let parts = [(0, 2), (2, 3), (3, 6)].map(|(a, b)| g.slice(x, 1, a, Some(b)));
    let scaled: Vec<Value> = parts.iter().zip([2.0, 3.0, 5.0]).map(|(p, k)| g.scale(*p, k)).collect();
    let y = g.concat(&scaled, 1);
    let loss = crate::support::sum_all(&mut g, y);
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &ramp(12))]));
    assert_eq!(d[0], [2.0, 2.0, 3.0, 5.0, 5.0, 5.0].repeat(2));
}

/// Embedding gradients that overwrite instead of add lose repeated ids.
#[test]
fn repeated_ids_sum_their_gradients() {
    let mut g = Graph::new();
    let table = g.input("table", [4, 2]);
    let ids = g.input_ids("ids", [2, 3]);
    let y = g.embedding(table, ids);
    let loss = crate::support::sum_all(&mut g, y);
    let d = griffinfly_ir::autodiff::gradients(&mut g, loss, &[table]).unwrap()[0];
    g.output("d", d);
    let f = feeds(&g, &[("table", &ramp(8)), ("ids", &[3.0, 1.0, 3.0, 3.0, 0.0, 1.0])]);
    let expected = [1.0, 1.0, 2.0, 2.0, 0.0, 0.0, 3.0, 3.0];
    assert_eq!(by_reference(&g, &f)[0], expected);
    assert_eq!(by_lowering(&g, &f)[0], expected);
}

/// Ids outside their range read inside the table, in references and lowerings alike.
#[test]
fn ids_out_of_range_stay_in_bounds() {
    let mut g = Graph::new();
    let table = g.input("table", [3, 2]);
    let ids = g.input_ids("ids", [4]);
    let y = g.embedding(table, ids);
    let loss = g.cross_entropy_rows(y, ids, None);
    let d = {
        let sum = weighted(&mut g, loss);
        griffinfly_ir::autodiff::gradients(&mut g, sum, &[table]).unwrap()[0]
    };
    for (name, v) in [("y", y), ("loss", loss), ("d", d)] {
        g.output(name, v);
    }
    let table: Vec<f64> = (0..6).map(f64::from).collect();
    let f = feeds(&g, &[("table", &table), ("ids", &[-7.0, 99.0, 1.0, f64::from(i32::MIN)])]);
    let (exact, found) = (by_reference(&g, &f), by_lowering(&g, &f));
    assert_eq!(exact[0], [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 0.0, 1.0]);
    for (e, f) in exact.iter().zip(&found) {
        assert_close(f, e, 1e-5);
    }
}

/// Ties go to the first winner, whole and alone; so does its gradient.
#[test]
fn ties_are_not_shared() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    let top = g.max(x, &[1]);
    let low = g.min(x, &[1]);
    let sum = g.add(top, low);
    let loss = crate::support::sum_all(&mut g, sum);
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &[1.0, 1.0, 1.0, 0.0, 2.0, 2.0])]));
    assert_eq!(d[0], [2.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
}

/// An output that is also an intermediate value, a leaf, or given twice under other names stays.
#[test]
fn outputs_may_be_any_value() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let y = g.relu(x);
    let z = g.neg(y);
    for (name, v) in [("z", z), ("y", y), ("x", x), ("again", y)] {
        g.output(name, v);
    }
    g.finish().unwrap();
    let found = by_lowering(&g, &feeds(&g, &[("x", &[-1.0, 2.0])]));
    assert_eq!(found, [vec![0.0, -2.0], vec![0.0, 2.0], vec![-1.0, 2.0], vec![0.0, 2.0]]);
}

/// Means and errors over nothing are refused when the graph is built, not divided by zero when it runs.
#[test]
fn reductions_over_nothing_are_refused() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    g.mean(x, &[]);
    g.max(x, &[2]);
    g.sum(x, &[0, 0]);
    g.input("empty", [2, 0]);
    assert_eq!(g.finish().unwrap_err().0.len(), 4);
}

/// Broadcasting inside a loss averages the wrong thing without a word.
#[test]
fn a_squared_error_of_other_shapes_is_refused() {
    let mut g = Graph::new();
    let (a, b) = (g.input("a", [4, 1]), g.input("b", [4]));
    g.mse(a, b);
    let e = g.finish().unwrap_err().0.remove(0);
    assert_eq!((e.op.as_str(), e.inputs.len()), ("mse", 2));
    assert!(e.reason.contains("f32[4,1]") && e.reason.contains("f32[4]"), "{e}");
}

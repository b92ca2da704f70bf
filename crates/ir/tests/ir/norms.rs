//! Norms over channels: against layer norm of rearranged operands, against formulas, and what they refuse.

use crate::support::{assert_close, by_lowering, by_reference, check_gradients, feeds, weighted};
use griffinfly_ir::graph::{Graph, Init, Value};
use griffinfly_ir::ops::Window2d;

fn wave(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(((i * 53 + seed * 29) % 97) as f32 / 48.0 - 1.0)).collect()
}

/// Outputs by reference, after checking that lowering gives the same.
fn run(g: &mut Graph, outputs: &[Value], values: &[(&str, &[f64])]) -> Vec<Vec<f64>> {
    for (i, v) in outputs.iter().enumerate() {
        g.output(&format!("y{i}"), *v);
    }
    g.finish().unwrap();
    let f = feeds(g, values);
    let exact = by_reference(g, &f);
    for (found, exact) in by_lowering(g, &f).iter().zip(&exact) {
        assert_close(found, exact, 1e-5);
    }
    exact
}

#[test]
fn channel_norms_are_layer_norms_of_rearranged_operands() {
    let (n, c, s) = (3, 6, 4);
    let mut g = Graph::new();
    let x = g.input("x", [n, c, s]);
    let [gamma, beta] = ["gamma", "beta"].map(|name| g.input(name, [c]));
    let affine = |g: &mut Graph, normal: Value| {
        let [gamma, beta] = [gamma, beta].map(|v| g.insert_axes(v, &[1]));
        let scaled = g.mul(normal, gamma);
        g.add(scaled, beta)
    };
    let plain = |g: &mut Graph, rows: Value| {
        let width = *g.dims(rows).last().unwrap();
        let (one, zero) = (g.splat(1.0, [width]), g.splat(0.0, [width]));
        g.layer_norm(rows, one, zero, 1e-3)
    };
    let mut outputs = Vec::new();
    for groups in [1, 2, 3, 6] {
        outputs.push(g.group_norm(x, groups, [gamma, beta], 1e-3));
        let rows = g.split_axis(x, 1, &[groups, 0]);
        let rows = g.flatten(rows, 2);
        let normal = plain(&mut g, rows);
        let normal = g.split_axis(normal, 2, &[c / groups, s]);
        let normal = g.merge_axes(normal, 1, 2);
        outputs.push(affine(&mut g, normal));
    }
    outputs.push(g.batch_norm(x, [gamma, beta], 1e-3)[0]);
    let rows = g.permute(x, &[1, 0, 2]);
    let rows = g.flatten(rows, 1);
    let normal = plain(&mut g, rows);
    let normal = g.split_axis(normal, 1, &[n, s]);
    let normal = g.permute(normal, &[1, 0, 2]);
    outputs.push(affine(&mut g, normal));
    let values = [("x", wave(n * c * s, 1)), ("gamma", wave(c, 2)), ("beta", wave(c, 3))];
    let found = run(&mut g, &outputs, &values.each_ref().map(|(name, v)| (*name, v.as_slice())));
    for pair in found.chunks(2) {
        assert_close(&pair[0], &pair[1], 1e-12);
    }
}

#[test]
fn running_averages_follow_as_in_pytorch() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 1, 2]);
    let [gamma, beta] = [("gamma", Init::ONES), ("beta", Init::ZEROS)].map(|(n, i)| g.parameter(n, [1], i));
    let (mean, variance) = (g.state("mean", [1], 0.0), g.state("variance", [1], 1.0));
    let [y, m, v] = g.batch_norm(x, [gamma, beta], 0.0);
    g.update_running(mean, m, 0.1);
    g.update_running(variance, v, 0.1);
    let next: Vec<Value> = g.updates().iter().map(|u| u.value).collect();
    let values: [(&str, &[f64]); 5] = [
        ("x", &[1.0, 2.0, 4.0, 5.0]),
        ("gamma", &[1.0]),
        ("beta", &[0.0]),
        ("mean", &[10.0]),
        ("variance", &[2.0]),
    ];
    let found = run(&mut g, &[y, m, v, next[0], next[1]], &values);
    // Mean 3, sum of squared deviations 10: variance 2.5 for the result, 10/3 for the average.
    let r = 2.5f64.sqrt();
    assert_close(&found[0], &[-2.0 / r, -1.0 / r, 1.0 / r, 2.0 / r], 1e-12);
    assert_close(&found[1..].concat(), &[3.0, 10.0 / 3.0, 9.3, 2.0 + 0.1 * (10.0 / 3.0 - 2.0)], 1e-7);
}

#[test]
fn inference_and_folding_agree() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 4, 4]);
    let (w, b) = (g.input("w", [4, 3, 2, 2]), g.input("b", [4]));
    let [gamma, beta, mean] = ["gamma", "beta", "mean"].map(|name| g.input(name, [4]));
    let variance = g.input("variance", [4]);
    let bias = |g: &mut Graph, y: Value, b: Value| {
        let b = g.insert_axes(b, &[1, 2]);
        g.add(y, b)
    };
    let y = g.conv2d(x, w, Window2d::strided(1));
    let y = bias(&mut g, y, b);
    let y = g.batch_norm_inference(y, [gamma, beta], [mean, variance], 1e-3);
    let [fw, fb] = g.fold_batch_norm([w, b], [gamma, beta], [mean, variance], 1e-3);
    let z = g.conv2d(x, fw, Window2d::strided(1));
    let z = bias(&mut g, z, fb);
    let (x, w) = (wave(96, 1), wave(48, 2));
    let values: [(&str, &[f64]); 7] = [
        ("x", &x),
        ("w", &w),
        ("b", &[0.1, 0.2, -0.3, 0.4]),
        ("gamma", &[1.5, -0.5, 0.0, 2.0]),
        ("beta", &[0.0, 1.0, 2.0, 3.0]),
        ("mean", &[0.5, -0.5, 0.25, 0.0]),
        ("variance", &[0.0, 4.0, 1.0, 9.0]),
    ];
    let found = run(&mut g, &[y, z], &values);
    assert_close(&found[0], &found[1], 1e-12);
    // The third channel has weight 0: its bias alone is left.
    assert_close(&found[0][18..27], &[2.0; 9], 1e-12);
    let loss = weighted(&mut g, z);
    let f = feeds(&g, &values);
    check_gradients(&g, loss, &["x", "w", "b", "gamma", "beta", "mean"], &f, 4);
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let mut g = Graph::new();
    let (one, x, c) = (g.input("one", [1, 3, 1, 1]), g.input("x", [2, 3, 2]), g.input("c", [3]));
    let (single, four) = (g.input("single", [1]), g.input("four", [4]));
    g.batch_norm(one, [c, c], 1e-5);
    g.batch_norm(c, [c, c], 1e-5);
    g.batch_norm(x, [c, four], 1e-5);
    g.batch_norm(x, [c, c], -1.0);
    g.group_norm(x, 2, [c, c], 1e-5);
    g.group_norm(x, 0, [c, c], 1e-5);
    g.group_norm(x, 3, [four, c], 1e-5);
    // Tensors of one element would broadcast.
    g.batch_norm_inference(x, [c, c], [c, single], 1e-5);
    g.fold_batch_norm([x, c], [c, c], [c, c], 1e-5);
    let all = g.finish().unwrap_err().0;
    let expected = [
        ("batch_norm", "more than one value"),
        ("batch_norm", "[N, C, ..]"),
        ("batch_norm", "beta must be f32[3]"),
        ("batch_norm", "-1"),
        ("group_norm", "3 channels do not split into 2 groups"),
        ("group_norm", "into 0 groups"),
        ("group_norm", "gamma must be f32[3]"),
        ("batch_norm", "given [1]"),
        ("batch_norm", "given [3]"),
    ];
    assert_eq!(all.len(), expected.len(), "{all:?}");
    for (e, (op, reason)) in all.iter().zip(expected) {
        assert!(e.op == op && e.reason.contains(reason), "{e} should say {reason}");
    }
}

/// A batch norm of `x [2, 3]`, with a state that follows each of the given results.
fn followed(names: &[&str], state_first: bool) -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    let weights = [1.0, 0.0].map(|v| g.splat(v, [3]));
    let mut states = Vec::new();
    if state_first {
        states.extend(names.iter().map(|name| g.state(name, [3], 0.5)));
    }
    let [y, mean, variance] = g.batch_norm(x, weights, 1e-5);
    if !state_first {
        states.extend(names.iter().map(|name| g.state(name, [3], 0.5)));
    }
    for (running, statistic) in states.into_iter().zip([mean, variance]) {
        g.update_running(running, statistic, 0.25);
    }
    g.output("y", y);
    g.finish().unwrap();
    g
}

#[test]
fn inference_works_from_the_averages_that_training_keeps() {
    let f =
        |g: &Graph| feeds(g, &[("x", &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0]), ("m", &[0.5; 3]), ("v", &[4.0; 3])]);
    let g = followed(&["m", "v"], true);
    let still = g.with_running_averages();
    still.finish().unwrap();
    assert!(still.updates().is_empty() && still.verify().is_empty());
    let found = by_reference(&still, &f(&still)).remove(0);
    let expected: Vec<f64> =
        [1.0, 2.0, 3.0, 5.0, 8.0, 13.0].iter().map(|x| (x - 0.5) / (4.0_f64 + 1e-5).sqrt()).collect();
    assert_close(&found, &expected, 1e-6);
    assert_eq!(still.with_running_averages().to_string(), still.to_string());
    // Where one average is not kept, or belongs to no batch norm, there is nothing to work from.
    let half = followed(&["m"], true);
    assert_eq!(half.with_running_averages().to_string(), half.to_string());
    let mut other = Graph::new();
    let (x, count) = (other.input("x", [3]), other.state("count", [3], 0.0));
    other.update_running(count, x, 0.5);
    assert_eq!(other.with_running_averages().updates().len(), 1);
    let late = followed(&["m", "v"], false).with_running_averages();
    assert!(late.finish().unwrap_err().to_string().contains("declare 'm' before"));
}

#[test]
fn updates_that_are_no_averages_stay() {
    let mut g = followed(&["m", "v"], true);
    let steps = g.state("steps", [], 0.0);
    let one = g.scalar(1.0);
    let next = g.add(steps, one);
    g.update(steps, next);
    let still = g.with_running_averages();
    assert_eq!((g.updates().len(), still.updates().len()), (3, 1));
}

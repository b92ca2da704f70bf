//! Differentiation as a whole: paths, sums, errors, coefficients in mid-graph.

use crate::support::{assert_close, check_gradients, feeds, gradients_of, sum_all, value, weighted};
use griffinfly_ir::autodiff::{AutodiffError, gradients, unreached_parameters};
use griffinfly_ir::graph::{Graph, Init, Region, Value};
use griffinfly_ir::optimizer::{Optimizer, attach};

const X: [f64; 6] = [0.3, -0.7, 1.1, 0.2, -0.4, 0.9];

#[test]
fn gradients_of_all_uses_are_summed() {
    let mut g = Graph::new();
    let x = g.input("x", [6]);
    let square = g.mul(x, x);
    let triple = g.scale(x, 3.0);
    let both = g.add(square, triple);
    let all = g.add(both, x);
    let loss = sum_all(&mut g, all);
    let f = feeds(&g, &[("x", &X)]);
    let expected: Vec<f64> = X.iter().map(|x| 2.0 * x + 4.0).collect();
    assert_close(&gradients_of(&g, loss, &["x"], &f)[0], &expected, 1e-12);
}

#[test]
fn one_operation_may_use_a_value_twice() {
    let uses: [fn(&mut Graph, Value) -> Value; 6] = [
        |g, x| g.mul(x, x),
        |g, x| g.matmul_with(x, x, [false, true]),
        |g, x| g.concat(&[x, x], 1),
        |g, x| g.maximum(x, x),
        |g, x| g.mse(x, x),
        |g, x| {
            let row = g.slice(x, 0, 0, Some(1));
            let row = g.drop_axes(row, &[0]);
            g.layer_norm(x, row, row, 1e-3)
        },
    ];
    for apply in uses {
        let mut g = Graph::new();
        let x = g.input("x", [2, 3]);
        let y = apply(&mut g, x);
        let loss = weighted(&mut g, y);
        let f = feeds(&g, &[("x", &X)]);
        check_gradients(&g, loss, &["x"], &f, 6);
    }
}

#[test]
fn an_unused_parameter_gets_exact_zeros_and_is_reported() {
    let mut g = Graph::new();
    let used = g.parameter("used", [2], Init::ONES);
    let unused = g.parameter("unused", [2, 3], Init::ONES);
    let loss = sum_all(&mut g, used);
    assert_eq!(unreached_parameters(&g, loss), ["unused"]);
    let d = gradients(&mut g, loss, &[used, unused]).unwrap();
    let f = feeds(&g, &[("used", &[1.0, 2.0]), ("unused", &X)]);
    assert_eq!(value(&g, &f, d[0]), [1.0; 2]);
    assert_eq!(value(&g, &f, d[1]), [0.0; 6]);
    assert_eq!(g.dims(d[1]), [2, 3]);
}

#[test]
fn nothing_passes_stop_gradient_ids_or_truth_values() {
    let mut g = Graph::new();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|n| g.parameter(n, [3], Init::ONES));
    let stopped = g.stop_gradient(b);
    let product = g.mul(a, stopped);
    let choice = g.lt(c, a);
    let chosen = g.select(choice, product, a);
    let best = g.argmax(d, 0);
    let one = g.embedding(chosen, best);
    let loss = sum_all(&mut g, one);
    assert_eq!(unreached_parameters(&g, loss), ["b", "c", "d"]);
    let f = feeds(
        &g,
        &[("a", &[2.0, 3.0, 4.0]), ("b", &[5.0; 3]), ("c", &[0.0, 0.0, 9.0]), ("d", &[0.0, 2.0, 1.0])],
    );
    let found = gradients_of(&g, loss, &["a", "b", "c", "d"], &f);
    assert_eq!(found, [vec![0.0, 5.0, 0.0], vec![0.0; 3], vec![0.0; 3], vec![0.0; 3]]);
    let attached = attach(&mut g, &Optimizer::sgd(0.1), loss).unwrap();
    assert_eq!(attached.unreached, ["b", "c", "d"]);
    assert_eq!(attached.gradients.len(), 1);
}

#[test]
fn a_missing_gradient_names_operation_and_label() {
    let mut g = Graph::new();
    let w = g.parameter("w", [3], Init::ONES);
    let ww = g.mul(w, w);
    let loss = sum_all(&mut g, ww);
    attach(&mut g, &Optimizer::momentum(0.1, 0.9), loss).unwrap();
    let next = g.updates()[0].value;
    let second = sum_all(&mut g, next);
    let error = gradients(&mut g, second, &[w]).unwrap_err();
    let AutodiffError::NoGradient { op, label, reason, .. } = &error else { panic!("{error}") };
    assert_eq!((op.as_str(), label.as_str()), ("sgd", "w.sgd"));
    assert!(reason.contains("optimizer"), "{error}");
}

#[test]
fn a_loss_must_be_a_scalar_and_wanted_values_must_exist() {
    let mut other = Graph::new();
    let far = (0..9).map(|_| other.scalar(0.0)).last().unwrap();
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let ids = g.input_ids("ids", []);
    for loss in [x, ids] {
        let error = gradients(&mut g, loss, &[x]).unwrap_err();
        assert!(matches!(&error, AutodiffError::Loss(t) if *t == g.ty(loss).unwrap().to_string()), "{error}");
    }
    assert!(matches!(gradients(&mut g, far, &[x]), Err(AutodiffError::Loss(_))));
    let loss = sum_all(&mut g, x);
    assert_eq!(gradients(&mut g, loss, &[far]), Err(AutodiffError::Wanted("%8".into())));
    g.add(x, far);
    assert!(matches!(gradients(&mut g, loss, &[x]), Err(AutodiffError::Build(_))));
}

#[test]
fn derivative_nodes_are_marked_and_labelled() {
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    let loss = g.scoped("head", |g| {
        let y = g.tanh(x);
        sum_all(g, y)
    });
    let before = g.nodes().len();
    gradients(&mut g, loss, &[x]).unwrap();
    for id in g.ids().skip(before) {
        assert_eq!(g.node(id).region(), Region::Derivative);
    }
    let labelled = g.ids().skip(before).filter(|id| g.provenance(*id).iter().any(|l| l.starts_with("head")));
    assert!(labelled.count() > 0);
}

/// A loss on the way from the operation under test to the last scalar must not be taken for the last one.
#[test]
fn losses_and_reductions_keep_a_coefficient_behind_them() {
    let losses: [fn(&mut Graph, Value) -> Value; 9] = [
        |g, x| sum_all(g, x),
        |g, x| g.mean_all(x),
        |g, x| g.max(x, &[0, 1]),
        |g, x| g.min(x, &[0, 1]),
        |g, x| {
            let y = g.splat(0.25, [4, 3]);
            g.mse(x, y)
        },
        |g, x| {
            let ids = g.leaf("ids").unwrap();
            g.cross_entropy(x, ids)
        },
        |g, x| {
            let ids = g.leaf("ids").unwrap();
            g.cross_entropy_ignoring(x, ids, 1).0
        },
        |g, x| {
            let y = g.softmax(x, 0);
            weighted(g, y)
        },
        |g, x| {
            let y = g.log_softmax(x, -1);
            weighted(g, y)
        },
    ];
    for make in losses {
        let mut g = Graph::new();
        let x = g.input("x", [4, 3]);
        g.input_ids("ids", [4]);
        let scaled = g.scale(x, 1.5);
        let mid = make(&mut g, scaled);
        let curved = g.tanh(mid);
        let loss = g.scale(curved, 7.0);
        let data: Vec<f64> = (0..12).map(|i| (i * 5 % 12) as f64 * 0.11 - 0.5).collect();
        let f = feeds(&g, &[("x", &data), ("ids", &[2.0, 1.0, 0.0, 2.0])]);
        check_gradients(&g, loss, &["x"], &f, 12);
    }
}

/// The statistics a norm gives besides its result are differentiable too, and an expansion whose inputs depend on each
/// other is differentiated once: the second derivative goes through x directly and through mean and rstd.
#[test]
fn inputs_that_depend_on_each_other_are_not_counted_twice() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    let gamma = g.input("gamma", [3]);
    let beta = g.splat(0.1, [3]);
    let y = g.layer_norm(x, gamma, beta, 1e-2);
    let first = weighted(&mut g, y);
    let d = gradients(&mut g, first, &[x, gamma]).unwrap();
    let second = [weighted(&mut g, d[0]), weighted(&mut g, d[1])];
    let loss = g.add(second[0], second[1]);
    let f = feeds(&g, &[("x", &X), ("gamma", &[0.4, -1.2, 0.8])]);
    check_gradients(&g, loss, &["x", "gamma"], &f, 6);
}

//! Values at the edge: what references say and that lowerings say the same.

use crate::support::{agree, assert_close, both, feeds, gradients_of};
use griffinfly_ir::graph::{Graph, Value};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[test]
fn softmax_and_log_softmax_are_finite_for_large_logits() {
    let x = [1e4, -1e4, 0.0, -1e4, 1e4, 1e4];
    let y = both(&[2, 3], &x, |g, x| g.softmax(x, 1));
    assert_close(&y, &[1.0, 0.0, 0.0, 0.0, 0.5, 0.5], 1e-12);
    let y = both(&[2, 3], &x, |g, x| g.log_softmax(x, 1));
    let half = -std::f64::consts::LN_2;
    assert_close(&y, &[0.0, -2e4, -1e4, -2e4 + half, half, half], 1e-12);
}

#[test]
fn a_fully_masked_row_gives_zeros_and_zero_gradients() {
    let x = [-INF, -INF, -INF, 1.0, -INF, 1.0];
    let y = both(&[2, 3], &x, |g, x| g.softmax(x, -1));
    assert_eq!(y, [0.0, 0.0, 0.0, 0.5, 0.0, 0.5]);
    assert_eq!(both(&[3], &x[..3], |g, x| g.log_softmax(x, 0)), [-INF; 3]);
    let mut g = Graph::new();
    let x_in = g.input("x", [2, 3]);
    let y = g.softmax(x_in, 1);
    let loss = crate::support::weighted(&mut g, y);
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &x)])).remove(0);
    assert_eq!(d[..3], [0.0; 3]);
    assert!(d.iter().all(|d| d.is_finite()) && d[3] != 0.0 && d[4] == 0.0, "{d:?}");
}

#[test]
fn cross_entropy_is_finite_for_large_logits() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let ids = g.input_ids("ids", [4]);
    let rows = g.cross_entropy_rows(x, ids, None);
    let loss = g.cross_entropy(x, ids);
    let d = griffinfly_ir::autodiff::gradients(&mut g, loss, &[x]).unwrap()[0];
    for (name, v) in [("rows", rows), ("loss", loss), ("d", d)] {
        g.output(name, v);
    }
    let x = [1e4, -1e4, 0.0, 1e4, -1e4, 0.0, 0.0, 0.0, 0.0, -1e4, -1e4, -1e4];
    let found = agree(&g, &feeds(&g, &[("x", &x), ("ids", &[0.0, 1.0, 2.0, 0.0])]));
    let third = 3f64.ln();
    assert_close(&found[0], &[0.0, 2e4, third, third], 1e-12);
    assert_close(&found[1], &[(2e4 + 2.0 * third) / 4.0], 1e-12);
    let t = 1.0 / 12.0;
    let expected = [0.0, 0.0, 0.0, 0.25, -0.25, 0.0, t, t, t - 0.25, t - 0.25, t, t];
    assert_close(&found[2], &expected, 1e-12);
}

#[test]
fn cross_entropy_ignores_and_counts() {
    let build = |ids: &[f64]| {
        let mut g = Graph::new();
        let x = g.input("x", [3, 2]);
        let labels = g.input_ids("ids", [3]);
        let (loss, count) = g.cross_entropy_ignoring(x, labels, -100);
        let scaled = g.scale(loss, 6.0);
        let d = griffinfly_ir::autodiff::gradients(&mut g, scaled, &[x]).unwrap()[0];
        for (name, v) in [("loss", loss), ("count", count), ("d", d)] {
            g.output(name, v);
        }
        agree(&g, &feeds(&g, &[("x", &[0.0, 0.0, NAN, 1.0, 0.0, 0.0]), ("ids", ids)]))
    };
    let some = build(&[0.0, -100.0, 1.0]);
    assert_close(&some[0], &[std::f64::consts::LN_2], 1e-12);
    assert_eq!(some[1], [2.0]);
    assert_close(&some[2], &[-1.5, 1.5, 0.0, 0.0, 1.5, -1.5], 1e-12);
    let none = build(&[-100.0; 3]);
    assert_eq!(none, [vec![0.0], vec![0.0], vec![0.0; 6]]);
}

#[test]
fn nan_propagates_through_comparisons_and_reductions() {
    let x = [NAN, -1.0, 2.0, 0.5];
    let nan_first = |y: &[f64]| assert!(y[0].is_nan() && !y[1..].iter().any(|v| v.is_nan()), "{y:?}");
    nan_first(&both(&[4], &x, |g, x| g.relu(x)));
    nan_first(&both(&[4], &x, |g, x| {
        let one = g.scalar(1.0);
        g.maximum(x, one)
    }));
    nan_first(&both(&[4], &x, |g, x| {
        let one = g.scalar(1.0);
        g.minimum(one, x)
    }));
    nan_first(&both(&[4], &x, |g, x| {
        let (low, high) = (g.scalar(0.0), g.scalar(1.0));
        let y = g.maximum(x, low);
        g.minimum(y, high)
    }));
    nan_first(&both(&[2, 2], &x, |g, x| g.max(x, &[1])));
    nan_first(&both(&[2, 2], &x, |g, x| g.min(x, &[1])));
    nan_first(&both(&[2, 2], &x, |g, x| g.sum(x, &[1])));
    for reduce in [Graph::max, Graph::min] {
        assert!(both(&[4], &[1.0, 2.0, 3.0, NAN], |g, x| reduce(g, x, &[0]))[0].is_nan());
    }
    assert_eq!(both(&[4], &[1.0, NAN, 3.0, NAN], |g, x| g.argmax(x, 0)), [1.0]);
    assert!(both(&[2, 2], &x, |g, x| g.softmax(x, 1))[..2].iter().all(|v| v.is_nan()));
    assert!(both(&[2, 2], &x, |g, x| g.log_softmax(x, 1))[..2].iter().all(|v| v.is_nan()));
    assert!(
        both(&[2, 2], &x, |g, x| {
            let (gamma, beta) = (g.splat(1.0, [2]), g.splat(0.0, [2]));
            g.layer_norm(x, gamma, beta, 1e-5)
        })[..2]
            .iter()
            .all(|v| v.is_nan())
    );
}

#[test]
fn a_value_not_chosen_may_be_nan() {
    let y = both(&[3], &[-1.0, 0.0, 4.0], |g, x| {
        let (zero, root) = (g.scalar(0.0), g.sqrt(x));
        let sound = g.le(zero, x);
        g.select(sound, root, zero)
    });
    assert_eq!(y, [0.0, 0.0, 2.0]);
}

#[test]
fn powers_of_zero() {
    let mut g = Graph::new();
    let a = g.input("a", [5]);
    let b = g.input("b", [5]);
    let y = g.pow(a, b);
    let loss = crate::support::sum_all(&mut g, y);
    let d = griffinfly_ir::autodiff::gradients(&mut g, loss, &[a, b]).unwrap();
    for (name, v) in [("y", y), ("da", d[0]), ("db", d[1])] {
        g.output(name, v);
    }
    let f = feeds(&g, &[("a", &[0.0, 0.0, 0.0, 0.0, 2.0]), ("b", &[0.0, 2.0, 1.0, 1.5, 0.0])]);
    let found = agree(&g, &f);
    assert_eq!(found[0], [1.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(found[1], [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_close(&found[2], &[0.0, 0.0, 0.0, 0.0, 2f64.ln()], 1e-12);
}

#[test]
fn derivatives_at_kinks_and_poles() {
    let at_zero = |f: fn(&mut Graph, Value) -> Value| {
        let mut g = Graph::new();
        let x = g.input("x", [1]);
        let y = f(&mut g, x);
        let loss = crate::support::sum_all(&mut g, y);
        gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &[0.0])]))[0][0]
    };
    assert_eq!(at_zero(|g, x| g.relu(x)), 0.0);
    assert_eq!(at_zero(|g, x| g.abs(x)), 0.0);
    assert_eq!(at_zero(|g, x| g.sqrt(x)), INF);
    assert_eq!(at_zero(|g, x| g.rsqrt(x)), -INF);
}

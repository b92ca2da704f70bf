//! Choosing elements and summing along an axis: order, ties, NaN, infinities, repeated ids, bad calls.

use crate::support::{agree, assert_close, both, check_gradients, feeds, gradients_of, weighted};
use griffinfly_ir::graph::{Graph, Value};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn topk(x: &[f64], k: usize) -> (Vec<f64>, Vec<f64>) {
    let mut g = Graph::new();
    let input = g.input("x", [1, x.len()]);
    let (values, at) = g.topk(input, k, -1);
    g.output("values", values);
    g.output("at", at);
    g.finish().unwrap();
    let mut found = agree(&g, &feeds(&g, &[("x", x)]));
    (found.remove(0), found.remove(0))
}

/// All positions, so that the order is seen whole: through several loops of the chain.
#[test]
fn topk_orders_nan_ties_and_infinities() {
    let x = [1.0, -INF, NAN, 3.0, 1.0, INF, -INF, NAN, 3.0, f64::from(f32::MIN), -INF, 0.0, -0.0];
    let (values, at) = topk(&x, x.len());
    let expected = [2, 7, 5, 3, 8, 0, 4, 11, 12, 9, 1, 6, 10];
    assert_eq!(at, expected.map(|i: usize| i as f64));
    for (v, i) in values.iter().zip(expected) {
        assert!(*v == x[i] || (v.is_nan() && x[i].is_nan()));
    }
    assert_eq!(topk(&[-INF; 9], 9).1, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(topk(&[NAN; 8], 8).1, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(topk(&[5.0], 1), (vec![5.0], vec![0.0]));
}

#[test]
fn topk_along_an_inner_axis_passes_gradients_to_its_values() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 9, 3]);
    let (values, at) = g.topk(x, 7, 1);
    assert_eq!((g.dims(values), g.dims(at)), (&[2, 7, 3][..], &[2, 7, 3][..]));
    g.output("values", values);
    g.output("at", at);
    let loss = weighted(&mut g, values);
    let data: Vec<f64> = (0..54).map(|i| f64::from(i * 37 % 54)).collect();
    let f = feeds(&g, &[("x", &data)]);
    let found = agree(&g, &f);
    assert!((0..7).all(|j| found[0][3 * j] >= found[0][3 * (j + 1).min(6)]));
    check_gradients(&g, loss, &["x"], &f, 20);
}

#[test]
fn topk_refuses_what_it_cannot_find() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 300]);
    for (k, axis) in [(0, 1), (5, 0), (257, 1), (1, 2)] {
        let (values, at) = g.topk(x, k, axis);
        assert!(g.ty(values).is_none() && g.ty(at).is_none());
    }
    let errors = g.finish().unwrap_err().0;
    assert_eq!(errors.len(), 4);
    assert!(errors[1].reason.contains("k is 5") && errors[1].reason.contains("extent 4"), "{}", errors[1]);
}

#[test]
fn extrema_have_positions() {
    let x = [2.0, -1.0, -1.0, 2.0, 0.0, 1.0, NAN, -5.0, NAN];
    assert_eq!(both(&[3, 3], &x, |g, x| g.argmin(x, 1)), [1.0, 1.0, 0.0]);
    assert_eq!(both(&[3, 3], &x, |g, x| g.argmax(x, 1)), [0.0, 0.0, 0.0]);
    assert_eq!(both(&[3, 3], &x, |g, x| g.argmax(x, 0)), [2.0, 1.0, 2.0]);
}

/// Positions the device finds are in range by construction: no check at run time, and none of constant ids.
#[test]
fn positions_need_no_check() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 9]);
    let (values, at) = g.topk(x, 3, 1);
    let again = g.gather(x, 1, at);
    let best = g.argmax(x, 1);
    let hot = g.one_hot(best, 9);
    for (name, v) in [("values", values), ("again", again), ("hot", hot)] {
        g.output(name, v);
    }
    assert_eq!(g.unchecked_ids(), []);
    let narrow = g.one_hot(best, 8);
    g.output("narrow", narrow);
    assert_eq!(g.unchecked_ids().len(), 1);
}

#[test]
fn ids_choose_and_repeat() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 2]);
    let ids = g.input_ids("ids", [4]);
    let y = g.index_select(x, 1, ids);
    assert_eq!(g.dims(y), [2, 4, 2]);
    let rows = g.index_select(x, 0, ids);
    assert_eq!(g.dims(rows), [4, 3, 2]);
    let last = g.index_select(x, -1, ids);
    assert_eq!(g.dims(last), [2, 3, 4]);
    let limit = g.id_limits()[&ids.node()].limit;
    assert_eq!(limit, 2, "the tightest of 3, 2 and 2");
    let loss = weighted(&mut g, y);
    g.output("y", y);
    let data: Vec<f64> = (0..12).map(f64::from).collect();
    let f = feeds(&g, &[("x", &data), ("ids", &[2.0, 0.0, 2.0, 2.0])]);
    assert_eq!(agree(&g, &f)[0][..8], [4.0, 5.0, 0.0, 1.0, 4.0, 5.0, 4.0, 5.0]);
    check_gradients(&g, loss, &["x"], &f, 12);
    g.index_select(x, 3, ids);
    g.index_select(ids, 0, x);
    assert_eq!(g.finish().unwrap_err().0.len(), 2);
}

#[test]
fn scattered_sums_add_in_place() {
    let mut g = Graph::new();
    let (x, src) = (g.input("x", [2, 3]), g.input("src", [2, 4]));
    let ids = g.input_ids("ids", [2, 4]);
    let y = g.scatter_add(x, -1, ids, src);
    g.output("y", y);
    let loss = weighted(&mut g, y);
    let f = feeds(
        &g,
        &[
            ("x", &[10.0, 20.0, 30.0, 0.0, 0.0, 0.0]),
            ("src", &[1.0, 2.0, 3.0, 4.0, 5.0, NAN, 7.0, 8.0]),
            ("ids", &[2.0, 0.0, 2.0, 2.0, 0.0, 1.0, 0.0, 0.0]),
        ],
    );
    let found = agree(&g, &f).remove(0);
    assert_eq!(found[..4], [12.0, 20.0, 38.0, 20.0]);
    assert!(found[4].is_nan() && found[5] == 0.0, "NaN stays where it was added: {found:?}");
    assert_eq!(gradients_of(&g, loss, &["x"], &f)[0].len(), 6);
    let mut f = f;
    f.get_mut("src").unwrap().data[5] = 6.0;
    check_gradients(&g, loss, &["x", "src"], &f, 8);
    g.scatter_add(src, 1, ids, x);
    g.gather(x, 0, ids);
    g.gather(x, 2, ids);
    assert_eq!(g.finish().unwrap_err().0.len(), 3);
}

#[test]
fn one_hot_has_a_single_one() {
    let mut g = Graph::new();
    let ids = g.input_ids("ids", [3]);
    let y = g.one_hot(ids, 4);
    g.output("y", y);
    let f = feeds(&g, &[("ids", &[3.0, 0.0, 1.0])]);
    assert_eq!(agree(&g, &f)[0], [0., 0., 0., 1., 1., 0., 0., 0., 0., 1., 0., 0.]);
    assert_eq!(g.id_limits()[&ids.node()].limit, 4);
}

fn cumsum(x: &[f64], exclusive: bool, reverse: bool) -> Vec<f64> {
    both(&[x.len()], x, |g, x| g.cumsum_with(x, 0, exclusive, reverse))
}

#[test]
fn cumulative_sums_go_either_way() {
    let x = [1.0, 2.0, 4.0, 8.0];
    assert_eq!(cumsum(&x, false, false), [1.0, 3.0, 7.0, 15.0]);
    assert_eq!(cumsum(&x, true, false), [0.0, 1.0, 3.0, 7.0]);
    assert_eq!(cumsum(&x, false, true), [15.0, 14.0, 12.0, 8.0]);
    assert_eq!(cumsum(&x, true, true), [14.0, 12.0, 8.0, 0.0]);
}

/// An infinity or NaN reaches what comes after it, within its block and beyond, and nothing before.
#[test]
fn cumulative_sums_stay_clean_before_a_nan() {
    for (n, at) in [(20, 7), (100, 50), (600, 300)] {
        let mut x = vec![1.0; n];
        (x[at], x[at + 3]) = (INF, NAN);
        let found = cumsum(&x, false, false);
        let whole = |i: usize| found[i] == i as f64 + 1.0;
        assert!((0..at).all(whole) && found[at..at + 3] == [INF; 3], "{found:?}");
        assert!(found[at + 3..].iter().all(|v| v.is_nan()));
        let found = cumsum(&x, true, true);
        assert!(found[..at + 3].iter().all(|v| v.is_nan()) && found[n - 1] == 0.0);
        assert!((at + 3..n).all(|i| found[i] == (n - 1 - i) as f64));
    }
}

#[test]
fn cumulative_sums_differentiate_along_long_axes() {
    for (exclusive, reverse) in [(false, false), (true, true)] {
        let mut g = Graph::new();
        let x = g.input("x", [2, 45, 2]);
        let y: Value = g.cumsum_with(x, 1, exclusive, reverse);
        g.output("y", y);
        let loss = weighted(&mut g, y);
        let data: Vec<f64> = (0..180).map(|i| f64::from(i * 29 % 31) / 8.0).collect();
        let f = feeds(&g, &[("x", &data)]);
        agree(&g, &f);
        check_gradients(&g, loss, &["x"], &f, 9);
    }
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    g.cumsum(x, 1);
    let flags = g.lt(x, x);
    g.cumsum(flags, 0);
    assert_eq!(g.finish().unwrap_err().0.len(), 2);
    assert_close(&cumsum(&[0.5; 33], false, false)[30..], &[15.5, 16.0, 16.5], 1e-12);
}

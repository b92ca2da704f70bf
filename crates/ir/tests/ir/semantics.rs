//! What operations promise where systems differ: ties, wrapping, windows at the edge, common sums of gradients. The list of all
//! promises is in [`crate::pitfalls`].

use crate::support::{agree, feeds, gradients_of, weighted};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Window2d;
use griffinfly_ir::types::DType;

/// The weights of [`weighted`].
fn coefficient(i: usize) -> f64 {
    -2.5 * f64::from(0.5 + (i * 37 % 19) as f32 / 19.0)
}

#[test]
fn max_pool_gradient_goes_to_the_first_of_equal_elements() {
    let mut g = Graph::new();
    let x = g.input("x", [1, 1, 3, 4]);
    let y = g.max_pool2d(x, [2, 2], Window2d::strided(1));
    assert_eq!(g.dims(y), [1, 1, 2, 3]);
    let loss = weighted(&mut g, y);
    let values = [3.0, 3.0, 1.0, 1.0, 3.0, 2.0, 2.0, 1.0, 0.0, 2.0, 2.0, 2.0];
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &values)])).remove(0);
    let c = coefficient;
    // Windows 0 and 1 choose the first two elements, 3 the fourth of them, 2, 4 and 5 the first 2 that they see.
    let mut expected = [0.0; 12];
    for (window, chosen) in [0, 1, 6, 4, 5, 6].into_iter().enumerate() {
        expected[chosen] += c(window);
    }
    for (found, expected) in d.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{d:?}");
    }
}

#[test]
fn of_two_equal_operands_the_first_takes_the_gradient() {
    for choose in [Graph::maximum, Graph::minimum] {
        let mut g = Graph::new();
        let [a, b] = ["a", "b"].map(|name| g.input(name, [3]));
        let y = choose(&mut g, a, b);
        let loss = weighted(&mut g, y);
        let f = feeds(&g, &[("a", &[1.0, 0.0, -2.0]), ("b", &[1.0, -0.0, -2.0])]);
        let found = gradients_of(&g, loss, &["a", "b"], &f);
        assert!((0..3).all(|i| (found[0][i] - coefficient(i)).abs() < 1e-6), "{found:?}");
        assert_eq!(found[1], [0.0; 3]);
    }
}

fn integers(a: &[f64], b: &[f64], unsigned: bool) -> Vec<Vec<f64>> {
    let mut g = Graph::new();
    let [mut x, mut y] = ["a", "b"].map(|name| g.input_ids(name, [a.len()]));
    if unsigned {
        [x, y] = [x, y].map(|v| g.cast(v, DType::U32));
    }
    let results = [g.add(x, y), g.sub(x, y), g.mul(x, y), g.sum(y, &[0])];
    results.iter().enumerate().for_each(|(i, v)| g.output(&i.to_string(), *v));
    if !unsigned {
        let (negative, size) = (g.neg(x), g.abs(x));
        g.output("negative", negative);
        g.output("size", size);
    }
    g.finish().unwrap();
    let f = feeds(&g, &[("a", a), ("b", b)]);
    let found = crate::support::by_lowering(&g, &f);
    // Not within a tolerance: the oracle has every digit too.
    assert_eq!(crate::support::by_reference(&g, &f), found);
    found
}

#[test]
fn integer_arithmetic_wraps() {
    let pairs = [
        (i32::MAX, i32::MAX),
        (i32::MIN, -1),
        (i32::MIN, i32::MIN),
        (i32::MAX, i32::MIN),
        (46_341, 46_341),
        (123_456_789, -987_654_321),
        (-7, 3),
        (0, i32::MIN),
    ];
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(|p| (f64::from(p.0), f64::from(p.1))).unzip();
    let of = |f: fn(i32, i32) -> i32| pairs.iter().map(|p| f64::from(f(p.0, p.1))).collect::<Vec<_>>();
    let sum = pairs.iter().fold(0i32, |sum, p| sum.wrapping_add(p.1));
    let expected = [
        of(i32::wrapping_add),
        of(i32::wrapping_sub),
        of(i32::wrapping_mul),
        vec![f64::from(sum)],
        of(|a, _| a.wrapping_neg()),
        of(|a, _| a.wrapping_abs()),
    ];
    assert_eq!(integers(&a, &b, false), expected);
    let of = |f: fn(u32, u32) -> u32| {
        pairs.iter().map(|p| f64::from(f(p.0.cast_unsigned(), p.1.cast_unsigned()))).collect::<Vec<_>>()
    };
    let sum = vec![f64::from(sum.cast_unsigned())];
    let expected = [of(u32::wrapping_add), of(u32::wrapping_sub), of(u32::wrapping_mul), sum];
    assert_eq!(integers(&a, &b, true), expected);
}

/// Windows along an axis by PyTorch's rule, and what none of them may be: one that starts behind the input and its padding.
#[test]
fn ceil_mode_never_starts_a_window_outside_the_padded_input() {
    let (mut tried, mut dropped) = (0, 0);
    griffinfly_ir::array::each_point(&[9, 5, 6, 3], |p| {
        let [n, kernel, stride, padding] = [p[0] + 1, p[1] + 1, p[2] + 1, p[3]];
        if kernel > n + 2 * padding || 2 * padding > kernel {
            return;
        }
        let full = (n + 2 * padding - kernel).div_ceil(stride) + 1;
        let starts_outside = (full - 1) * stride >= n + padding;
        let expected = full - usize::from(starts_outside);
        let what = format!("{n} {kernel} {stride} {padding}");
        assert!((expected - 1) * stride < n + 2 * padding, "{what}");
        let mut g = Graph::new();
        let x = g.input("x", [1, 1, n]);
        let window = Window2d::strided(stride).padded(padding).ceil();
        let largest = g.max_pool1d(x, kernel, window);
        let mean = g.avg_pool1d(x, kernel, window, false);
        assert_eq!((g.dims(largest), g.dims(mean)), (&[1, 1, expected][..], &[1, 1, expected][..]), "{what}");
        g.output("largest", largest);
        g.output("mean", mean);
        let data: Vec<f64> = (0..n).map(|i| f64::from((i * 5 % 11) as f32) - 20.0).collect();
        let found = agree(&g, &feeds(&g, &[("x", &data)]));
        // Every window sees an element: its maximum is one, its mean lies between the least and the largest.
        assert!(found[0].iter().all(|v| data.contains(v)), "{what}: {found:?}");
        assert!(found[1].iter().all(|v| (-20.0..=-10.0).contains(v)), "{what}: {found:?}");
        tried += 1;
        dropped += usize::from(starts_outside);
    });
    assert!(tried > 300 && dropped > 20, "{tried} {dropped}");
}

/// A value that several operations use, through views and as several operands, behind one coefficient.
#[test]
fn a_value_used_again_gets_the_sum_of_its_gradients() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 2]);
    let turned = g.transpose(x);
    let row = g.slice(x, 0, 0, Some(1));
    let product = g.mul(x, turned);
    let all = g.add(product, row);
    let loss = g.sum_all(all);
    let loss = g.scale(loss, 3.0);
    let f = feeds(&g, &[("x", &[1.0, 2.0, 4.0, 8.0])]);
    // Of x01 x10 twice, of x00 and x11 squares, of the first row twice by broadcasting.
    let expected = [2.0 + 2.0, 8.0 + 2.0, 4.0, 16.0].map(|d| 3.0 * d);
    assert_eq!(gradients_of(&g, loss, &["x"], &f)[0], expected);
}

/// A loss of logits and ids, and how many ids counted.
type Counted = fn(&mut Graph, Value, Value) -> (Value, Value);

/// The loss of a batch whose targets are all ignored is 0 by itself, and so are its gradients behind a coefficient.
#[test]
fn a_batch_without_targets_has_loss_zero_and_says_so() {
    let losses: [Counted; 2] = [
        |g, x, ids| g.cross_entropy_ignoring(x, ids, -1),
        |g, x, ids| g.cross_entropy_smoothed(x, ids, -1, 0.1),
    ];
    for make in losses {
        let mut g = Graph::new();
        let x = g.input("x", [2, 3]);
        let ids = g.input_ids("ids", [2]);
        let (loss, count) = make(&mut g, x, ids);
        let curved = g.exp(loss);
        let scaled = g.scale(curved, -40.0);
        let d = griffinfly_ir::autodiff::gradients(&mut g, scaled, &[x]).unwrap()[0];
        for (name, v) in [("loss", loss), ("count", count), ("d", d)] {
            g.output(name, v);
        }
        let x = [1e4, -1e4, 0.0, f64::NAN, 1.0, f64::INFINITY];
        let found = agree(&g, &feeds(&g, &[("x", &x), ("ids", &[-1.0, -1.0])]));
        assert_eq!(found, [vec![0.0], vec![0.0], vec![0.0; 6]]);
    }
}

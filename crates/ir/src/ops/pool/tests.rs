//! Pooling against written expectations, through reference and lowering: ties, NaN, infinities, padding; bad calls.

use crate::array::Array;
use crate::eval::eval;
use crate::graph::{Graph, LeafKind, Value};
use crate::loops::Archetype;
use crate::ops::pool::{MaxPool2d, MaxPool2dGrad, Pool};
use crate::ops::window::tests::both;
use crate::ops::{Lowering, Payload, Signature, Window2d};
use crate::types::TensorType;
use std::collections::HashMap;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn image(g: &mut Graph, dims: [usize; 4]) -> Value {
    g.add_leaf("x", LeafKind::Input, TensorType::f32(dims))
}

fn floats(dims: [usize; 4], data: &[f64]) -> Array<f64> {
    Array { ty: TensorType::f32(dims), data: data.to_vec() }
}

/// Values and indices of a maximum pooling.
fn max(kernel: [usize; 2], window: Window2d, x: &Array<f64>) -> Vec<Vec<f64>> {
    let op = Payload::MaxPool2d(MaxPool2d { pool: Pool { kernel, window } });
    both(&op, std::slice::from_ref(x)).into_iter().map(|a| a.data).collect()
}

#[test]
fn ties_go_to_the_first_and_so_does_the_gradient() {
    let x = floats([1, 1, 3, 3], &[7., 7., 1., 7., 2., 2., 0., 2., 2.]);
    let window = Window2d::strided(1);
    let found = max([2, 2], window, &x);
    assert_eq!(found, [vec![7., 7., 7., 2.], vec![0., 0., 0., 0.]]);
    let index = Array { ty: TensorType::new(crate::types::DType::I32, [1, 1, 2, 2]), data: found[1].clone() };
    let dy = floats([1, 1, 2, 2], &[1., 10., 100., 1000.]);
    let op = MaxPool2dGrad { pool: Pool { kernel: [2, 2], window }, size: [3, 3] };
    let dx = both(&Payload::MaxPool2dGrad(op), &[index, dy]);
    assert_eq!(dx[0].data, [1., 10., 0., 100., 1000., 0., 0., 0., 0.]);
}

#[test]
fn windows_that_overlap_add_their_gradients() {
    let mut g = Graph::new();
    let x = image(&mut g, [1, 1, 3, 3]);
    let y = g.max_pool2d(x, [3, 3], Window2d::strided(1).padded(1));
    let c = g.constant(&[1., 2., 3., 4., 5., 6., 7., 8., 9.], [1, 1, 3, 3]);
    let weighted = g.mul(y, c);
    let loss = g.sum(weighted, &[0, 1, 2, 3]);
    let d = crate::autodiff::gradients(&mut g, loss, &[x]).expect("pooling has a gradient");
    let fed = floats([1, 1, 3, 3], &[5., 0., 0., 0., 1., 0., 0., 0., 9.]);
    let e = eval(&g, &HashMap::from([("x".to_string(), fed)])).expect("fed");
    assert_eq!(e.get(y).data, [5., 5., 1., 5., 9., 9., 1., 9., 9.]);
    assert_eq!(e.get(d[0]).data, [7., 0., 0., 0., 10., 0., 0., 0., 28.]);
}

#[test]
fn gradients_of_windows_that_do_not_overlap_are_maps() {
    let archetype = |stride| {
        let pool = Pool { kernel: [2, 2], window: Window2d::strided(stride) };
        let y = [1, 3, 6 / stride, 6 / stride].map(|d| d - usize::from(stride == 1 && d == 6));
        let inputs = [TensorType::new(crate::types::DType::I32, y), TensorType::f32(y)];
        let op = Payload::MaxPool2dGrad(MaxPool2dGrad { pool, size: [6, 6] });
        let outputs = op.infer(&inputs).expect("the inputs fit");
        match op.lower(&Signature { inputs: &inputs, outputs: &outputs }) {
            Lowering::Loop(l) => l.archetype(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((archetype(2), archetype(1)), (Archetype::Map, Archetype::Window));
}

#[test]
fn nan_wins_and_the_first_nan_is_named() {
    let x = floats([1, 1, 2, 4], &[1., NAN, INF, 0., NAN, 5., 3., NAN]);
    let found = max([2, 2], Window2d::strided(2), &x);
    assert!(found[0].iter().all(|v| v.is_nan()));
    assert_eq!(found[1], [1., 3.]);
    let mut g = Graph::new();
    let v = image(&mut g, [1, 1, 2, 4]);
    let y = g.avg_pool2d(v, [2, 2], Window2d::strided(2), true);
    let e = eval(&g, &HashMap::from([("x".to_string(), x)])).expect("fed");
    assert!(e.get(y).data.iter().all(|v| v.is_nan()));
}

#[test]
fn padding_never_wins_even_over_minus_infinity() {
    let x = floats([1, 1, 2, 2], &[-INF, -INF, -INF, -INF]);
    let found = max([3, 3], Window2d::strided(1).padded(2), &x);
    assert!(found[0].iter().all(|v| *v == -INF));
    // The first real element of each of the 4 x 4 windows: rows and columns start at -2, -1, 0, 1.
    let first = [2., 1., 0., 0.];
    let expected: Vec<f64> = first.iter().flat_map(|r| first.map(|c| r * 3. + c)).collect();
    assert_eq!(found[1], expected);
    let negative = floats([1, 1, 1, 2], &[-3., -4.]);
    assert_eq!(
        max([1, 2], Window2d { padding: [[0, 0], [1, 1]], ..Window2d::default() }, &negative)[0],
        [-3., -3., -4.]
    );
}

#[test]
fn averages_say_whether_padding_counts() {
    let x = floats([1, 1, 2, 2], &[4., 8., 12., 16.]);
    for (count_padding, expected) in [(true, [1., 3., 4., 10.]), (false, [4., 6., 8., 10.])] {
        let mut g = Graph::new();
        let v = image(&mut g, [1, 1, 2, 2]);
        let window = Window2d { padding: [[1, 0], [1, 0]], ..Window2d::default() };
        let y = g.avg_pool2d(v, [2, 2], window, count_padding);
        let all = g.global_avg_pool2d(v);
        let e = eval(&g, &HashMap::from([("x".to_string(), x.clone())])).expect("fed");
        assert_eq!(e.get(y).data, expected);
        assert_eq!(
            (e.get(all).data.as_slice(), e.get(all).dims()),
            ([10.].as_slice(), [1, 1, 1, 1].as_slice())
        );
    }
}

#[test]
fn maximum_pooling_differentiates_twice() {
    // loss = sum of the gradient's squares / 2 = sum over inputs of (what reaches them)^2 / 2.
    let mut g = Graph::new();
    let x = image(&mut g, [1, 1, 2, 2]);
    let c = g.add_leaf("c", LeafKind::Input, TensorType::f32([1, 1, 1, 1]));
    let y = g.max_pool2d(x, [2, 2], Window2d::strided(2));
    let weighted = g.mul(y, c);
    let loss = g.sum(weighted, &[0, 1, 2, 3]);
    let dx = crate::autodiff::gradients(&mut g, loss, &[x]).expect("first")[0];
    let squares = g.mul(dx, dx);
    let norm = g.sum(squares, &[0, 1, 2, 3]);
    let dc = crate::autodiff::gradients(&mut g, norm, &[c]).expect("second")[0];
    let feeds = HashMap::from([
        ("x".to_string(), floats([1, 1, 2, 2], &[0., 1., 4., 2.])),
        ("c".to_string(), floats([1, 1, 1, 1], &[3.])),
    ]);
    assert_eq!(eval(&g, &feeds).expect("fed").get(dc).data, [6.]);
}

#[test]
fn bad_calls_say_what_does_not_fit() {
    let mut g = Graph::new();
    let x = image(&mut g, [1, 2, 4, 4]);
    let one = Window2d::strided(1);
    for (kernel, window) in [
        ([2, 2], one.padded(2)),
        ([0, 2], one),
        ([2, 2], Window2d::strided(0)),
        ([7, 1], one),
        ([usize::MAX, 2], one),
    ] {
        assert!(g.max_pool2d(x, kernel, window).is_poison());
        assert!(g.avg_pool2d(x, kernel, window, false).is_poison());
    }
    let flat = g.sum(x, &[0]);
    assert!(g.max_pool2d(flat, [1, 1], one).is_poison());
    let all = g.finish().expect_err("all calls are wrong").0;
    let expected = ["padding 2", "kernel 0", "stride 0", "kernel of 7", "taps", "four dimensions"];
    let reasons: Vec<&str> = all.iter().step_by(2).map(|e| e.reason.as_str()).collect();
    assert_eq!(all.len(), 2 * expected.len() - 1);
    for (r, e) in reasons.iter().zip(expected) {
        assert!(r.contains(e), "'{r}' does not mention '{e}'");
    }
    let index = g.add_leaf("i", LeafKind::Input, TensorType::new(crate::types::DType::I32, [1, 2, 2, 2]));
    let op = MaxPool2dGrad { pool: Pool { kernel: [2, 2], window: Window2d::strided(2) }, size: [9, 4] };
    assert!(g.apply(Payload::MaxPool2dGrad(op), &[index, x]).is_poison());
}

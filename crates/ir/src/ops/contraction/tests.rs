//! Convolutions against numbers worked out by hand, and the errors of bad calls.

use crate::array::Array;
use crate::eval::eval;
use crate::graph::{Graph, Value};
use crate::ops::Window2d;
use crate::types::TensorType;
use std::collections::HashMap;

fn image(g: &mut Graph, name: &str, dims: [usize; 4]) -> Value {
    g.add_leaf(name, crate::graph::LeafKind::Input, TensorType::f32(dims))
}

fn feed(name: &str, dims: [usize; 4], data: &[f64]) -> (String, Array<f64>) {
    (name.into(), Array { ty: TensorType::f32(dims), data: data.to_vec() })
}

#[test]
fn small_convolution_and_its_gradients_equal_hand_computation() {
    let mut g = Graph::new();
    let (x, w) = (image(&mut g, "x", [1, 1, 3, 3]), image(&mut g, "w", [1, 1, 2, 2]));
    // Rows start at -1, 1; columns at 0, 2: the padding is one row above and one column after.
    let y = g.conv2d(x, w, Window2d { stride: [2, 2], padding: [[1, 0], [0, 1]], ..Window2d::default() });
    let c = g.constant(&[1.0, 2.0, 3.0, 4.0], [1, 1, 2, 2]);
    let weighted = g.mul(y, c);
    let loss = g.sum(weighted, &[0, 1, 2, 3]);
    let d = crate::autodiff::gradients(&mut g, loss, &[x, w]).expect("convolutions have gradients");
    let feeds = HashMap::from([
        feed("x", [1, 1, 3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 9.]),
        feed("w", [1, 1, 2, 2], &[1., 10., 100., 1000.]),
    ]);
    let e = eval(&g, &feeds).expect("all inputs are fed");
    assert_eq!(e.get(y).data, [2100., 300., 8754., 906.]);
    assert_eq!(e.get(d[0]).data, [100., 1000., 200., 3., 30., 4., 300., 3000., 400.]);
    assert_eq!(
        e.get(d[1]).data,
        [3. * 4. + 4. * 6., 3. * 5., 1. + 2. * 3. + 3. * 7. + 4. * 9., 2. + 3. * 8.]
    );
}

#[test]
fn bad_calls_say_what_does_not_fit() {
    let mut g = Graph::new();
    let x = image(&mut g, "x", [2, 3, 8, 8]);
    let (w, big) = (image(&mut g, "w", [4, 3, 3, 3]), image(&mut g, "big", [4, 3, 11, 3]));
    let other = image(&mut g, "other", [4, 5, 3, 3]);
    let ids = g.add_leaf(
        "ids",
        crate::graph::LeafKind::Input,
        TensorType::new(crate::types::DType::I32, [4, 3, 3, 3]),
    );
    let flat = g.sum(x, &[0]);
    let one = Window2d::strided(1);
    let huge = Window2d { padding: [[usize::MAX, 1], [0, 0]], ..one };
    for (a, b, window) in [
        (x, other, one),
        (x, big, one.padded(1)),
        (x, w, Window2d::strided(0)),
        (x, ids, one),
        (flat, w, one),
        (x, w, huge),
        (x, w, Window2d::strided(usize::MAX)),
    ] {
        assert!(g.conv2d(a, b, window).is_poison());
    }
    let all = g.finish().expect_err("all calls are wrong").0;
    let reasons: Vec<&str> = all.iter().map(|e| e.reason.as_str()).collect();
    let expected =
        ["3 channels", "kernel of 11", "stride 0", "must be f32", "four dimensions", "over", "over"];
    assert_eq!(reasons.len(), expected.len());
    for (r, e) in reasons.iter().zip(expected) {
        assert!(r.contains(e), "'{r}' does not mention '{e}'");
    }
    assert!(all.iter().all(|e| e.op == "conv2d" && e.file.ends_with("tests.rs")));
}

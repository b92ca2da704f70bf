//! What the tests share: feeding, evaluating by reference and by lowering, finite differences.

use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::{eval, eval_value};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::loops::interpret;
use griffinfly_ir::ops::Lowering;
use griffinfly_ir::types::{DType, TensorType};
use std::collections::HashMap;

pub(crate) type Feeds = HashMap<String, Array<f64>>;

/// Values by leaf name, with the leaf's type.
pub(crate) fn feeds(g: &Graph, values: &[(&str, &[f64])]) -> Feeds {
    let one = |(name, data): &(&str, &[f64])| {
        let ty = g.ty(g.leaf(name).expect("the leaf exists")).expect("typed").clone();
        assert_eq!(ty.elements(), data.len(), "{name}");
        (name.to_string(), Array { ty, data: data.to_vec() })
    };
    values.iter().map(one).collect()
}

/// The elements of a value, in f64, by the references.
pub(crate) fn value(g: &Graph, feeds: &Feeds, v: Value) -> Vec<f64> {
    eval_value(g, feeds, v).expect("every leaf is fed").data
}

/// The outputs of a graph, in f64, by the references.
pub(crate) fn by_reference(g: &Graph, feeds: &Feeds) -> Vec<Vec<f64>> {
    let all = eval(g, feeds).expect("every leaf is fed");
    g.outputs().iter().map(|o| all.get(o.value).data.clone()).collect()
}

/// The outputs of a graph, in f32, by interpreting what every node lowers to.
pub(crate) fn by_lowering(g: &Graph, feeds: &Feeds) -> Vec<Vec<f64>> {
    let g = g.expanded();
    let leaves = eval(&g, feeds).expect("every leaf is fed");
    let mut words: HashMap<Value, Vec<u32>> = HashMap::new();
    for id in g.ids() {
        let results = match g.lowering(id) {
            Lowering::Leaf => g.results(id).map(|v| leaves.get(v).to_words()).collect(),
            Lowering::Loop(l) => {
                assert_eq!(l.verify(), Vec::<String>::new());
                let operands: Vec<&[u32]> = g.node(id).inputs().iter().map(|v| words[v].as_slice()).collect();
                interpret(&l, &operands)
            }
            Lowering::Expansion(_) => unreachable!("expanded"),
        };
        words.extend(g.results(id).zip(results));
    }
    let output = |v: Value| Array::from_words(g.ty(v).expect("typed"), &words[&v]).data;
    g.outputs().iter().map(|o| output(o.value)).collect()
}

pub(crate) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + b.abs())
}

pub(crate) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    let ok =
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| close(*a, *b, tolerance));
    assert!(ok, "found {found:?}, expected {expected:?}");
}

/// Compares the gradients of a scalar with central differences, at up to `points` elements of every leaf named.
pub(crate) fn check_gradients(g: &Graph, loss: Value, leaves: &[&str], feeds: &Feeds, points: usize) {
    let mut g = g.clone();
    let wanted: Vec<Value> = leaves.iter().map(|n| g.leaf(n).expect("the leaf exists")).collect();
    let found = gradients(&mut g, loss, &wanted).unwrap_or_else(|e| panic!("{e}\n{g}"));
    assert_eq!(g.verify(), vec![]);
    for (name, d) in leaves.iter().zip(found) {
        assert_eq!(g.dims(d), feeds[*name].dims(), "{name}");
        let exact = value(&g, feeds, d);
        let picks = (0..exact.len().min(points)).map(|k| k * 7919 % exact.len());
        for at in picks {
            let shifted = |h: f64| {
                let mut f = feeds.clone();
                f.get_mut(*name).expect("fed").data[at] += h;
                value(&g, &f, loss)[0]
            };
            let numeric = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            let ok = close(numeric, exact[at], 2e-6);
            assert!(ok, "{name}[{at}]: gradient {}, difference {numeric}\n{g}", exact[at]);
        }
    }
}

/// Gradients of a scalar with respect to leaves, evaluated.
pub(crate) fn gradients_of(g: &Graph, loss: Value, leaves: &[&str], feeds: &Feeds) -> Vec<Vec<f64>> {
    let mut g = g.clone();
    let wanted: Vec<Value> = leaves.iter().map(|n| g.leaf(n).expect("the leaf exists")).collect();
    let found = gradients(&mut g, loss, &wanted).unwrap_or_else(|e| panic!("{e}"));
    found.into_iter().map(|d| value(&g, feeds, d)).collect()
}

/// The sum of all elements.
pub(crate) fn sum_all(g: &mut Graph, v: Value) -> Value {
    let axes: Vec<isize> = (0..g.dims(v).len() as isize).collect();
    if axes.is_empty() { v } else { g.sum(v, &axes) }
}

/// A loss that sees every element of a float value with another weight, behind a factor of -2.5.
pub(crate) fn weighted(g: &mut Graph, v: Value) -> Value {
    let ty: TensorType = g.ty(v).expect("a sound value").clone();
    assert_eq!(ty.dtype, DType::F32);
    let weights: Vec<f32> = (0..ty.elements()).map(|i| 0.5 + (i * 37 % 19) as f32 / 19.0).collect();
    let w = g.constant(&weights, ty.dims);
    let product = g.mul(v, w);
    let sum = sum_all(g, product);
    g.scale(sum, -2.5)
}

/// Builds over `x`, evaluates both ways, compares, and gives the elements of the result.
pub(crate) fn both(dims: &[usize], data: &[f64], f: impl Fn(&mut Graph, Value) -> Value) -> Vec<f64> {
    let mut g = Graph::new();
    let x = g.input("x", dims);
    let y = f(&mut g, x);
    g.output("y", y);
    g.finish().unwrap();
    agree(&g, &feeds(&g, &[("x", data)])).remove(0)
}

/// The outputs by reference, which lowering must agree with.
pub(crate) fn agree(g: &Graph, f: &Feeds) -> Vec<Vec<f64>> {
    let (reference, lowered) = (by_reference(g, f), by_lowering(g, f));
    for (r, l) in reference.iter().zip(&lowered) {
        assert_close(l, r, 1e-5);
    }
    reference
}

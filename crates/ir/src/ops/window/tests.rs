//! Every small geometry of a window: lowerings of convolutions and poolings against their references.

use super::Window2d;
use crate::array::Array;
use crate::loops::interpret;
use crate::ops::contraction::{Conv2d, Conv2dInputGrad, Conv2dWeightGrad};
use crate::ops::pool::{AvgPool2d, AvgPool2dGrad, MaxPool2d, MaxPool2dGrad, MaxPool2dPick, Pool};
use crate::ops::{Lowering, Payload, SampleInput, Signature};
use crate::types::TensorType;

/// Results of an operation by its reference, after checking that its lowering gives the same.
pub(crate) fn both(op: &Payload, inputs: &[Array<f64>]) -> Vec<Array<f64>> {
    let types: Vec<TensorType> = inputs.iter().map(|a| a.ty.clone()).collect();
    let outputs = op.infer(&types).expect("the inputs fit");
    let expected = op.reference(&inputs.iter().collect::<Vec<_>>(), &outputs);
    let Lowering::Loop(l) = op.lower(&Signature { inputs: &types, outputs: &outputs }) else {
        panic!("{} lowers to a loop", op.name())
    };
    let what = || format!("{} {} of {types:?}", op.name(), op.attributes());
    assert_eq!(l.verify(), Vec::<String>::new(), "{}", what());
    let words: Vec<Vec<u32>> = inputs.iter().map(Array::to_words).collect();
    let found = interpret(&l, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (e, f) in expected.iter().zip(found) {
        let f = Array::<f64>::from_words(&e.ty, &f);
        let near = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-5;
        let same = e.data.iter().zip(&f.data).all(|(a, b)| near(a, b));
        assert!(same, "{}: reference {:?}, lowered {:?}", what(), e.data, f.data);
    }
    expected
}

fn filled(dims: &[usize], seed: u64) -> Array<f64> {
    let s = SampleInput::distinct(dims);
    Array { data: s.values(seed), ty: s.ty }
}

/// Windows that vary along one axis (which one alternates), with extents of input and kernel.
fn geometries() -> Vec<(Window2d, [usize; 2], [usize; 2])> {
    let mut all = Vec::new();
    crate::array::each_point(&[6, 5, 4, 4, 4], |p| {
        let [input, kernel, stride, before, after] = [p[0] + 1, p[1] + 1, p[2] + 1, p[3], p[4]];
        if kernel > input + before + after {
            return;
        }
        let mut g = (Window2d::strided(1), [2, 2], [1, 1]);
        let axis = all.len() % 2;
        (g.0.stride[axis], g.0.padding[axis]) = (stride, [before, after]);
        (g.1[axis], g.2[axis]) = (input, kernel);
        all.push(g);
    });
    all
}

#[test]
fn convolutions_of_every_small_geometry_lower_right() {
    for (window, [h, w], [kh, kw]) in geometries() {
        let (x, k) = (filled(&[2, 2, h, w], 1), filled(&[3, 2, kh, kw], 2));
        let y = both(&Payload::Conv2d(Conv2d { window }), &[x.clone(), k.clone()]).remove(0);
        let dy = filled(y.dims(), 3);
        both(&Payload::Conv2dInputGrad(Conv2dInputGrad { window, size: [h, w] }), &[dy.clone(), k]);
        both(&Payload::Conv2dWeightGrad(Conv2dWeightGrad { window, kernel: [kh, kw] }), &[x, dy]);
    }
}

#[test]
fn poolings_of_every_small_geometry_lower_right() {
    for (window, size, kernel) in geometries() {
        if (0..2).any(|i| window.padding[i].iter().any(|p| *p >= kernel[i])) {
            continue;
        }
        let (pool, x) = (Pool { kernel, window }, filled(&[1, 2, size[0], size[1]], 1));
        let found = both(&Payload::MaxPool2d(MaxPool2d { pool }), std::slice::from_ref(&x));
        let (index, dy) = (found[1].clone(), filled(found[0].dims(), 3));
        both(&Payload::MaxPool2dGrad(MaxPool2dGrad { pool, size }), &[index.clone(), dy.clone()]);
        let picked = both(&Payload::MaxPool2dPick(MaxPool2dPick { pool }), &[index, x.clone()]);
        assert_eq!(picked[0].data, found[0].data, "the picked elements are the maxima");
        for count_padding in [false, true] {
            both(&Payload::AvgPool2d(AvgPool2d { pool, count_padding }), std::slice::from_ref(&x));
            let op = AvgPool2dGrad { pool, count_padding, size };
            both(&Payload::AvgPool2dGrad(op), std::slice::from_ref(&dy));
        }
    }
}

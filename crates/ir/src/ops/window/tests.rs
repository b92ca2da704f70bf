//! Every small geometry of a window: lowerings of convolutions and poolings against their references.

use super::Window2d;
use crate::array::Array;
use crate::index::{Domain, IndexExpr};
use crate::loops::interpret;
use crate::ops::contraction::{Conv, Conv2d, Conv2dInputGrad, Conv2dWeightGrad};
use crate::ops::pool::{AvgPool2d, AvgPool2dGrad, MaxPool2d, MaxPool2dGrad, MaxPool2dPick, Pool};
use crate::ops::{Lowering, Payload, SampleInput, Signature};
use crate::types::TensorType;
use proptest::prelude::*;

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

pub(crate) fn filled(dims: &[usize], seed: u64) -> Array<f64> {
    let s = SampleInput::distinct(dims);
    Array { data: s.values(seed), ty: s.ty }
}

/// Windows that vary along one axis (which one alternates), with extents of input and kernel.
fn geometries(dilation: usize) -> Vec<(Window2d, [usize; 2], [usize; 2])> {
    let mut all = Vec::new();
    crate::array::each_point(&[6, 5, 4, 4, 4], |p| {
        let [input, kernel, stride, before, after] = [p[0] + 1, p[1] + 1, p[2] + 1, p[3], p[4]];
        if dilation * (kernel - 1) + 1 > input + before + after || (dilation > 1 && kernel == 1) {
            return;
        }
        let mut g = (Window2d::strided(1), [2, 2], [1, 1]);
        let axis = all.len() % 2;
        (g.0.stride[axis], g.0.padding[axis], g.0.dilation[axis]) = (stride, [before, after], dilation);
        (g.1[axis], g.2[axis]) = (input, kernel);
        all.push(g);
    });
    all
}

/// A convolution and its two gradients: lowerings against references.
fn convolve(kind: Conv, x: [usize; 4], w: [usize; 4]) {
    let (x, k) = (filled(&x, 1), filled(&w, 2));
    let y = both(&Payload::Conv2d(Conv2d { kind }), &[x.clone(), k.clone()]).remove(0);
    let dy = filled(y.dims(), 3);
    let rest = |i: usize| {
        let reach = kind.window.dilation[i] * (w[2 + i] - 1) + 1;
        (x.dims()[2 + i] + kind.window.padding[i].iter().sum::<usize>() - reach) % kind.window.stride[i]
    };
    let input = Conv2dInputGrad { kind, output_padding: [rest(0), rest(1)] };
    assert_eq!(both(&Payload::Conv2dInputGrad(input), &[dy.clone(), k])[0].ty, x.ty);
    both(&Payload::Conv2dWeightGrad(Conv2dWeightGrad { kind, kernel: [w[2], w[3]] }), &[x, dy]);
}

#[test]
fn convolutions_of_every_small_geometry_lower_right() {
    for dilation in 1..4 {
        for (i, (window, [h, w], [kh, kw])) in geometries(dilation).into_iter().enumerate() {
            let groups = 1 + i % 3 / 2;
            convolve(Conv { window, groups }, [2, 2 * groups, h, w], [3 * groups, 2, kh, kw]);
        }
    }
}

#[test]
fn windows_are_found_from_inputs_for_every_stride_and_dilation() {
    crate::array::each_point(&[6, 6, 5, 4], |p| {
        let [stride, dilation, kernel, before] = [p[0] + 1, p[1] + 1, p[2] + 1, p[3]];
        let after = (dilation * (kernel - 1)).saturating_sub(2);
        let window =
            Window2d { dilation: [dilation, 1], padding: [[before, after], [0; 2]], ..Window2d::strided(1) };
        let window = Window2d { stride: [stride, 1], ..window };
        let Ok([span, _]) = window.spans([7, 1], [kernel, 1]) else { return };
        let mut meetings = Vec::new();
        for (o, k) in (0..span.output).flat_map(|o| (0..span.kernel).map(move |k| (o, k))) {
            meetings.extend(span.position(o, k).map(|i| (i, o, k)));
        }
        let extents = [span.input, span.taps()];
        let [w, t, rest] = span.window_index(&IndexExpr::axis(0), &IndexExpr::axis(1), Domain::of(&extents));
        let mut found = Vec::new();
        crate::array::each_point(&extents, |at| {
            let (o, k) = (w.eval(at), t.eval(at));
            if (0..span.output as i64).contains(&o)
                && (0..span.kernel as i64).contains(&k)
                && rest.eval(at) == 0
            {
                found.push((at[0], o as usize, k as usize));
            }
        });
        meetings.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, meetings, "{span:?}");
    });
}

proptest! {
    /// Index maps of sizes that no test runs: every access in range, every store a bijection.
    #[test]
    fn index_maps_of_large_windows_are_proved(
        size in 1usize..3000, kernel in 1usize..70, stride in 1usize..40, dilation in 1usize..20,
        padding in (0usize..90, 0usize..90), groups in 1usize..4, across in 0usize..2,
    ) {
        let mut window = Window2d::strided(1);
        let (mut input, mut taps) = ([3, 3], [1, 1]);
        (window.stride[across], window.dilation[across]) = (stride, dilation);
        window.padding[across] = [padding.0, padding.1];
        (input[across], taps[across]) = (size, kernel);
        let Ok(spans) = window.spans(input, taps) else { return Ok(()) };
        let [x, w] = [[2, 2 * groups, input[0], input[1]], [3 * groups, 2, taps[0], taps[1]]].map(TensorType::f32);
        let y = TensorType::f32([2, 3 * groups, spans[0].output, spans[1].output]);
        let kind = Conv { window, groups };
        let mut rest = [0; 2];
        rest[across] = (size + padding.0 + padding.1 - spans[across].reach()) % stride;
        let pool = Pool { kernel: taps, window };
        let proofs = [
            (Payload::Conv2d(Conv2d { kind }), vec![x.clone(), w.clone()]),
            (Payload::Conv2dInputGrad(Conv2dInputGrad { kind, output_padding: rest }), vec![y.clone(), w]),
            (Payload::Conv2dWeightGrad(Conv2dWeightGrad { kind, kernel: taps }), vec![x.clone(), y]),
            (Payload::MaxPool2d(MaxPool2d { pool }), vec![x.clone()]),
            (Payload::AvgPool2d(AvgPool2d { pool, count_padding: false }), vec![x]),
        ];
        for (op, inputs) in proofs {
            prop_assert_eq!(proof(&op, &inputs), Vec::<String>::new(), "{} {}", op.name(), op.attributes());
        }
    }
}

/// The faults of the loop that an operation lowers to on inputs of these types, if it takes them.
pub(crate) fn proof(op: &Payload, inputs: &[TensorType]) -> Vec<String> {
    let Ok(outputs) = op.infer(inputs) else { return Vec::new() };
    match op.lower(&Signature { inputs, outputs: &outputs }) {
        Lowering::Loop(l) => l.verify(),
        other => vec![format!("{other:?} is no loop")],
    }
}

#[test]
fn poolings_of_every_small_geometry_lower_right() {
    let modes = [(1, false), (1, true), (2, false), (3, true)];
    for ((window, size, kernel), ceil) in
        modes.into_iter().flat_map(|(d, ceil)| geometries(d).into_iter().map(move |g| (g, ceil)))
    {
        let window = Window2d { ceil, ..window };
        let (pool, x) = (Pool { kernel, window }, filled(&[1, 2, size[0], size[1]], 1));
        if Payload::MaxPool2d(MaxPool2d { pool }).infer(std::slice::from_ref(&x.ty)).is_err() {
            continue;
        }
        let found = both(&Payload::MaxPool2d(MaxPool2d { pool }), std::slice::from_ref(&x));
        let (index, dy) = (found[1].clone(), filled(found[0].dims(), 3));
        both(&Payload::MaxPool2dGrad(MaxPool2dGrad { pool, size }), &[index.clone(), dy.clone()]);
        let picked = both(&Payload::MaxPool2dPick(MaxPool2dPick { pool }), &[index, x.clone()]);
        assert_eq!(picked[0].data, found[0].data, "the picked elements are the maxima");
        for count_padding in [false, true].into_iter().filter(|_| window.dilation == [1; 2]) {
            both(&Payload::AvgPool2d(AvgPool2d { pool, count_padding }), std::slice::from_ref(&x));
            let op = AvgPool2dGrad { pool, count_padding, size };
            both(&Payload::AvgPool2dGrad(op), std::slice::from_ref(&dy));
        }
    }
}

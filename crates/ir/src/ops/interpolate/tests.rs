//! Interpolation against numbers worked out by hand, and every small pair of extents against the references.

use super::{Extent, Interpolate, InterpolateGrad, Interpolation};
use crate::array::Array;
use crate::graph::Graph;
use crate::loops::Archetype;
use crate::ops::window::tests::{both, filled, proof};
use crate::ops::{Lowering, Payload, Signature};
use crate::types::TensorType;
use proptest::prelude::*;

const MODES: [Interpolation; 3] = [
    Interpolation::Nearest,
    Interpolation::Linear { align_corners: false },
    Interpolation::Linear { align_corners: true },
];

fn along(mode: Interpolation, x: &[f64], size: usize) -> Vec<f64> {
    let x = Array { ty: TensorType::f32([x.len()]), data: x.to_vec() };
    let op = Interpolate { to: vec![(0, Extent::Size(size))], mode };
    both(&Payload::Interpolate(op), &[x]).remove(0).data
}

#[test]
fn positions_are_pytorchs() {
    let [nearest, half, corners] = MODES;
    let x = [0., 4., 8., 20.];
    assert_eq!(along(nearest, &x, 8), [0., 0., 4., 4., 8., 8., 20., 20.]);
    assert_eq!(along(nearest, &x, 6), [0., 0., 4., 8., 8., 20.]);
    assert_eq!(along(nearest, &x, 3), [0., 4., 8.]);
    assert_eq!(along(half, &x, 8), [0., 1., 3., 5., 7., 11., 17., 20.]);
    assert_eq!(along(half, &x, 2), [2., 14.]);
    assert_eq!(along(half, &x, 1), [6.]);
    assert_eq!(along(corners, &x, 7), [0., 2., 4., 6., 8., 14., 20.]);
    assert_eq!(along(corners, &x, 2), [0., 20.]);
    assert_eq!(along(corners, &x, 1), [0.]);
    for mode in MODES {
        assert_eq!(along(mode, &x, 4), x, "{mode:?}");
        assert_eq!(along(mode, &[3.], 5), [3.; 5], "{mode:?}");
    }
}

#[test]
fn every_small_pair_of_extents_lowers_right_both_ways() {
    for mode in MODES {
        for (input, output) in (1..14).flat_map(|i| (1..14).map(move |o| (i, o))) {
            let op = Interpolate { to: vec![(1, Extent::Size(output))], mode };
            both(&Payload::Interpolate(op), &[filled(&[2, input], 1)]);
            let op = InterpolateGrad { sizes: vec![(1, input)], mode };
            let dx = both(&Payload::InterpolateGrad(op), &[filled(&[2, output], 2)]).remove(0);
            assert_eq!(dx.dims(), [2, input]);
        }
    }
}

proptest! {
    /// Index maps of sizes that no test runs are in range.
    #[test]
    fn index_maps_of_large_extents_are_proved(input in 1usize..5000, output in 1usize..5000, mode in 0usize..3) {
        let mode = MODES[mode];
        let op = Payload::Interpolate(Interpolate { to: vec![(0, Extent::Size(output))], mode });
        prop_assert_eq!(proof(&op, &[TensorType::f32([input, 3])]), Vec::<String>::new());
        let op = Payload::InterpolateGrad(InterpolateGrad { sizes: vec![(0, input)], mode });
        prop_assert_eq!(proof(&op, &[TensorType::f32([output, 3])]), Vec::<String>::new());
    }
}

#[test]
fn integer_scales_are_views_whose_gradient_is_a_sum_without_conditions() {
    let lowered = |op: Payload, ty: TensorType| {
        let inputs = [ty];
        let outputs = op.infer(&inputs).expect("the inputs fit");
        match op.lower(&Signature { inputs: &inputs, outputs: &outputs }) {
            Lowering::Loop(l) => *l,
            other => panic!("{other:?}"),
        }
    };
    let to = vec![(2, Extent::Scale(2)), (3, Extent::Scale(3))];
    let op = Interpolate { to, mode: Interpolation::Nearest };
    let l = lowered(Payload::Interpolate(op), TensorType::f32([1, 2, 4, 5]));
    assert_eq!(l.archetype(), Archetype::Move);
    let op = InterpolateGrad { sizes: vec![(2, 4), (3, 5)], mode: Interpolation::Nearest };
    let l = lowered(Payload::InterpolateGrad(op), TensorType::f32([1, 2, 8, 15]));
    assert_eq!(l.archetype(), Archetype::Window);
    let loads: Vec<_> = l.bodies().into_iter().flat_map(|(body, _)| body.loads.clone()).collect();
    assert!(loads.len() == 1 && loads[0].access.valid.is_empty(), "{loads:?}");
}

#[test]
fn bad_calls_say_what_does_not_fit() {
    let mut g = Graph::new();
    let x = g.input("x", [1, 1, 3, 46_337]);
    let ids = g.input_ids("ids", [1, 1, 2, 2]);
    for to in [[(3, Extent::Size(2)), (2, Extent::Size(2))], [(2, Extent::Size(2)), (4, Extent::Size(2))]] {
        g.interpolate(x, &to, Interpolation::Nearest);
    }
    g.upsample2d(x, [0, 2], Interpolation::Nearest);
    g.upsample2d(x, [2, usize::MAX], Interpolation::Nearest);
    g.resize2d(x, [3, 46_339], MODES[1]);
    g.resize2d(ids, [3, 3], MODES[0]);
    let all = g.finish().expect_err("all calls are wrong").0;
    let expected =
        ["out of order", "does not exist", "extents 3 and 0", "must be in", "31 bits", "must be f32"];
    assert_eq!(all.len(), expected.len(), "{all:?}");
    for (e, expected) in all.iter().zip(expected) {
        assert!(e.reason.contains(expected) && e.op == "interpolate", "{e}");
    }
}

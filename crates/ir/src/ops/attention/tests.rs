//! Loops against primitive operations, masked rows, masks, errors, rotations.

use super::*;
use crate::eval::eval;
use crate::loops::interpret;
use crate::ops::{Fragment, Payload, Rule, Sample};
use std::collections::HashMap;

/// The forward operation in primitive operations.
fn composed(setup: &Setup, g: &mut Graph, v: &[Value]) -> Vec<Value> {
    let scores = setup.scores(g, v);
    let (largest, lowest, one) = (g.max(scores, &[-1]), g.scalar(f32::MIN), g.scalar(1.0));
    let largest = g.maximum(largest, lowest);
    let shift = g.per_row(largest);
    let shifted = g.sub(scores, shift);
    let e = g.exp(shifted);
    let sum = g.sum(e, &[-1]);
    let log = g.log(sum);
    let total = g.maximum(sum, one);
    let total = g.per_row(total);
    let p = g.div(e, total);
    let values = heads_first(g, v[2]);
    let y = grouped(g, p, values, [false, false]);
    vec![heads_first(g, y), g.add(log, largest)]
}

fn lists(op: Payload, inputs: &[SampleInput], fragment: &Fragment) -> [Vec<Array<f64>>; 2] {
    let arrays: Vec<Array<f64>> = inputs
        .iter()
        .enumerate()
        .map(|(i, s)| Array { ty: s.ty.clone(), data: s.values(i as u64 + 1) })
        .collect();
    let Lowering::Loop(l) = Sample::new(op, inputs.to_vec()).lowering() else { panic!("no loop") };
    assert_eq!(l.verify(), Vec::<String>::new());
    let words: Vec<Vec<u32>> = arrays.iter().map(Array::to_words).collect();
    let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
    let looped = interpret(&l, &words);
    let looped = looped.iter().zip(&l.results).map(|(w, ty)| Array::from_words(ty, w)).collect();
    fragment.graph.finish().expect("sound");
    let feeds: HashMap<String, Array<f64>> =
        arrays.into_iter().enumerate().map(|(i, a)| (i.to_string(), a)).collect();
    let e = eval(&fragment.graph, &feeds).expect("fed");
    [looped, fragment.outputs.iter().map(|v| e.get(*v).clone()).collect()]
}

fn assert_same(what: &str, [found, expected]: &[Vec<Array<f64>>; 2]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (x, y) in found.iter().zip(expected) {
        assert_eq!(x.ty, y.ty, "{what}");
        for (i, (x, y)) in x.data.iter().zip(&y.data).enumerate() {
            assert!(x == y || (x - y).abs() <= 1e-5 * (1.0 + y.abs()), "{what} [{i}]: {x}, composed {y}");
        }
    }
}

fn types(inputs: &[SampleInput]) -> Vec<TensorType> {
    inputs.iter().map(|i| i.ty.clone()).collect()
}

#[test]
fn loops_equal_primitive_operations() {
    for (op, inputs) in Attention::samples() {
        let fragment = Fragment::new(&types(&inputs), |g, v| composed(&op.setup, g, v));
        assert_same("forward", &lists(Payload::Attention(op), &inputs, &fragment));
    }
    for (setup, inputs) in gradient_samples() {
        let fragment = Fragment::new(&types(&inputs), |g, v| {
            let [_, ds] = setup.probabilities_and_gradient(g, v);
            let k = heads_first(g, v[1]);
            let sums = grouped(g, ds, k, [false, false]);
            let sums = heads_first(g, sums);
            vec![g.scale(sums, setup.scale.get())]
        });
        let op = Payload::AttentionGradQuery(AttentionGradQuery { setup });
        assert_same("query", &lists(op, &inputs, &fragment));
    }
}

/// Three queries over one key, causal: the first two see nothing. A bias of -inf hides both keys of a row besides.
#[test]
fn rows_that_see_nothing_give_zeros_and_zero_gradients() {
    for (dims, mask, bias) in [([3, 1], AttentionMask::CAUSAL, false), ([3, 2], AttentionMask::FULL, true)] {
        let mut g = Graph::new();
        let [q, k, v] =
            [("q", dims[0]), ("k", dims[1]), ("v", dims[1])].map(|(n, s)| g.input(n, [1, s, 2, 4]));
        let hidden = [
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            f32::NEG_INFINITY,
            0.5,
            f32::NEG_INFINITY,
        ];
        let bias = bias.then(|| g.constant(&hidden, [3, 2]));
        let options = AttentionOptions { mask, bias, scale: None };
        let (y, lse) = g.attention_with_lse([q, k, v], &options);
        let loss = g.sum(y, &[0, 1, 2, 3]);
        let gradients = crate::autodiff::gradients(&mut g, loss, &[q, k, v]).expect("differentiable");
        for (i, value) in [y, lse].into_iter().chain(gradients).enumerate() {
            g.output(&i.to_string(), value);
        }
        let feeds: HashMap<String, Array<f64>> = [("q", dims[0]), ("k", dims[1]), ("v", dims[1])]
            .into_iter()
            .enumerate()
            .map(|(i, (n, s))| {
                let input = SampleInput::f32(&[1, s, 2, 4]);
                (n.to_string(), Array { ty: input.ty.clone(), data: input.values(i as u64) })
            })
            .collect();
        let e = eval(&g, &feeds).expect("fed");
        let (y, lse) = (e.get(g.outputs()[0].value), e.get(g.outputs()[1].value));
        let value = &feeds["v"].data;
        assert_eq!(y.data, [vec![0.0; 16], value[..8].to_vec()].concat());
        assert!(lse.data.chunks(3).all(|row| row[..2] == [f64::NEG_INFINITY; 2] && row[2].is_finite()));
        // Only one key is seen by the last query, with probability 1: its score has no influence.
        let d: Vec<&Vec<f64>> = g.outputs()[2..].iter().map(|o| &e.get(o.value).data).collect();
        assert!(d[0].iter().chain(d[1]).all(|x| x.abs() < 1e-12), "{d:?}");
        assert_eq!(d[2][..8], [1.0; 8]);
        assert!(d[2][8..].iter().all(|x| *x == 0.0));
    }
}

#[test]
fn masks_list_the_pairs_their_formula_admits() {
    let masks = [
        AttentionMask::FULL,
        AttentionMask::CAUSAL,
        AttentionMask::sliding_window(1),
        AttentionMask::sliding_window(3),
        AttentionMask { causal: false, window: Some(2) },
    ];
    for mask in masks {
        for lengths in [[1, 1], [4, 4], [2, 7], [7, 2]] {
            let [queries, keys] = lengths;
            for i in 0..queries {
                for j in 0..keys {
                    let ahead = j as i64 - (i + keys) as i64 + queries as i64;
                    let seen = !(mask.causal && ahead > 0)
                        && mask.window.is_none_or(|w| ahead.unsigned_abs() < w as u64);
                    let what = format!("{mask:?} {lengths:?} query {i} key {j}");
                    assert_eq!(mask.keys(i, lengths).contains(&j), seen, "{what}");
                    assert_eq!(mask.queries(j, lengths).contains(&i), seen, "{what}");
                }
            }
        }
    }
}

#[test]
fn gradients_honour_the_log_sum_exp() {
    let mut g = Graph::new();
    let [q, k, v] = ["q", "k", "v"].map(|n| g.input(n, [1, 2, 1, 3]));
    let (_, lse) = g.attention_with_lse([q, k, v], &AttentionOptions::default());
    let loss = g.sum(lse, &[0, 1, 2]);
    let gradients = crate::autodiff::gradients(&mut g, loss, &[q, v]).expect("differentiable");
    gradients.iter().enumerate().for_each(|(i, d)| g.output(&i.to_string(), *d));
    let input = SampleInput::f32(&[1, 2, 1, 3]);
    let array = |seed| Array { ty: input.ty.clone(), data: input.values(seed) };
    let feeds: HashMap<String, Array<f64>> =
        [("q", 1), ("k", 2), ("v", 3)].into_iter().map(|(n, s)| (n.to_string(), array(s))).collect();
    let e = eval(&g, &feeds).expect("fed");
    let (q, k, scale) = (&feeds["q"].data, &feeds["k"].data, f64::from((1.0 / 3.0f64.sqrt()) as f32));
    // d lse / d q is scale times the expected key.
    let score = |j: usize| (0..3).map(|d| q[d] * k[3 * j + d]).sum::<f64>() * scale;
    let p = 1.0 / (1.0 + (score(1) - score(0)).exp());
    for d in 0..3 {
        let expected = scale * (p * k[d] + (1.0 - p) * k[3 + d]);
        assert!((e.get(gradients[0]).data[d] - expected).abs() < 1e-12);
    }
    assert!(e.get(gradients[1]).data.iter().all(|x| *x == 0.0));
}

#[test]
fn shapes_that_do_not_fit_are_errors_with_the_numbers() {
    let error = |dims: [&[usize]; 3], options: &AttentionOptions| {
        let mut g = Graph::new();
        let [q, k, v] = [0, 1, 2].map(|i| g.input(&i.to_string(), dims[i].to_vec()));
        g.scaled_dot_product_attention(q, k, v, options);
        g.finish().expect_err("refused").to_string()
    };
    let (all, kv) = (AttentionOptions::default(), [1, 5, 3, 4]);
    assert!(error([&[1, 2, 4, 4], &kv, &kv], &all).contains("4 query heads are no multiple of 3"));
    assert!(error([&[2, 2, 3, 4], &kv, &kv], &all).contains("same batch and width"));
    assert!(error([&[2, 3, 4], &kv, &kv], &all).contains("[batch, sequence, heads, width]"));
    assert!(error([&kv, &kv, &[1, 4, 3, 4]], &all).contains("same type"));
    let none = AttentionOptions { mask: AttentionMask::sliding_window(0), ..all };
    assert!(error([&kv, &kv, &kv], &none).contains("a window of 0 keys"));
    let mut g = Graph::new();
    let (x, table) = (g.input("x", [1, 2, 3, 4]), g.input("t", [2, 3]));
    g.rotary_embedding(x, [table, table], RotaryStyle::HalfSplit);
    assert!(g.finish().expect_err("refused").to_string().contains("3 pairs are more than a head of 4"));
}

#[test]
fn rotary_tables_hold_the_angles_of_the_paper() {
    let [cos, sin] = rotary_table([0.0, 3.0], 4, 10_000.0);
    assert_eq!((&cos[..2], &sin[..2]), (&[1.0f32, 1.0][..], &[0.0f32, 0.0][..]));
    let expected = [3.0f64, 0.03].map(|a| (a.cos() as f32, a.sin() as f32));
    assert_eq!([(cos[2], sin[2]), (cos[3], sin[3])], expected);
}

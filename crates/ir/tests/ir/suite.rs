//! The op suite without a device: shape rule, lowering against reference, gradients against finite differences in f64.

use griffinfly_ir::array::Array;
use griffinfly_ir::eval::{eval, eval_value};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::interpret;
use griffinfly_ir::ops::{Lowering, Sample, samples};
use griffinfly_ir::real::Real;
use griffinfly_ir::types::DType;
use std::collections::HashMap;

fn feeds<R: Real>(s: &Sample) -> HashMap<String, Array<R>> {
    let one = |(i, input): (usize, &griffinfly_ir::ops::SampleInput)| {
        let data = input.values(i as u64 + 1).into_iter().map(R::of).collect();
        (i.to_string(), Array { ty: input.ty.clone(), data })
    };
    s.inputs.iter().enumerate().map(one).collect()
}

fn outputs<R: Real>(g: &Graph, feeds: &HashMap<String, Array<R>>) -> Vec<Array<R>> {
    let e = eval(g, feeds).expect("samples feed every input");
    g.outputs().iter().map(|o| e.get(o.value).clone()).collect()
}

#[test]
fn samples_build_verified_graphs_that_print_and_parse_back() {
    for s in samples() {
        let g = s.graph();
        g.finish().unwrap_or_else(|e| panic!("{}: {e}", s.describe()));
        assert_eq!(g.verify(), vec![], "{}", s.describe());
        let text = g.to_string();
        let back: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(back.to_string(), text);
    }
}

#[test]
fn lowerings_equal_references() {
    for s in samples() {
        let (g, feeds) = (s.graph(), feeds::<f64>(&s));
        let expected = outputs(&g, &feeds);
        let operands: Vec<Array<f64>> = (0..s.inputs.len()).map(|i| feeds[&i.to_string()].clone()).collect();
        let found: Vec<Array<f64>> = match s.lowering() {
            Lowering::Leaf => continue,
            Lowering::Loop(l) => {
                assert_eq!(l.verify(), Vec::<String>::new(), "{}", s.describe());
                let words: Vec<Vec<u32>> = operands.iter().map(Array::to_words).collect();
                let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
                let results = interpret(&l, &words);
                results.iter().zip(&expected).map(|(w, e)| Array::from_words(&e.ty, w)).collect()
            }
            Lowering::Expansion(f) => {
                f.graph.finish().unwrap_or_else(|e| panic!("{}: {e}", s.describe()));
                let e = eval(&f.graph, &feeds).expect("fed");
                f.outputs.iter().map(|v| e.get(*v).clone()).collect()
            }
        };
        for (r, (f, e)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(f.ty, e.ty, "{}", s.describe());
            for (i, (x, y)) in f.data.iter().zip(&e.data).enumerate() {
                let ok = (x - y).abs() <= 1e-5 * (1.0 + y.abs()) || (x.is_nan() && y.is_nan()) || x == y;
                assert!(ok, "{} result {r} element {i}: lowered {x}, reference {y}", s.describe());
            }
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for s in samples() {
        let floats: Vec<usize> =
            (0..s.inputs.len()).filter(|&i| s.inputs[i].ty.dtype == DType::F32).collect();
        let applied = s.graph();
        let has_float_result =
            applied.outputs().iter().any(|o| applied.ty(o.value).unwrap().dtype == DType::F32);
        if floats.is_empty() || !has_float_result || s.is_without_gradient() {
            continue;
        }
        let g = s.gradient_graph().unwrap_or_else(|e| panic!("{}: {e}", s.describe()));
        assert_eq!(g.verify(), vec![], "{}", s.describe());
        let feeds = feeds::<f64>(&s);
        let all = outputs(&g, &feeds);
        let step = 1e-5;
        for (d, &i) in all[1..].iter().zip(&floats) {
            let n = d.data.len();
            let picks: Vec<usize> =
                if n <= 8 { (0..n).collect() } else { (0..8).map(|k| k * 7919 % n).collect() };
            for at in picks {
                let shifted = |h: f64| {
                    let mut f = feeds.clone();
                    f.get_mut(&i.to_string()).expect("fed").data[at] += h;
                    eval_value(&g, &f, g.outputs()[0].value).expect("fed").data[0]
                };
                let numeric = (shifted(step) - shifted(-step)) / (2.0 * step);
                let exact = d.data[at];
                let ok = (numeric - exact).abs() <= 1e-6 * (1.0 + exact.abs());
                assert!(
                    ok,
                    "{} input {i} element {at}: gradient {exact}, finite difference {numeric}",
                    s.describe()
                );
            }
        }
    }
}

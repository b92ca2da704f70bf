//! Sums in f64: the bodies are evaluated by the loop interpreter, the products are added here.

use griffinfly_ir::index::{Access, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind, Map, interpret};
use griffinfly_ir::scalar::ScalarNode;
use griffinfly_ir::types::TensorType;

/// Results of a contraction, and for each element how much rounding it may show.
pub(super) struct Expected {
    pub(super) values: Vec<Vec<f32>>,
    /// Sum of the magnitudes of the products behind the element with the most.
    pub(super) magnitude: f64,
}

pub(super) fn expected(l: &Loop, operands: &[Vec<f32>]) -> Expected {
    let LoopKind::Contract(c) = &l.kind else { panic!("not a contraction") };
    assert_eq!(l.verify(), Vec::<String>::new());
    let words: Vec<Vec<u32>> = operands.iter().map(|x| x.iter().map(|v| v.to_bits()).collect()).collect();
    let a = factor(l, &c.a, [&c.batch, &c.m, &c.k], &words);
    let b = factor(l, &c.b, [&c.batch, &c.n, &c.k], &words);
    let [batch, m, n, k] = c.sizes();
    let (mut sums, mut magnitude) = (Vec::with_capacity(batch * m * n), 0.0_f64);
    for z in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let (left, right) = (&a[(z * m + i) * k..][..k], &b[(z * n + j) * k..][..k]);
                let products = left.iter().zip(right).map(|(x, y)| f64::from(*x) * f64::from(*y));
                let (sum, size) = products.fold((0.0, 0.0), |(s, t), p| (s + p, t + p.abs()));
                sums.push(sum as f32);
                magnitude = magnitude.max(size);
            }
        }
    }
    Expected { values: epilogue(l, c, words, &sums), magnitude }
}

/// A factor as a dense array over its domain.
fn factor(l: &Loop, body: &Body, groups: [&[usize]; 3], words: &[Vec<u32>]) -> Vec<f32> {
    let domain = groups.concat();
    let stores = vec![Store::identity(0, domain.len())];
    let results = vec![TensorType::f32(domain.clone())];
    let map = Map { domain, body: body.clone(), stores };
    let l = Loop { operands: l.operands.clone(), results, kind: LoopKind::Map(map) };
    run(&l, words).swap_remove(0)
}

/// The epilogue as a map that loads the sums.
fn epilogue(l: &Loop, c: &Contract, mut words: Vec<Vec<u32>>, sums: &[f32]) -> Vec<Vec<f32>> {
    let domain = c.domain();
    let ty = TensorType::f32(domain.clone());
    let mut operands = l.operands.clone();
    operands.push(ty.clone());
    words.push(sums.iter().map(|v| v.to_bits()).collect());
    let mut body = Body::new();
    let outputs = body.import(&c.epilogue, c.epilogue.expr.outputs(), &mut |body, node| match node {
        ScalarNode::Carry(0) => Some(body.load(operands.len() - 1, &ty, Access::identity(domain.len()))),
        _ => None,
    });
    body.expr.set_outputs(outputs);
    let map = Map { domain, body, stores: c.stores.clone() };
    run(&Loop { operands, results: l.results.clone(), kind: LoopKind::Map(map) }, &words)
}

fn run(l: &Loop, words: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let operands: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
    let results = interpret(l, &operands);
    results.into_iter().map(|x| x.into_iter().map(f32::from_bits).collect()).collect()
}

//! Sums in f64: the bodies are evaluated by the loop interpreter, the products are added here.

use griffinfly_ir::index::{Access, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind, Map, interpret};
use griffinfly_ir::scalar::{ScalarExpr, ScalarId, ScalarNode};
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
    let [batch, m, n, _] = c.sizes();
    let mut sums = vec![vec![0.0_f64; batch * m * n]; c.sums()];
    let mut sizes = vec![0.0_f64; batch * m * n];
    for (extents, left, right, sum) in c.terms() {
        let k = extents.iter().product::<usize>();
        let a = factor(l, left, [&c.batch, &c.m, extents], &words);
        let b = factor(l, right, [&c.batch, &c.n, extents], &words);
        for at in 0..batch * m * n {
            let (z, i, j) = (at / n / m, at / n % m, at % n);
            let (left, right) = (&a[(z * m + i) * k..][..k], &b[(z * n + j) * k..][..k]);
            let products = left.iter().zip(right).map(|(x, y)| f64::from(*x) * f64::from(*y));
            let (total, size) = products.fold((0.0, 0.0), |(s, t), p| (s + p, t + p.abs()));
            sums[sum][at] += total;
            sizes[at] += size;
        }
    }
    if c.has_row_sum() {
        let second = Body { expr: outputs(&c.a.expr, &c.a.expr.outputs()[1..]), ..c.a.clone() };
        let values = factor(l, &second, [&c.batch, &c.m, &c.k], &words);
        let total = |row: &[f32]| row.iter().map(|x| f64::from(*x)).sum::<f64>();
        let k = c.k.iter().product();
        sums.push(values.chunks(k).flat_map(|row| vec![total(row); n]).collect());
    }
    let sums: Vec<Vec<f32>> = sums.into_iter().map(|s| s.into_iter().map(|x| x as f32).collect()).collect();
    let magnitude = sizes.into_iter().filter(|size| size.is_finite()).fold(0.0, f64::max);
    Expected { values: epilogue(l, c, words, &sums), magnitude }
}

fn outputs(expr: &ScalarExpr, values: &[ScalarId]) -> ScalarExpr {
    let mut expr = expr.clone();
    expr.set_outputs(values.to_vec());
    expr
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
fn epilogue(l: &Loop, c: &Contract, mut words: Vec<Vec<u32>>, sums: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let domain = c.domain();
    let ty = TensorType::f32(domain.clone());
    let (mut operands, first) = (l.operands.clone(), l.operands.len());
    for sum in sums {
        operands.push(ty.clone());
        words.push(sum.iter().map(|v| v.to_bits()).collect());
    }
    let mut body = Body::new();
    let outputs = body.import(&c.epilogue, c.epilogue.expr.outputs(), &mut |body, node| match node {
        ScalarNode::Carry(k) => Some(body.load(first + *k as usize, &ty, Access::identity(domain.len()))),
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

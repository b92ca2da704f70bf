//! Random loops of every kind against the interpreter.

use super::generate::Generator;
use super::harness::check;
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Combine, Contract, LoopKind, Map, Phase, Row, Scatter, Update};
use griffinfly_ir::scalar::ScalarId;
use griffinfly_ir::types::{DType, TensorType};

#[test]
fn host_runs_random_maps() {
    for seed in 0..400 {
        let g = &mut Generator::new(seed);
        let extents = g.random.extents(4, 3000);
        let mut body = Body::new();
        let (mut stores, mut results) = (Vec::<Store>::new(), Vec::new());
        for r in 0..1 + g.random.below(3) {
            let value = g.value(&mut body, &extents, false, &[]);
            body.output(value);
            let (store, ty) = g.store(r, DType::F32, &extents);
            stores.push(store);
            results.push(ty);
        }
        let l = g.finish(results, LoopKind::Map(Map { domain: extents, body, stores }));
        check(&l, &g.data(false), 1e-5);
    }
}

/// A random row loop. Where `whole`, data are small whole numbers and results must be exact.
fn row(g: &mut Generator, whole: bool) -> griffinfly_ir::loops::Loop {
    let rows = g.random.extents(3, 700);
    let cols = g.random.extents(2, 9000 / rows.iter().product::<usize>());
    let all = [rows.clone(), cols.clone()].concat();
    let combines = [Combine::Sum, Combine::Max, Combine::Min, Combine::MaxIndex, Combine::MinIndex];
    let (mut phases, mut carries) = (Vec::new(), Vec::<DType>::new());
    for _ in 0..1 + g.random.below(2) {
        let mut body = Body::new();
        let mut chosen = Vec::new();
        for _ in 0..1 + g.random.below(2) {
            let c = g.random.pick(if whole { &combines[..] } else { &combines[..3] });
            let extra = carried(&mut body, if whole && c == Combine::Sum { &[] } else { &carries });
            let value = g.value(&mut body, &all, whole, &extra);
            body.output(value);
            chosen.push(c);
        }
        for c in &chosen {
            carries.push(DType::F32);
            carries.extend(c.has_index().then_some(DType::I32));
        }
        phases.push(Phase { body, combines: chosen });
    }
    let (mut row_body, mut col_body) = (Body::new(), Body::new());
    let (mut row_stores, mut col_stores, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for (k, d) in carries.iter().enumerate() {
        let value = row_body.expr.carry(k, *d);
        row_body.output(value);
        let (store, ty) = g.store(results.len(), *d, &rows);
        row_stores.push(store);
        results.push(ty);
    }
    if g.random.below(2) == 0 {
        let extra = carried(&mut col_body, &carries);
        let value = g.value(&mut col_body, &all, whole, &extra);
        col_body.output(value);
        let (store, ty) = g.store(results.len(), DType::F32, &all);
        col_stores.push(store);
        results.push(ty);
    }
    g.finish(results, LoopKind::Row(Row { rows, cols, phases, row_body, row_stores, col_body, col_stores }))
}

/// The float carries as values.
fn carried(body: &mut Body, carries: &[DType]) -> Vec<ScalarId> {
    let floats = carries.iter().enumerate().filter(|(_, d)| **d == DType::F32);
    floats.map(|(k, d)| body.expr.carry(k, *d)).take(1).collect()
}

#[test]
fn host_runs_random_rows_of_whole_numbers_exactly() {
    for seed in 0..300 {
        let g = &mut Generator::new(seed);
        let l = row(g, true);
        check(&l, &g.data(true), 0.0);
    }
}

#[test]
fn host_runs_random_rows_of_anything() {
    for seed in 1000..1200 {
        let g = &mut Generator::new(seed);
        let l = row(g, false);
        check(&l, &g.data(false), 1e-2);
    }
}

#[test]
fn host_runs_random_contractions() {
    for seed in 0..300 {
        let g = &mut Generator::new(seed);
        let batch = g.random.extents(1, 3);
        let [m, n, k] = [0, 1, 2].map(|_| g.random.extents(2, 25));
        let factor = |g: &mut Generator, free: &[usize]| {
            let extents = [&batch, free, &k].concat();
            let mut body = Body::new();
            let value = if g.random.below(2) == 0 {
                g.load(&mut body, DType::F32, &extents)
            } else {
                g.value(&mut body, &extents, true, &[])
            };
            body.output(value);
            body
        };
        let (a, b) = (factor(g, &m), factor(g, &n));
        let all = [batch.as_slice(), &m, &n].concat();
        let mut epilogue = Body::new();
        let mut value = epilogue.expr.carry(0, DType::F32);
        if g.random.below(2) == 0 {
            value = g.value(&mut epilogue, &all, true, &[value]);
        }
        epilogue.output(value);
        let (store, ty) = g.store(0, DType::F32, &all);
        let c = Contract {
            batch: batch.clone(),
            m,
            n,
            k: k.clone(),
            a,
            b,
            more: vec![],
            epilogue,
            stores: vec![store],
        };
        let l = g.finish(vec![ty], LoopKind::Contract(c));
        check(&l, &g.data(true), 0.0);
    }
}

#[test]
fn host_runs_random_scatters() {
    for seed in 0..100 {
        let g = &mut Generator::new(seed);
        let items = g.random.extents(2, 400);
        let cols = g.random.extents(2, 9000 / items.iter().product::<usize>());
        let rows = 1 + g.random.below(9);
        let (mut ids, mut source) = (Body::new(), Body::new());
        let id = g.load(&mut ids, DType::I32, &items);
        ids.output(id);
        let value = g.value(&mut source, &[items.clone(), cols.clone()].concat(), false, &[]);
        source.output(value);
        let ty = TensorType::f32([vec![rows], cols.clone()].concat());
        let l = g.finish(vec![ty], LoopKind::Scatter(Scatter { rows, items, cols, ids, source }));
        check(&l, &g.data(false), 1e-4);
    }
}

#[test]
fn host_runs_random_updates() {
    for seed in 0..60 {
        let g = &mut Generator::new(seed);
        let segments: Vec<usize> = (0..1 + g.random.below(4)).map(|_| 1 + g.random.below(900)).collect();
        let mut body = Body::new();
        let lane =
            |body: &mut Body, l| body.load(l, &TensorType::f32([1]), Access::at(vec![IndexExpr::axis(0)]));
        let (p, gradient) = (lane(&mut body, 0), lane(&mut body, 1));
        let rate = body.load(2, &TensorType::f32([]), Access::at(vec![]));
        let step = body.expr.binary(griffinfly_ir::scalar::BinaryFn::Mul, rate, gradient);
        let next = body.expr.add(p, step);
        body.output(next);
        body.output(step);
        let lanes = segments.iter().flat_map(|&n| [TensorType::f32([n]), TensorType::f32([1, n])]);
        g.operands = lanes.chain([TensorType::f32([])]).collect();
        let results = segments.iter().flat_map(|&n| [TensorType::f32([n]), TensorType::f32([n])]).collect();
        let l = g.finish(results, LoopKind::Update(Update { segments, lanes: 2, body }));
        check(&l, &g.data(false), 0.0);
    }
}

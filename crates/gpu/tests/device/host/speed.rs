//! How fast the host is: run by hand, in release, with `--ignored --nocapture`.

use super::generate::Random;
use super::harness::{POISON, STATE, buffer_of, device, program_of};
use super::known::{convolution, matmul, reduction, weight_gradient};
use griffinfly_gpu::Sections;
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Combine, Loop, LoopKind, Map, Phase, Row};
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;
use std::time::Instant;

/// CPU time of this thread in milliseconds where the system tells it (a busy machine does not matter then).
fn cpu_milliseconds(since: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(since.elapsed().as_nanos() as f64) / 1e6
}

/// Mean time of a loop on one thread in milliseconds.
fn milliseconds(l: &Loop) -> f64 {
    assert_eq!(l.verify(), Vec::<String>::new());
    let device = device(1);
    let program = program_of(l, &[]);
    let mut memory = vec![POISON; program.arenas[0].bytes as usize / 4];
    let mut random = Random::new(1);
    for (ty, b) in l.operands.iter().zip(&program.dispatches[0].bindings) {
        memory[b.offset as usize / 4..][..ty.elements()].copy_from_slice(&random.words(ty, true));
    }
    let buffer = buffer_of(device.as_ref(), &memory);
    let mut executor = device.instantiate(Arc::new(program), &[(STATE, buffer)]).expect("sound");
    executor.submit(Sections::ALL).expect("runs");
    let (start, mut runs) = (Instant::now(), 0);
    let before = cpu_milliseconds(start);
    while runs < 20_000 && cpu_milliseconds(start) - before < 300.0 {
        (0..10).for_each(|_| drop(executor.submit(Sections::ALL)));
        runs += 10;
    }
    (cpu_milliseconds(start) - before) / f64::from(runs)
}

#[allow(clippy::print_stdout, reason = "the report is the purpose")]
fn report(name: &str, l: &Loop, operations: usize) {
    let ms = milliseconds(l);
    println!("{name:32} {ms:9.4} ms {:8.2} G/s per thread", operations as f64 / ms / 1e6);
}

/// `out = f(x, y)` over a million elements.
fn pointwise(
    f: impl Fn(&mut Body, [griffinfly_ir::scalar::ScalarId; 2]) -> griffinfly_ir::scalar::ScalarId,
) -> Loop {
    let ty = TensorType::f32([1 << 20]);
    let mut body = Body::new();
    let (x, y) = (body.load(0, &ty, Access::identity(1)), body.load(1, &ty, Access::identity(1)));
    let z = f(&mut body, [x, y]);
    body.output(z);
    let kind = LoopKind::Map(Map { domain: vec![1 << 20], body, stores: vec![Store::identity(0, 1)] });
    Loop { operands: vec![ty.clone(), ty.clone()], results: vec![ty], kind }
}

fn pool(n: usize, size: usize) -> Loop {
    let ty = TensorType::f32([n, size, size]);
    let at = |a: usize, b: usize| IndexExpr::axis(a).times(2).plus(&IndexExpr::axis(b));
    let body = Body::of_load(0, &ty, Access::at(vec![IndexExpr::axis(0), at(1, 3), at(2, 4)]));
    let mut row_body = Body::new();
    let (value, index) = (row_body.expr.carry(0, DType::F32), row_body.expr.carry(1, DType::I32));
    row_body.expr.set_outputs(vec![value, index]);
    let dims = [n, size / 2, size / 2];
    let row = Row {
        rows: dims.to_vec(),
        cols: vec![2, 2],
        phases: vec![Phase { body, combines: vec![Combine::MaxIndex] }],
        row_body,
        row_stores: vec![Store::identity(0, 3), Store::identity(1, 3)],
        col_body: Body::new(),
        col_stores: vec![],
    };
    let results = vec![TensorType::f32(dims), TensorType::new(DType::I32, dims)];
    Loop { operands: vec![ty], results, kind: LoopKind::Row(row) }
}

#[test]
#[ignore = "measures"]
fn host_speed() {
    for n in [64, 128, 512, 1024] {
        report(&format!("matmul {n}^3"), &matmul(n, n, n), 2 * n * n * n);
    }
    report("matmul 64x10x128", &matmul(64, 10, 128), 2 * 64 * 10 * 128);
    report("matmul 128x512x8192", &matmul(128, 512, 8192), 2 * 128 * 512 * 8192);
    let dims = [64, 16, 8, 8];
    let flops = 2 * 64 * 64 * 32 * 16 * 9;
    report("conv 64x16x8x8 -> 32, 3x3", &convolution(dims, 32), flops);
    report("its weight gradient", &weight_gradient(dims, 32), flops);
    let dims = [8, 64, 32, 32];
    let flops = 2 * 8 * 32 * 32 * 64 * 64 * 9;
    report("conv 8x64x32x32 -> 64, 3x3", &convolution(dims, 64), flops);
    report("its weight gradient", &weight_gradient(dims, 64), flops);
    report("pointwise 1M, x + y", &pointwise(|b, [x, y]| b.expr.add(x, y)), 1 << 20);
    let gelu = |b: &mut Body, [x, y]: [griffinfly_ir::scalar::ScalarId; 2]| {
        let e = b.expr.unary(UnaryFn::Tanh, x);
        let m = b.expr.binary(BinaryFn::Max, e, y);
        b.expr.binary(BinaryFn::Mul, m, x)
    };
    report("pointwise 1M, max(tanh x, y) x", &pointwise(gelu), 1 << 20);
    report("sum of 1M", &reduction(1, 1 << 20, Combine::Sum, false), 1 << 20);
    report("row sums 1024x1024", &reduction(1024, 1024, Combine::Sum, false), 1 << 20);
    report("column sums 1024x1024", &reduction(1024, 1024, Combine::Sum, true), 1 << 20);
    report("row argmax 1024x1024", &reduction(1024, 1024, Combine::MaxIndex, false), 1 << 20);
    report("max pool 2048x8x8", &pool(2048, 8), 2048 * 64);
    report("max pool 64x64x64", &pool(64, 64), 64 * 64 * 64);
}

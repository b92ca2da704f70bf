//! Loops of known shape: convolutions, windows, rows of all widths, long sums, special values.

use super::generate::Random;
use super::harness::{assert_close, check, device, program_of, run, run_program};
use griffinfly_ir::index::{Access, Bound, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Combine, Contract, Loop, LoopKind, Map, Phase, Row};
use griffinfly_ir::scalar::{BinaryFn, Scalar, UnaryFn};
use griffinfly_ir::types::{DType, TensorType};

fn floats(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

pub(super) fn identity(extents: &[usize], operand: usize) -> (Body, TensorType) {
    let ty = TensorType::f32(extents);
    (Body::of_load(operand, &ty, Access::identity(extents.len())), ty)
}

/// `a[m, k] b[n, k]` with the sum stored as it is.
pub(super) fn matmul(m: usize, n: usize, k: usize) -> Loop {
    let load = |operand, rows| Body::of_load(operand, &TensorType::f32([rows, k]), Access::identity(2));
    let mut epilogue = Body::new();
    let sum = epilogue.expr.carry(0, DType::F32);
    epilogue.output(sum);
    let c = Contract {
        batch: vec![],
        m: vec![m],
        n: vec![n],
        k: vec![k],
        a: load(0, m),
        b: load(1, n),
        more: vec![],
        epilogue,
        stores: vec![Store::identity(0, 2)],
    };
    let operands = vec![TensorType::f32([m, k]), TensorType::f32([n, k])];
    Loop { operands, results: vec![TensorType::f32([m, n])], kind: LoopKind::Contract(c) }
}

/// The image read over (n, h, w, c, i, j) at (n, c, h + i - 1, w + j - 1), zero outside.
fn image(dims: [usize; 4], axes: [usize; 6]) -> (Body, TensorType) {
    let ty = TensorType::f32(dims);
    let [n, h, w, c, i, j] = axes.map(IndexExpr::axis);
    let (y, x) = (h.plus(&i).plus_constant(-1), w.plus(&j).plus_constant(-1));
    let valid = vec![Bound::new(y.clone(), 0, dims[2] as i64), Bound::new(x.clone(), 0, dims[3] as i64)];
    let access = Access::at(vec![n, c, y, x]).when(valid, Scalar::f32(0.0));
    (Body::of_load(0, &ty, access), ty)
}

/// A 3x3 convolution with padding 1, bias and relu.
pub(super) fn convolution([n, ci, h, w]: [usize; 4], co: usize) -> Loop {
    let (a, x) = image([n, ci, h, w], [0, 1, 2, 3, 4, 5]);
    let weights = TensorType::f32([co, ci, 3, 3]);
    let b = Body::of_load(1, &weights, Access::identity(4));
    let bias = TensorType::f32([co]);
    let mut epilogue = Body::new();
    let sum = epilogue.expr.carry(0, DType::F32);
    let add = epilogue.load(2, &bias, Access::at(vec![IndexExpr::axis(3)]));
    let sum = epilogue.expr.add(sum, add);
    let zero = epilogue.expr.f32(0.0);
    let out = epilogue.expr.binary(BinaryFn::Max, sum, zero);
    epilogue.output(out);
    let coords = [0, 3, 1, 2].map(IndexExpr::axis).to_vec();
    let c = Contract {
        batch: vec![],
        m: vec![n, h, w],
        n: vec![co],
        k: vec![ci, 3, 3],
        a,
        b,
        more: vec![],
        epilogue,
        stores: vec![Store { result: 0, coords }],
    };
    let results = vec![TensorType::f32([n, co, h, w])];
    Loop { operands: vec![x, weights, bias], results, kind: LoopKind::Contract(c) }
}

/// The gradient of the convolution's weights: few outputs, a long sum.
pub(super) fn weight_gradient([n, ci, h, w]: [usize; 4], co: usize) -> Loop {
    // b over (ci, i, j) ++ (n, h, w)
    let (b, x) = image([n, ci, h, w], [3, 4, 5, 0, 1, 2]);
    let dy = TensorType::f32([n, co, h, w]);
    let a = Body::of_load(1, &dy, Access::at([1, 0, 2, 3].map(IndexExpr::axis).to_vec()));
    let mut epilogue = Body::new();
    let sum = epilogue.expr.carry(0, DType::F32);
    epilogue.output(sum);
    let (m, k) = (vec![co], vec![n, h, w]);
    let stores = vec![Store::identity(0, 4)];
    let c = Contract { batch: vec![], m, n: vec![ci, 3, 3], k, a, b, more: vec![], epilogue, stores };
    let results = vec![TensorType::f32([co, ci, 3, 3])];
    Loop { operands: vec![x, dy], results, kind: LoopKind::Contract(c) }
}

/// Softmax of rows, or with `statistics` only the maximum and the sum.
fn softmax(rows: usize, cols: usize) -> Loop {
    let (first, ty) = identity(&[rows, cols], 0);
    let shifted = |body: &mut Body| {
        let x = body.load(0, &ty, Access::identity(2));
        let max = body.expr.carry(0, DType::F32);
        let d = body.expr.binary(BinaryFn::Sub, x, max);
        body.expr.unary(UnaryFn::Exp, d)
    };
    let (mut second, mut col_body, mut row_body) = (Body::new(), Body::new(), Body::new());
    let e = shifted(&mut second);
    second.output(e);
    let e = shifted(&mut col_body);
    let sum = col_body.expr.carry(1, DType::F32);
    let y = col_body.expr.div(e, sum);
    col_body.output(y);
    let sum = row_body.expr.carry(1, DType::F32);
    row_body.output(sum);
    let phases = vec![
        Phase { body: first, combines: vec![Combine::Max] },
        Phase { body: second, combines: vec![Combine::Sum] },
    ];
    let row = Row {
        rows: vec![rows],
        cols: vec![cols],
        phases,
        row_body,
        row_stores: vec![Store::identity(0, 1)],
        col_body,
        col_stores: vec![Store::identity(1, 2)],
    };
    let results = vec![TensorType::f32([rows]), ty.clone()];
    Loop { operands: vec![ty], results, kind: LoopKind::Row(row) }
}

/// A reduction of `[rows, cols]` along columns (or along rows with `transposed`).
pub(super) fn reduction(rows: usize, cols: usize, combine: Combine, transposed: bool) -> Loop {
    let (dims, coords) = if transposed { ([cols, rows], [1, 0]) } else { ([rows, cols], [0, 1]) };
    let ty = TensorType::f32(dims);
    let body = Body::of_load(0, &ty, Access::at(coords.map(IndexExpr::axis).to_vec()));
    let mut row_body = Body::new();
    let (mut row_stores, mut results) = (Vec::new(), Vec::new());
    for (k, d) in [DType::F32, DType::I32].into_iter().take(combine.carries()).enumerate() {
        let value = row_body.expr.carry(k, d);
        row_body.output(value);
        row_stores.push(Store::identity(k, 1));
        results.push(TensorType::new(d, [rows]));
    }
    let phases = vec![Phase { body, combines: vec![combine] }];
    let (col_body, col_stores) = (Body::new(), vec![]);
    let row = Row { rows: vec![rows], cols: vec![cols], phases, row_body, row_stores, col_body, col_stores };
    Loop { operands: vec![ty], results, kind: LoopKind::Row(row) }
}

fn data(l: &Loop, seed: u64) -> Vec<Vec<u32>> {
    let mut random = Random::new(seed);
    l.operands.iter().map(|ty| random.words(ty, true)).collect()
}

#[test]
fn host_convolves_with_padding() {
    for (dims, co) in [([2, 3, 5, 7], 4), ([1, 1, 1, 1], 1), ([3, 2, 8, 8], 9), ([2, 4, 1, 9], 3)] {
        let l = convolution(dims, co);
        check(&l, &data(&l, 1), 0.0);
        let l = weight_gradient(dims, co);
        check(&l, &data(&l, 2), 0.0);
    }
}

#[test]
fn host_cuts_long_sums_of_contractions() {
    for l in [weight_gradient([40, 2, 8, 8], 3), matmul(3, 5, 5000), matmul(300, 2, 300), matmul(1, 400, 70)]
    {
        check(&l, &data(&l, 3), 0.0);
    }
}

#[test]
fn host_takes_rows_of_every_width() {
    for (rows, cols) in
        [(1, 1), (5, 1), (300, 1), (1, 255), (3, 256), (2, 257), (70, 13), (1, 5000), (2, 4999)]
    {
        let l = softmax(rows, cols);
        check(&l, &data(&l, 4), 1e-5);
    }
}

#[test]
fn host_cuts_long_rows() {
    let all = [Combine::Sum, Combine::Max, Combine::Min, Combine::MaxIndex, Combine::MinIndex];
    for (combine, transposed) in all.into_iter().flat_map(|c| [(c, false), (c, true)]) {
        for (rows, cols) in [(1, 70_001), (3, 33_000), (70, 900)] {
            let l = reduction(rows, cols, combine, transposed);
            check(&l, &data(&l, 5), 0.0);
        }
    }
}

#[test]
fn host_sums_stay_accurate() {
    // 0.1 is not a sum of few powers of two: a running sum of 2^20 of them loses three digits.
    for (rows, cols, transposed) in [(1, 1 << 20, false), (1, 1 << 20, true), (300, 1 << 12, true)] {
        let l = reduction(rows, cols, Combine::Sum, transposed);
        let got = run(device(2).as_ref(), &l, &[floats(&vec![0.1; rows * cols])]);
        let want = f64::from(0.1f32) * cols as f64;
        let error = (f64::from(f32::from_bits(got[0][0])) - want).abs() / want;
        assert!(error < 3e-6, "{error} for {cols} columns");
    }
}

#[test]
fn host_finds_the_first_of_ties_and_the_first_nan() {
    let nan = f32::NAN;
    let rows = [[1.0, 3.0, 3.0], [nan, 9.0, nan], [0.0, -0.0, -1.0], [2.0, nan, 2.0]];
    for transposed in [false, true] {
        let mut values: Vec<f32> = rows.concat();
        if transposed {
            values = (0..12).map(|i| rows[i % 4][i / 4]).collect();
        }
        let l = reduction(4, 3, Combine::MaxIndex, transposed);
        let got = run(device(1).as_ref(), &l, &[floats(&values)]);
        assert_eq!(got[1], [1, 0, 0, 1]);
        let l = reduction(4, 3, Combine::Max, transposed);
        check(&l, &[floats(&values)], 0.0);
    }
}

#[test]
fn host_takes_windows_with_their_index() {
    for (n, size) in [(3, 8), (70, 6), (1, 2)] {
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
        let l = Loop { operands: vec![ty], results, kind: LoopKind::Row(row) };
        check(&l, &data(&l, 6), 0.0);
    }
}

/// Every function on special and ordinary values.
#[test]
fn host_functions_agree_with_the_interpreter() {
    use UnaryFn::{Abs, Cos, Erf, Exp, Floor, Log, Neg, Rsqrt, Sigmoid, Sin, Sqrt, Tanh};
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-30, -80.0, 80.0];
    let values: Vec<f32> = (0..500).map(|i| i as f32 / 25.0 - 10.0).chain(special).collect();
    let ty = TensorType::f32([values.len()]);
    for f in [Neg, Abs, Exp, Log, Sqrt, Rsqrt, Tanh, Sigmoid, Erf, Sin, Cos, Floor] {
        let mut body = Body::new();
        let x = body.load(0, &ty, Access::identity(1));
        let y = body.expr.unary(f, x);
        body.output(y);
        let kind =
            LoopKind::Map(Map { domain: vec![values.len()], body, stores: vec![Store::identity(0, 1)] });
        let l = Loop { operands: vec![ty.clone()], results: vec![ty.clone()], kind };
        check(&l, &[floats(&values)], 1e-6);
    }
}

#[test]
fn host_binary_functions_agree_with_the_interpreter() {
    use BinaryFn::{Add, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Pow, Sub};
    let some = [f32::NAN, f32::INFINITY, -3.0, -0.0, 0.0, 0.5, 2.0, 1e20];
    let pairs: Vec<(f32, f32)> = some.iter().flat_map(|a| some.iter().map(move |b| (*a, *b))).collect();
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
    for dtype in [DType::F32, DType::I32, DType::U32] {
        let ty = TensorType::new(dtype, [a.len()]);
        for f in [Add, Sub, Mul, Div, Pow, Max, Min, Eq, Ne, Lt, Le] {
            let Some(out) = f.result(dtype, dtype) else { continue };
            let mut body = Body::new();
            let (x, y) = (body.load(0, &ty, Access::identity(1)), body.load(1, &ty, Access::identity(1)));
            let z = body.expr.binary(f, x, y);
            body.output(z);
            let kind =
                LoopKind::Map(Map { domain: vec![a.len()], body, stores: vec![Store::identity(0, 1)] });
            let results = vec![TensorType::new(out, [a.len()])];
            let l = Loop { operands: vec![ty.clone(), ty.clone()], results, kind };
            check(&l, &[floats(&a), floats(&b)], 1e-5);
        }
    }
}

#[test]
fn host_writes_in_place_element_by_element() {
    let ty = TensorType::f32([3, 700]);
    let mut body = Body::new();
    let (x, y) = (body.load(0, &ty, Access::identity(2)), body.load(1, &ty, Access::identity(2)));
    let sum = body.expr.add(x, y);
    body.output(sum);
    let kind = LoopKind::Map(Map { domain: vec![3, 700], body, stores: vec![Store::identity(0, 2)] });
    let l = Loop { operands: vec![ty.clone(), ty.clone()], results: vec![ty], kind };
    let operands = data(&l, 7);
    let got = run_program(device(2).as_ref(), program_of(&l, &[(1, 0)]), &operands).unwrap();
    assert_close(&l, &operands, &got, 0.0);
}

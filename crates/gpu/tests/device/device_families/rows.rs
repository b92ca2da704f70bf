//! Row loops in every realisation.

use super::harness::{Case, floats, run, with_device};
use griffinfly_compile::kernel::families::{RowRealisation, realise_row, realise_row_as};
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Combine, Loop, LoopKind, Phase, Row};
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};

/// `[rows, cols]`, or `[cols, rows]` in memory.
fn operand(rows: usize, cols: usize, transposed: bool) -> (TensorType, Access) {
    if transposed {
        (TensorType::f32([cols, rows]), Access::at(vec![IndexExpr::axis(1), IndexExpr::axis(0)]))
    } else {
        (TensorType::f32([rows, cols]), Access::identity(2))
    }
}

/// Softmax with the logarithm of the sum per row: two phases, row and column outputs.
pub(super) fn softmax(rows: usize, cols: usize, transposed: bool) -> Loop {
    let (ty, access) = operand(rows, cols, transposed);
    let shifted = |body: &mut Body| {
        let x = body.load(0, &ty, access.clone());
        let max = body.expr.carry(0, DType::F32);
        let d = body.expr.sub(x, max);
        body.expr.unary(UnaryFn::Exp, d)
    };
    let largest = Phase { body: Body::of_load(0, &ty, access.clone()), combines: vec![Combine::Max] };
    let mut sum = Body::new();
    let e = shifted(&mut sum);
    sum.output(e);
    let mut row_body = Body::new();
    let (max, total) = (row_body.expr.carry(0, DType::F32), row_body.expr.carry(1, DType::F32));
    let log = row_body.expr.unary(UnaryFn::Log, total);
    let log_sum = row_body.expr.add(log, max);
    row_body.output(log_sum);
    let mut col_body = Body::new();
    let e = shifted(&mut col_body);
    let total = col_body.expr.carry(1, DType::F32);
    let y = col_body.expr.div(e, total);
    col_body.output(y);
    Loop {
        operands: vec![ty.clone()],
        results: vec![TensorType::f32([rows]), ty.clone()],
        kind: LoopKind::Row(Row {
            rows: vec![rows],
            cols: vec![cols],
            phases: vec![largest, Phase { body: sum, combines: vec![Combine::Sum] }],
            row_body,
            row_stores: vec![Store::identity(0, 1)],
            col_body,
            col_stores: vec![Store { result: 1, coords: access.coords.clone() }],
        }),
    }
}

/// Sum of squares, and the first smallest and largest value with their places, in one phase.
pub(super) fn extremes(rows: usize, cols: usize, transposed: bool) -> Loop {
    let (ty, access) = operand(rows, cols, transposed);
    let mut body = Body::new();
    let x = body.load(0, &ty, access);
    let square = body.expr.mul(x, x);
    [square, x, x].into_iter().for_each(|output| body.output(output));
    let combines = vec![Combine::Sum, Combine::MinIndex, Combine::MaxIndex];
    let mut row_body = Body::new();
    let dtypes = [DType::F32, DType::F32, DType::I32, DType::F32, DType::I32];
    for (k, dtype) in dtypes.into_iter().enumerate() {
        let carry = row_body.expr.carry(k, dtype);
        row_body.output(carry);
    }
    Loop {
        operands: vec![ty],
        results: dtypes.into_iter().map(|dtype| TensorType::new(dtype, [rows])).collect(),
        kind: LoopKind::Row(Row {
            rows: vec![rows],
            cols: vec![cols],
            phases: vec![Phase { body, combines }],
            row_body,
            row_stores: (0..5).map(|result| Store::identity(result, 1)).collect(),
            col_body: Body::new(),
            col_stores: Vec::new(),
        }),
    }
}

/// Maxima over windows of `taps` by `taps` with a padding of 1 and stride 2, in an image of `size` by `size`.
pub(super) fn window(size: usize, taps: usize) -> Loop {
    let out = size.div_ceil(2);
    let ty = TensorType::f32([3, size, size]);
    let at = |axis: usize, tap: usize| {
        IndexExpr::axis(axis).times(2).plus(&IndexExpr::axis(tap)).plus_constant(-1)
    };
    let coords = vec![IndexExpr::axis(0), at(1, 3), at(2, 4)];
    let bounds = coords[1..].iter().map(|c| griffinfly_ir::index::Bound::new(c.clone(), 0, size as i64));
    let access = Access::at(coords.clone())
        .when(bounds.collect(), griffinfly_ir::scalar::Scalar::f32(f32::NEG_INFINITY));
    let phase = Phase { body: Body::of_load(0, &ty, access), combines: vec![Combine::MaxIndex] };
    let mut row_body = Body::new();
    let (y, i) = (row_body.expr.carry(0, DType::F32), row_body.expr.carry(1, DType::I32));
    row_body.output(y);
    row_body.output(i);
    let dims = [3, out, out];
    Loop {
        operands: vec![ty],
        results: vec![TensorType::f32(dims), TensorType::new(DType::I32, dims)],
        kind: LoopKind::Row(Row {
            rows: dims.to_vec(),
            cols: vec![taps, taps],
            phases: vec![phase],
            row_body,
            row_stores: (0..2).map(|result| Store::identity(result, 3)).collect(),
            col_body: Body::new(),
            col_stores: Vec::new(),
        }),
    }
}

/// Floats with ties, some NaN and a row of -inf.
pub(super) fn contents(l: &Loop) -> Vec<Vec<u32>> {
    let count = l.operands[0].elements();
    let tied = |word: u32| (f32::from_bits(word) * 8.0).round() / 8.0;
    let mut words: Vec<u32> = floats(count, 3).into_iter().map(|word| tied(word).to_bits()).collect();
    for i in (count / 2..count).step_by(977) {
        words[i] = f32::NAN.to_bits();
    }
    vec![words]
}

fn all(l: &Loop, name: &str, target: &Target, contents: &[Vec<u32>]) -> Vec<Case> {
    let mut cases = vec![Case::new(name, l.clone(), contents.to_vec(), |l| realise_row(l, target))];
    for way in RowRealisation::ALL {
        if way == RowRealisation::OnChip && realise_row_as(l, target, way).is_err() {
            continue;
        }
        let name = format!("{name} {}", way.name());
        cases.push(Case::new(name, l.clone(), contents.to_vec(), |l| realise_row_as(l, target, way)));
    }
    cases
}

const SIZES: [(usize, usize); 9] =
    [(1, 1), (3, 7), (37, 64), (5, 131), (2, 1000), (67, 9), (1, 5003), (130, 32), (64, 2048)];

#[test]
fn softmax_in_every_realisation() {
    with_device(|device| {
        let mut cases = Vec::new();
        for (rows, cols) in SIZES {
            for transposed in [false, true] {
                let l = softmax(rows, cols, transposed);
                let values = vec![floats(rows * cols, 5)];
                let name = format!("softmax {rows}x{cols} transposed {transposed}");
                cases.extend(all(&l, &name, device.target(), &values));
            }
        }
        let kernels = run(device, &cases);
        println!("{} cases, {kernels} kernels", cases.len());
    });
}

#[test]
fn extremes_with_ties_and_nan_in_every_realisation() {
    with_device(|device| {
        let mut cases = Vec::new();
        for (rows, cols) in SIZES {
            for transposed in [false, true] {
                let l = extremes(rows, cols, transposed);
                let name = format!("extremes {rows}x{cols} transposed {transposed}");
                cases.extend(all(&l, &name, device.target(), &contents(&l)));
            }
        }
        let kernels = run(device, &cases);
        println!("{} cases, {kernels} kernels", cases.len());
    });
}

#[test]
fn windows_in_every_realisation() {
    with_device(|device| {
        let mut cases = Vec::new();
        for size in [1, 5, 8, 23] {
            let l = window(size, 3);
            cases.extend(all(&l, &format!("window {size}"), device.target(), &contents(&l)));
        }
        run(device, &cases);
    });
}

/// What a large device would be given, run on this one.
#[test]
fn choices_for_hardware() {
    with_device(|device| {
        let large = Target { is_hardware: true, compute_units: 132, ..device.target().clone() };
        let mut cases = Vec::new();
        for (rows, cols) in SIZES.into_iter().chain([(3, 40_009), (700, 64)]) {
            for transposed in [false, true] {
                let l = softmax(rows, cols, transposed);
                let values = vec![floats(rows * cols, 7)];
                let name = format!("softmax {rows}x{cols} transposed {transposed} for hardware");
                cases.push(Case::new(name, l, values, |l| realise_row(l, &large)));
            }
        }
        assert!(cases.iter().any(|case| case.realisation.dispatches.len() > 1), "none is split");
        run(device, &cases);
    });
}

#[test]
fn more_groups_than_one_dimension_has() {
    with_device(|device| {
        let narrow = Target { max_groups: [23, 65_535, 65_535], ..device.target().clone() };
        let mut cases = Vec::new();
        for way in RowRealisation::ALL {
            let l = softmax(8011, 3, false);
            let values = vec![floats(8011 * 3, 5)];
            cases.push(Case::new(way.name(), l, values, |l| realise_row_as(l, &narrow, way)));
        }
        // More than 65,535 workgroups, of eight invocations to keep it quick.
        let small = Target { max_invocations: 8, ..device.target().clone() };
        let l = extremes(66_001, 32, false);
        let values = vec![floats(66_001 * 32, 6)];
        let stream = |l: &Loop| realise_row_as(l, &small, RowRealisation::Streaming);
        cases.push(Case::new("many groups", l, values, stream));
        for case in &cases {
            let groups: Vec<[u32; 3]> = case.realisation.dispatches.iter().map(|d| d.groups).collect();
            let is_folded = groups.iter().any(|g| g[1] > 1) || device.target().max_groups[0] > 65_535;
            assert!(is_folded, "{}: {groups:?}", case.name);
        }
        run(device, &cases);
    });
}

/// Adds a product to a row: an operand per row and one per column ride along.
#[test]
fn row_and_column_operands() {
    with_device(|device| {
        let (rows, cols) = (13, 50);
        let (x, access) = operand(rows, cols, false);
        let weight = TensorType::f32([cols]);
        let scale = TensorType::f32([rows]);
        let mut body = Body::new();
        let a = body.load(0, &x, access.clone());
        let w = body.load(1, &weight, Access::at(vec![IndexExpr::axis(1)]));
        let s = body.load(2, &scale, Access::at(vec![IndexExpr::axis(0)]));
        let aw = body.expr.mul(a, w);
        let product = body.expr.binary(BinaryFn::Mul, aw, s);
        body.output(product);
        let mut row_body = Body::new();
        let carry = row_body.expr.carry(0, DType::F32);
        let s = row_body.load(2, &scale, Access::identity(1));
        let y = row_body.expr.add(carry, s);
        row_body.output(y);
        let l = Loop {
            operands: vec![x, weight, scale],
            results: vec![TensorType::f32([rows])],
            kind: LoopKind::Row(Row {
                rows: vec![rows],
                cols: vec![cols],
                phases: vec![Phase { body, combines: vec![Combine::Sum] }],
                row_body,
                row_stores: vec![Store::identity(0, 1)],
                col_body: Body::new(),
                col_stores: Vec::new(),
            }),
        };
        let values = vec![floats(rows * cols, 1), floats(cols, 2), floats(rows, 3)];
        run(device, &all(&l, "weighted", device.target(), &values));
    });
}

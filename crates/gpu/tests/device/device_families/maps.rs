//! Maps: addresses, scalar semantics, sizes, and how many kernels they need.

use super::harness::{Case, floats, run, with_device};
use griffinfly_compile::kernel::families::realise;
use griffinfly_ir::index::{Access, Bound, Domain, Dynamic, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Loop, LoopKind, Map};
use griffinfly_ir::scalar::{BinaryFn, Scalar, ScalarId, UnaryFn};
use griffinfly_ir::types::{DType, TensorType};

/// A map whose results are written in place over its domain.
fn map(operands: Vec<TensorType>, domain: &[usize], body: Body) -> Loop {
    let outputs = body.expr.outputs().to_vec();
    let results = outputs.iter().map(|o| TensorType::new(body.expr.dtype(*o), domain)).collect();
    let stores = (0..outputs.len()).map(|result| Store::identity(result, domain.len())).collect();
    Loop { operands, results, kind: LoopKind::Map(Map { domain: domain.to_vec(), body, stores }) }
}

/// `x * y + y` with both operands broadcast to the domain.
pub(super) fn broadcast(x: &[usize], y: &[usize], domain: &[usize]) -> Loop {
    let types = [TensorType::f32(x), TensorType::f32(y)];
    let mut body = Body::new();
    let x = body.load(0, &types[0], Access::broadcast(x, domain));
    let y = body.load(1, &types[1], Access::broadcast(y, domain));
    let product = body.expr.mul(x, y);
    let sum = body.expr.add(product, y);
    body.output(sum);
    map(types.to_vec(), domain, body)
}

fn fill(l: &Loop) -> Vec<Vec<u32>> {
    l.operands.iter().enumerate().map(|(i, ty)| floats(ty.elements(), i as u64 + 1)).collect()
}

#[test]
fn broadcasts_of_all_sizes() {
    with_device(|device| {
        let pairs: [(&[usize], &[usize], &[usize]); 12] = [
            (&[], &[], &[]),
            (&[1], &[1], &[1]),
            (&[7], &[1], &[7]),
            (&[5, 12], &[12], &[5, 12]),
            (&[5, 13], &[13], &[5, 13]),
            (&[5, 1], &[1, 12], &[5, 12]),
            (&[2, 3, 8], &[3, 1], &[2, 3, 8]),
            (&[6, 4, 1], &[4, 1], &[6, 4, 1]),
            (&[1021], &[], &[1021]),
            (&[64, 65], &[64, 65], &[64, 65]),
            (&[1_000_003], &[], &[1_000_003]),
            (&[1024, 1024], &[1024], &[1024, 1024]),
        ];
        let case = |(x, y, domain): &(&[usize], &[usize], &[usize])| {
            let l = broadcast(x, y, domain);
            let values = fill(&l);
            Case::new(format!("{x:?} {y:?} {domain:?}"), l, values, |l| realise(l, device.target()))
        };
        run(device, &pairs.iter().map(case).collect::<Vec<_>>());
    });
}

#[test]
fn one_kernel_serves_all_shapes_in_place() {
    with_device(|device| {
        let shapes: [&[usize]; 5] = [&[3, 5], &[7, 11, 13], &[9], &[1, 15], &[3, 3, 3, 3]];
        let case = |shape: &&[usize]| {
            let l = broadcast(shape, shape, shape);
            let values = fill(&l);
            Case::new(format!("{shape:?}"), l, values, |l| realise(l, device.target()))
        };
        assert_eq!(run(device, &shapes.iter().map(case).collect::<Vec<_>>()), 1);
        let shapes: [&[usize]; 4] = [&[4, 5], &[8, 11, 13], &[3, 16], &[64]];
        assert_eq!(run(device, &shapes.iter().map(case).collect::<Vec<_>>()), 1);
    });
}

/// A rotated, padded read with divisions of negative values: `x[(i - 3) floor 2 + 1][(j + i) % 5]` where it is inside.
fn crooked() -> Loop {
    let domain = [9, 7];
    let all = Domain::of(&domain);
    let (i, j) = (IndexExpr::axis(0), IndexExpr::axis(1));
    let row = i.plus_constant(-3).div(2, all).plus_constant(1);
    let col = i.times(-1).plus(&j).plus_constant(-2).rem(5, all);
    let inside = vec![Bound::new(row.clone(), 0, 3), Bound::new(i.plus(&j), 2, 12)];
    let ty = TensorType::f32([3, 5]);
    let mut body = Body::new();
    let access = Access::at(vec![row.clone(), col.clone()]).when(inside, Scalar::f32(-7.5));
    let x = body.load(0, &ty, access);
    let index = body.expr.index(row.times(10).plus(&col));
    let within = body.expr.within(vec![Bound::new(row, -1, 2), Bound::new(col, 1, 100)]);
    [x, index, within].into_iter().for_each(|output| body.output(output));
    map(vec![ty], &domain, body)
}

/// Rows of a table chosen by ids, of which some are out of range and are clamped.
fn gather(cols: usize) -> (Loop, Vec<Vec<u32>>) {
    let (table, ids) = (TensorType::f32([10, cols]), TensorType::new(DType::I32, [6]));
    let mut body = Body::new();
    body.load(1, &ids, Access::at(vec![IndexExpr::axis(0)]));
    let mut access = Access::at(vec![IndexExpr::constant(0), IndexExpr::axis(1)]);
    access.dynamic = Some(Dynamic { dimension: 0, load: 0 });
    let x = body.load(0, &table, access);
    body.output(x);
    let words = vec![floats(10 * cols, 4), [0, 9, 3, -5, 77, 3].map(|id: i32| id as u32).to_vec()];
    (map(vec![table, ids], &[6, cols], body), words)
}

/// Two tensors behind each other, by guarded loads.
fn concat(cols: usize) -> Loop {
    let types = [TensorType::f32([2, cols]), TensorType::f32([3, cols])];
    let row = IndexExpr::axis(0);
    let mut body = Body::new();
    let first = vec![Bound::new(row.clone(), 0, 2)];
    let at = |row: IndexExpr| Access::at(vec![row, IndexExpr::axis(1)]);
    let a = body.load(0, &types[0], at(row.clone()).when(first.clone(), Scalar::f32(0.0)));
    let second = vec![Bound::new(row.clone(), 2, 5)];
    let b = body.load(1, &types[1], at(row.plus_constant(-2)).when(second, Scalar::f32(0.0)));
    let is_first = body.expr.within(first);
    let x = body.expr.select(is_first, a, b);
    body.output(x);
    map(types.to_vec(), &[5, cols], body)
}

#[test]
fn addresses_equal_the_interpreter() {
    with_device(|device| {
        let mut loops =
            vec![crooked(), concat(4), concat(7)].into_iter().map(|l| (fill(&l), l)).collect::<Vec<_>>();
        for cols in [8, 5] {
            let (l, words) = gather(cols);
            loops.push((words, l));
        }
        let case = |(i, (words, l)): (usize, (Vec<Vec<u32>>, Loop))| {
            Case::new(format!("address {i}"), l, words, |l| realise(l, device.target()))
        };
        run(device, &loops.into_iter().enumerate().map(case).collect::<Vec<_>>());
    });
}

/// One operand of each dtype; the body gets the loads.
fn scalars(f: impl FnOnce(&mut Body, [ScalarId; 2])) -> Loop {
    let types = [TensorType::f32([32]), TensorType::f32([32])];
    let mut body = Body::new();
    let loads = [0, 1].map(|i| body.load(i, &types[i], Access::identity(1)));
    f(&mut body, loads);
    map(types.to_vec(), &[32], body)
}

fn specials() -> Vec<Vec<u32>> {
    let x = [0.0, -0.0, 1.5, -2.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 5e9, 1e-3, 7.0];
    let x = |i: usize| x[i % x.len()].to_bits();
    vec![(0..32).map(x).collect(), (0..32).map(|i| x(i * 5 + 1)).collect()]
}

#[test]
fn scalar_functions_equal_their_meaning() {
    with_device(|device| {
        use BinaryFn::{Add, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Sub};
        let comparisons = scalars(|body, [x, y]| {
            for f in [Eq, Ne, Lt, Le] {
                let z = body.expr.binary(f, x, y);
                body.output(z);
            }
            let nan = body.expr.binary(Ne, x, x);
            let one = body.expr.f32(1.0);
            let z = body.expr.select(nan, one, y);
            body.output(z);
        });
        let extrema = scalars(|body, [x, y]| {
            for f in [Max, Min] {
                let z = body.expr.binary(f, x, y);
                body.output(z);
            }
            let (nan, zero) = (body.expr.binary(Ne, x, x), body.expr.f32(0.0));
            let positive = body.expr.binary(Lt, zero, y);
            let either = body.expr.binary(Or, nan, positive);
            let not = body.expr.unary(UnaryFn::Not, either);
            body.output(not);
        });
        let casts = scalars(|body, [x, _]| {
            for dtype in [DType::I32, DType::U32, DType::Bool] {
                let z = body.expr.cast(dtype, x);
                let back = body.expr.cast(DType::F32, z);
                [z, back].into_iter().for_each(|output| body.output(output));
            }
        });
        let integers = |dtype: DType| {
            scalars(|body, [x, y]| {
                let (x, y) = (body.expr.cast(dtype, x), body.expr.cast(dtype, y));
                for f in [Add, Sub, Mul, Div, Max, Min] {
                    let z = body.expr.binary(f, x, y);
                    body.output(z);
                }
            })
        };
        let loops = [comparisons, extrema, casts, integers(DType::I32), integers(DType::U32)];
        let case = |(i, l): (usize, Loop)| {
            Case::new(format!("scalars {i}"), l, specials(), |l| realise(l, device.target()))
        };
        run(device, &loops.into_iter().enumerate().map(case).collect::<Vec<_>>());
    });
}

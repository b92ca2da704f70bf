//! Scatter and update.

use super::harness::{Case, floats, run, with_device};
use griffinfly_compile::kernel::families::realise;
use griffinfly_ir::index::Access;
use griffinfly_ir::loops::{Body, Loop, LoopKind, Scatter, Update};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};

/// Rows of a `[items, cols]` tensor summed by id; some ids are out of range.
pub(super) fn scatter(rows: usize, items: usize, cols: usize) -> (Loop, Vec<Vec<u32>>) {
    let ids = TensorType::new(DType::I32, [items]);
    let source = TensorType::f32([items, cols]);
    let l = Loop {
        operands: vec![ids.clone(), source.clone()],
        results: vec![TensorType::f32([rows, cols])],
        kind: LoopKind::Scatter(Scatter {
            rows,
            items: vec![items],
            cols: vec![cols],
            ids: Body::of_load(0, &ids, Access::identity(1)),
            source: Body::of_load(1, &source, Access::identity(2)),
        }),
    };
    let id = |i: usize| match i % 11 {
        3 => -1,
        7 => rows as i32,
        _ => ((i * 7919 + i / 3) % rows) as i32,
    };
    let ids = (0..items).map(|i| id(i) as u32).collect();
    (l, vec![ids, floats(items * cols, 9)])
}

#[test]
fn scatters_equal_the_interpreter() {
    with_device(|device| {
        let sizes = [
            (1, 1, 1),
            (5, 40, 3),
            (300, 7, 64),
            (17, 1000, 33),
            (9, 257, 300),
            (3, 5000, 1),
            (1100, 513, 8),
            (1100, 5, 257),
        ];
        // Groups beyond one dimension, without the sizes that takes.
        let narrow = Target { max_groups: [31, 65_535, 65_535], ..device.target().clone() };
        let cases: Vec<Case> = sizes
            .into_iter()
            .map(|(rows, items, cols)| {
                let (l, operands) = scatter(rows, items, cols);
                let name = format!("scatter {items} items of {cols} into {rows}");
                Case::new(name, l, operands, |l| realise(l, &narrow))
            })
            .collect();
        let folded = cases.iter().flat_map(|case| &case.realisation.dispatches).any(|d| d.groups[1] > 1);
        assert!(folded);
        run(device, &cases);
    });
}

#[test]
fn updates_share_one_kernel() {
    with_device(|device| {
        let segments = vec![12_usize, 400, 4096];
        let mut body = Body::new();
        let flat = TensorType::f32([4096]);
        let w = body.load(0, &flat, Access::identity(1));
        let g = body.load(1, &flat, Access::identity(1));
        let rate = body.load(2, &TensorType::f32([]), Access::at(Vec::new()));
        let step = body.expr.mul(rate, g);
        let next = body.expr.sub(w, step);
        body.output(next);
        body.output(step);
        let types =
            |per: usize| segments.iter().flat_map(move |n| std::iter::repeat_n(TensorType::f32([*n]), per));
        let operands: Vec<TensorType> = types(2).chain([TensorType::f32([])]).collect();
        let values = operands.iter().enumerate().map(|(i, ty)| floats(ty.elements(), i as u64)).collect();
        let results = types(2).collect();
        let update = Update { segments: segments.clone(), lanes: 2, body };
        let l = Loop { operands, results, kind: LoopKind::Update(update) };
        let kernels = run(device, &[Case::new("update", l, values, |l| realise(l, device.target()))]);
        assert_eq!(kernels, 1);
    });
}

//! Which byte ranges dispatches touch, and that they do not collide.
//!
//! Within a dispatch a result may overlap an operand only exactly (same range), in a map or update whose loads of that
//! operand read just the element that is written. Within a level, what one dispatch writes no other touches.

use griffinfly_compile::program::{Binding, DispatchId, Program};
use griffinfly_ir::index::{Domain, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Loop, LoopKind};
use griffinfly_ir::types::TensorType;

/// Bytes a tensor takes in a binding.
fn range(b: &Binding, ty: &TensorType) -> (u32, u64, u64) {
    (b.arena.0, b.offset, b.offset.saturating_add(ty.bytes() as u64))
}

fn overlap(a: (u32, u64, u64), b: (u32, u64, u64)) -> bool {
    a.0 == b.0 && a.1 < b.2 && b.1 < a.2
}

/// Checks the ranges of one dispatch.
///
/// # Errors
/// The two that collide, in words.
pub(super) fn check_dispatch(l: &Loop, bindings: &[Binding]) -> Result<(), String> {
    let types: Vec<&TensorType> = l.operands.iter().chain(&l.results).collect();
    let ranges: Vec<_> = bindings.iter().zip(&types).map(|(b, ty)| range(b, ty)).collect();
    let operands = l.operands.len();
    for (r, written) in ranges.iter().enumerate().skip(operands) {
        for (o, other) in ranges.iter().enumerate().take(r).filter(|(_, x)| overlap(**x, *written)) {
            let exact = other == written && o < operands && reads_own_element(l, o, r - operands);
            if !exact {
                let name = |i: usize| {
                    if i < operands { format!("operand {i}") } else { format!("result {}", i - operands) }
                };
                return Err(format!(
                    "{} overlaps {} other than element by element in place",
                    name(r),
                    name(o)
                ));
            }
        }
    }
    Ok(())
}

/// Whether every point reads of operand `o` only the element of result `r` it writes.
fn reads_own_element(l: &Loop, o: usize, r: usize) -> bool {
    let same = |body: &Body, operand: usize, dims: &[usize], store: &IndexExpr, extents: &[usize]| {
        let (mut loads, store) =
            (body.loads.iter().filter(|x| x.operand == operand), settled(store, extents));
        loads.all(|x| x.access.dynamic.is_none() && settled(&x.access.offset(dims), extents) == store)
    };
    match &l.kind {
        LoopKind::Map(m) => {
            let store = m.stores.iter().find(|s: &&Store| s.result == r);
            store.is_some_and(|s| {
                let stored = IndexExpr::flatten(&s.coords, &l.results[r].dims);
                same(&m.body, o, &l.operands[o].dims, &stored, &m.domain)
            })
        }
        LoopKind::Update(u) => {
            let outputs = u.body.expr.outputs().len();
            let own = o / u.lanes.max(1) == r / outputs.max(1) && o < u.segments.len() * u.lanes;
            let elements = [l.operands[o].elements()];
            own && same(&u.body, o % u.lanes.max(1), &elements, &IndexExpr::axis(0), &elements)
        }
        LoopKind::Row(_) | LoopKind::Contract(_) | LoopKind::Scatter(_) | LoopKind::Attention(_) => false,
    }
}

/// The expression with 0 for the index along axes of extent 1, which may be written either way.
fn settled(e: &IndexExpr, extents: &[usize]) -> IndexExpr {
    let axis =
        |(a, extent): (usize, &usize)| if *extent == 1 { IndexExpr::constant(0) } else { IndexExpr::axis(a) };
    e.substitute(&extents.iter().enumerate().map(axis).collect::<Vec<_>>(), Domain::of(extents))
}

/// Checks that dispatches of a level do not collide. Ids must exist.
///
/// # Errors
/// The two that collide, in words.
pub(super) fn check_level(program: &Program, level: &[DispatchId]) -> Result<(), String> {
    // (range, dispatch, written), by start: a range collides with later ones that start before its end.
    let mut touched = Vec::new();
    for id in level {
        let d = &program.dispatches[id.index()];
        let l = &program.loops[d.source.index()];
        let types = l.operands.iter().chain(&l.results);
        for (i, (b, ty)) in d.bindings.iter().zip(types).enumerate() {
            touched.push((range(b, ty), id.0, i >= l.operands.len()));
        }
    }
    touched.sort_unstable();
    for (i, a) in touched.iter().enumerate() {
        let mut later = touched[i + 1..].iter().take_while(|b| overlap(a.0, b.0));
        if let Some(b) = later.find(|b| a.1 != b.1 && (a.2 || b.2)) {
            return Err(format!(
                "dispatches {} and {} of one level collide in arena {} at bytes {}..{}",
                a.1,
                b.1,
                a.0.0,
                b.0.1,
                a.0.2.min(b.0.2)
            ));
        }
    }
    Ok(())
}

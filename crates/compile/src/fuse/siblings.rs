//! Joining independent pointwise loops over one domain into one loop with several results.

use super::pool::Pool;
use crate::lower::{LoopNode, Phase};
use griffinfly_ir::index::Store;
use griffinfly_ir::loops::{Body, LoopKind, Map};

/// Joins as many pairs as qualify: equal domains, equal phase, at least one common operand, no dependency.
pub(super) fn run(pool: &mut Pool, max_bindings: usize) {
    for a in pool.in_order() {
        while let Some((b, joined)) = candidate(pool, a, max_bindings) {
            pool.merge(a, b, joined);
        }
    }
}

/// The first later loop that can be joined to loop `a`, and both as one.
fn candidate(pool: &Pool, a: usize, max_bindings: usize) -> Option<(usize, LoopNode)> {
    let x = pool.node(a)?;
    let LoopKind::Map(m) = &x.l.kind else { return None };
    if x.phase == Phase::Update {
        return None;
    }
    pool.later_readers(&x.inputs, a).into_iter().find_map(|b| {
        let y = pool.node(b)?;
        let LoopKind::Map(n) = &y.l.kind else { return None };
        if m.domain != n.domain || x.phase != y.phase || pool.depends_on(&y.inputs, a) {
            return None;
        }
        let joined = join(x, y, m, n);
        (joined.bindings() <= max_bindings && joined.l.verify().is_empty()).then_some((b, joined))
    })
}

fn join(x: &LoopNode, y: &LoopNode, m: &Map, n: &Map) -> LoopNode {
    let mut joined = x.clone();
    let shift = joined.inputs.len();
    joined.inputs.extend(&y.inputs);
    joined.l.operands.extend(y.l.operands.iter().cloned());
    let mut moved = n.body.clone();
    moved.loads.iter_mut().for_each(|l| l.operand += shift);
    let mut body: Body = m.body.clone();
    let roots = moved.expr.outputs().to_vec();
    let made = body.import(&moved, &roots, &mut |_, _| None);
    let results = joined.outputs.len();
    let mut outputs = m.body.expr.outputs().to_vec();
    outputs.extend(made);
    body.expr.set_outputs(outputs);
    let stores = n.stores.iter().map(|s| Store { result: s.result + results, coords: s.coords.clone() });
    let stores = m.stores.iter().cloned().chain(stores).collect();
    joined.outputs.extend(&y.outputs);
    joined.l.results.extend(y.l.results.iter().cloned());
    joined.l.kind = LoopKind::Map(Map { domain: m.domain.clone(), body, stores });
    joined.labels.extend(y.labels.iter().cloned());
    joined.compact();
    joined
}

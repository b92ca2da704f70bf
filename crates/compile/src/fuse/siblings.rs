//! Joining independent pointwise loops over one domain into one loop with several results.

use super::depends_on;
use crate::lower::{LoopGraph, LoopNode};
use griffinfly_ir::index::Store;
use griffinfly_ir::loops::{Body, LoopKind, Map};

/// Joins as many pairs as qualify: equal domains, equal phase, at least one common operand, no dependency.
pub(super) fn run(graph: &mut LoopGraph, max_bindings: usize) {
    while step(graph, max_bindings) {}
}

fn step(graph: &mut LoopGraph, max_bindings: usize) -> bool {
    let producers = graph.producers();
    for a in 0..graph.loops.len() {
        for b in a + 1..graph.loops.len() {
            let (x, y) = (&graph.loops[a], &graph.loops[b]);
            let (LoopKind::Map(m), LoopKind::Map(n)) = (&x.l.kind, &y.l.kind) else { continue };
            let common = x.inputs.iter().any(|t| y.inputs.contains(t));
            if m.domain != n.domain || x.phase != y.phase || !common || x.phase == crate::lower::Phase::Update
            {
                continue;
            }
            if depends_on(graph, &producers, &y.inputs, a) || depends_on(graph, &producers, &x.inputs, b) {
                continue;
            }
            let joined = join(x, y, m, n);
            if joined.bindings() > max_bindings || !joined.l.verify().is_empty() {
                continue;
            }
            let mut trial = graph.clone();
            trial.loops[a] = joined;
            trial.loops.remove(b);
            if trial.sort().is_ok() {
                *graph = trial;
                return true;
            }
        }
    }
    false
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

//! Fusion: joining loops by substituting one body into another.
//!
//! Input and output are loop graphs that compute the same values. Three moves, all value-preserving:
//!
//! * a pointwise loop that reads another loop's result in place becomes its *epilogue* (`epilogue`);
//! * a pointwise loop or view is inlined into its readers as a *prologue*, its index maps composed (`prologue`);
//! * independent pointwise loops over one domain are joined into one with several results (`siblings`).
//!
//! Invariants: no loop gets more bindings than the target has; composed index maps stay below a cost bound and are proved in
//! range, else the loop stays as it is; no circle of dependencies arises.

mod epilogue;
mod prologue;
mod siblings;
mod substitute;
pub mod update;

use crate::lower::{LoopGraph, TensorId};
use griffinfly_ir::target::Target;

/// Integer instructions per element an inlined index map may cost.
const INDEX_COST_LIMIT: usize = 40;

/// Joins what can be joined for this target.
#[must_use]
pub fn run(mut graph: LoopGraph, target: &Target) -> LoopGraph {
    let max_bindings = (target.max_bindings as usize).min(64);
    loop {
        let before = graph.loops.len();
        while epilogue::step(&mut graph, max_bindings, false) {}
        while prologue::step(&mut graph, max_bindings) {}
        while epilogue::step(&mut graph, max_bindings, true) {}
        graph.drop_dead();
        if graph.loops.len() == before {
            break;
        }
    }
    siblings::run(&mut graph, max_bindings);
    graph.drop_dead();
    graph
}

/// Whether loop `from` is reached from any of `tensors` going back through producers.
fn depends_on(graph: &LoopGraph, producers: &[Option<usize>], tensors: &[TensorId], from: usize) -> bool {
    let mut seen = vec![false; graph.loops.len()];
    let mut stack: Vec<usize> = tensors.iter().filter_map(|t| producers[t.index()]).collect();
    while let Some(i) = stack.pop() {
        if i == from {
            return true;
        }
        if !std::mem::replace(&mut seen[i], true) {
            stack.extend(graph.loops[i].inputs.iter().filter_map(|t| producers[t.index()]));
        }
    }
    false
}

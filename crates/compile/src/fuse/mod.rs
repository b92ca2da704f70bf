//! Fusion: joining loops by substituting one body into another.
//!
//! Input and output are loop graphs that compute the same values. Five moves, all value-preserving:
//!
//! * a pointwise loop that reads another loop's result in place becomes its *epilogue* (`epilogue`);
//! * a pointwise loop or view is inlined into its readers as a *prologue*, its index maps composed (`prologue`);
//! * a contraction whose epilogue reads another one's result becomes one of several terms (`terms`; the host, which gains
//!   nothing from it, keeps them apart);
//! * a contraction of rows that are scaled by what depends on a sum along them scales its results (`scale`; the host does not);
//! * independent pointwise loops over one domain are joined into one with several results (`siblings`).
//!
//! At the end the products of convolutions are reordered for kernels (`windows`; not for the host).
//!
//! Before, `recompute` gives pointwise forward results that the backward pass reads a second loop there, where that keeps
//! fewer bytes from one pass to the other.
//!
//! Invariants: no loop gets more bindings than the target has; composed index maps stay below a cost bound and are proved in
//! range, else the loop stays as it is; no circle of dependencies arises. Each move is tried once per sweep over the loops,
//! in sweeps until none succeeds; `pool` keeps what a move changes, so that the time grows with the loops and not with
//! their square.

mod epilogue;
mod pool;
mod prologue;
mod recompute;
mod scale;
mod siblings;
mod substitute;
mod terms;
pub mod update;
mod windows;

use crate::lower::LoopGraph;
use epilogue::Onto;
use griffinfly_ir::target::Target;

/// Integer instructions per element an inlined index map may cost.
const INDEX_COST_LIMIT: usize = 40;

/// Joins what can be joined for this target.
#[must_use]
pub fn run(graph: LoopGraph, target: &Target) -> LoopGraph {
    let max_bindings = (target.max_bindings as usize).min(64);
    let mut pool = recompute::run(graph);
    while epilogue::run(&mut pool, max_bindings, Onto::Again) {}
    loop {
        let before = pool.len();
        while epilogue::run(&mut pool, max_bindings, Onto::Others) {}
        while prologue::run(&mut pool, max_bindings) {}
        while epilogue::run(&mut pool, max_bindings, Onto::All) {}
        pool.drop_dead();
        if pool.len() == before {
            break;
        }
    }
    if target.backend.has_kernels() {
        prologue::run_ahead(&mut pool, max_bindings);
        terms::run(&mut pool, max_bindings);
        scale::run(&mut pool, max_bindings);
    }
    siblings::run(&mut pool, max_bindings);
    pool.drop_dead();
    let graph = pool.finish();
    if target.backend.has_kernels() { windows::run(graph, max_bindings) } else { graph }
}

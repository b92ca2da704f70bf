//! Computing pointwise forward results again where the backward pass reads them, instead of keeping them.
//!
//! Input: lowered loops, not yet joined. Output: the same with copies of some pointwise forward loops in the backward pass,
//! read there in place of the originals; fusion then makes them part of the loops that read them.
//!
//! Which results are kept is a minimum cut: results are vertices that cost their bytes, a pointwise loop leads from its
//! operands to its result, results of all other loops are sources, and what pointwise loops of the backward pass read are the
//! sinks. What the backward pass must have in memory anyway, for a product or a reduction, costs nothing. Of the smallest cuts
//! the one nearest to the sinks is taken, which computes the least again. Source of the formulation: rematerialisation as a
//! cut between the passes, as in the joint-graph partitioner of PyTorch's AOT autograd.
//!
//! Invariants: values stay the same, bit for bit; leaves, and what depends on parameters and constants alone, count as kept;
//! no loop that reads by data or costs more than a few instructions runs twice.

mod cut;

use super::pool::Pool;
use crate::lower::{LoopGraph, LoopNode, Phase, Source, Tensor, TensorId};
use cut::Network;
use griffinfly_ir::loops::{LoopKind, Map};

/// Arithmetic of a loop that may run twice.
const COST_LIMIT: usize = 16;

/// Adds the copies, and begins to join.
pub(super) fn run(mut graph: LoopGraph) -> Pool {
    let Some(first) = graph.loops.iter().position(|n| n.phase == Phase::Backward) else {
        return Pool::new(graph);
    };
    let again = chosen(&graph);
    let mut image: Vec<Option<TensorId>> = vec![None; graph.tensors.len()];
    let mut copies = Vec::new();
    for i in 0..graph.loops.len() {
        let node = &graph.loops[i];
        let [out] = node.outputs[..] else { continue };
        if node.phase != Phase::Forward || !again[out.index()] {
            continue;
        }
        let mut copy = LoopNode { phase: Phase::Backward, ..node.clone() };
        redirect(&mut copy, &image);
        let Tensor { ty, label, .. } = graph.tensor(out).clone();
        let made = graph.add_tensor(Tensor { ty, source: Source::Temporary, label });
        copy.outputs = vec![made];
        image[out.index()] = Some(made);
        copies.push(copy);
    }
    let readers = graph.loops.iter_mut().filter(|n| n.phase == Phase::Backward);
    readers.for_each(|n| redirect(n, &image));
    graph.loops.splice(first..first, copies);
    graph.drop_dead();
    // Loops of the forward pass that come after the first of the backward pass go before the copies that read them. The
    // lowered loops had no circle, and a copy depends on what its original depends on.
    let _ = graph.sort();
    Pool::with_again(graph, image.into_iter().flatten().collect())
}

fn redirect(node: &mut LoopNode, image: &[Option<TensorId>]) {
    let moved = |t: &TensorId| image.get(t.index()).copied().flatten();
    node.inputs.iter_mut().for_each(|t| *t = moved(t).unwrap_or(*t));
}

/// Which tensors are computed again.
fn chosen(graph: &LoopGraph) -> Vec<bool> {
    let kept = kept(graph);
    let producers = graph.producers();
    let consumers = graph.consumers();
    let is_forward = |p: usize| graph.loops[p].phase == Phase::Forward;
    let vertex = |t: TensorId| producers[t.index()].is_some_and(is_forward) && !kept.free[t.index()];
    let mut network = Network::new(graph.tensors.len());
    for t in (0..graph.tensors.len() as u32).map(TensorId).filter(|t| vertex(*t)) {
        let node = &graph.loops[producers[t.index()].unwrap_or_default()];
        let bytes = if kept.anyway[t.index()] { 0 } else { graph.tensor(t).ty.bytes() as u64 };
        network.vertex(t.index(), bytes);
        match pointwise(node) {
            Some(_) => {
                node.inputs.iter().filter(|o| vertex(**o)).for_each(|o| network.edge(o.index(), t.index()))
            }
            None => network.source(t.index()),
        }
        if consumers[t.index()].iter().any(|&c| graph.loops[c].phase == Phase::Backward) {
            network.sink(t.index());
        }
    }
    network.behind_the_cut()
}

/// The map of a loop that may run twice.
fn pointwise(node: &LoopNode) -> Option<&Map> {
    let LoopKind::Map(map) = &node.l.kind else { return None };
    let by_data = map.body.loads.iter().any(|l| l.access.dynamic.is_some());
    (node.outputs.len() == 1 && !by_data && map.body.expr.cost() <= COST_LIMIT).then_some(map)
}

/// What is in memory during the backward pass whatever is decided here, by tensor.
struct Kept {
    /// Leaves and what does not change from step to step.
    free: Vec<bool>,
    /// Outputs of the graph and what loops other than pointwise ones read in the backward pass.
    anyway: Vec<bool>,
}

fn kept(graph: &LoopGraph) -> Kept {
    let mut free: Vec<bool> = graph.tensors.iter().map(|t| t.source != Source::Temporary).collect();
    let fixed_leaf = |t: &Tensor| matches!(t.source, Source::Parameter(..) | Source::Constant(_));
    let mut fixed: Vec<bool> = graph.tensors.iter().map(fixed_leaf).collect();
    for n in &graph.loops {
        let is_fixed = n.inputs.iter().all(|t| fixed[t.index()]);
        n.outputs.iter().for_each(|t| (fixed[t.index()], free[t.index()]) = (is_fixed, is_fixed));
    }
    let mut anyway = graph.roots();
    for n in graph.loops.iter().rev().filter(|n| n.phase != Phase::Forward || is_view(n)) {
        let whole = match &n.l.kind {
            LoopKind::Map(_) => is_view(n) && n.outputs.iter().any(|t| anyway[t.index()]),
            _ => true,
        };
        if whole {
            n.inputs.iter().for_each(|t| anyway[t.index()] = true);
        }
    }
    Kept { free, anyway }
}

/// Whether the readers of a loop read through it.
fn is_view(node: &LoopNode) -> bool {
    matches!(&node.l.kind, LoopKind::Map(map) if super::prologue::is_view(map))
}

//! The loops under fusion, with what a join changes about them: who writes and reads each tensor, and an order.
//!
//! Invariants: `order` is topological, holds every loop once and keeps the places of removed loops; the tables agree with
//! the loops. A join touches the tables of its loops and the part of the order between them, so a graph of n loops is fused
//! in about linear time. Loops are named by their number in the graph that fusion started from.

use crate::lower::{LoopGraph, LoopNode, TensorId};
use std::collections::HashSet;

/// Loops that are being joined.
pub(super) struct Pool {
    /// Tensors, outputs and updates; its loops are here.
    graph: LoopGraph,
    /// By number; removed ones are `None`.
    nodes: Vec<Option<LoopNode>>,
    /// Numbers of the loops, operands before users.
    order: Vec<usize>,
    /// Where each loop stands in `order`.
    position: Vec<usize>,
    producers: Vec<Option<usize>>,
    consumers: Vec<Vec<usize>>,
    roots: Vec<bool>,
    /// Tensors that the backward pass computes though the forward pass did.
    again: HashSet<TensorId>,
}

impl Pool {
    /// The loops of a graph, which are in a topological order.
    pub(super) fn new(mut graph: LoopGraph) -> Pool {
        let (producers, consumers, roots) = (graph.producers(), graph.consumers(), graph.roots());
        let nodes: Vec<Option<LoopNode>> = std::mem::take(&mut graph.loops).into_iter().map(Some).collect();
        let order: Vec<usize> = (0..nodes.len()).collect();
        let again = HashSet::new();
        Pool { graph, nodes, position: order.clone(), order, producers, consumers, roots, again }
    }

    /// The same, with the tensors that are computed a second time.
    pub(super) fn with_again(graph: LoopGraph, again: HashSet<TensorId>) -> Pool {
        Pool { again, ..Pool::new(graph) }
    }

    /// Whether a loop computes something a second time.
    pub(super) fn is_again(&self, node: &LoopNode) -> bool {
        node.outputs.iter().any(|t| self.again.contains(t))
    }

    /// The graph of the loops that are left.
    pub(super) fn finish(mut self) -> LoopGraph {
        self.graph.loops = self.order.iter().filter_map(|i| self.nodes[*i].take()).collect();
        self.graph
    }

    /// How many loops are left.
    pub(super) fn len(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// The loops that are left, operands before users.
    pub(super) fn in_order(&self) -> Vec<usize> {
        self.order.iter().copied().filter(|i| self.nodes[*i].is_some()).collect()
    }

    /// A loop, if it is left.
    pub(super) fn node(&self, i: usize) -> Option<&LoopNode> {
        self.nodes[i].as_ref()
    }

    /// The loop that writes a tensor.
    pub(super) fn producer(&self, t: TensorId) -> Option<usize> {
        self.producers[t.index()]
    }

    /// The loops that read a tensor.
    pub(super) fn consumers(&self, t: TensorId) -> &[usize] {
        &self.consumers[t.index()]
    }

    /// Whether an output or update names a tensor.
    pub(super) fn is_root(&self, t: TensorId) -> bool {
        self.roots[t.index()]
    }

    /// The loops that read any of these tensors and come after loop `i`, in order.
    pub(super) fn later_readers(&self, tensors: &[TensorId], i: usize) -> Vec<usize> {
        let readers = tensors.iter().flat_map(|t| self.consumers(*t)).copied();
        let mut later: Vec<usize> = readers.filter(|r| self.position[*r] > self.position[i]).collect();
        later.sort_unstable_by_key(|r| self.position[*r]);
        later.dedup();
        later
    }

    /// Whether loop `from` is reached from any of `tensors` going back through producers.
    pub(super) fn depends_on(&self, tensors: &[TensorId], from: usize) -> bool {
        self.behind(tensors, self.position[from]).first() == Some(&self.position[from])
    }

    /// Positions, from `low` on, of the loops that these tensors depend on, in order.
    fn behind(&self, tensors: &[TensorId], low: usize) -> Vec<usize> {
        let before = |t: &TensorId| {
            let at = self.position[self.producers[t.index()]?];
            (at >= low).then_some(at)
        };
        let mut stack: Vec<usize> = tensors.iter().filter_map(before).collect();
        let high = stack.iter().copied().max().unwrap_or(low);
        let mut seen = vec![false; high - low + 1];
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut seen[at - low], true)
                && let Some(node) = self.node(self.order[at])
            {
                stack.extend(node.inputs.iter().filter_map(before));
            }
        }
        (low..=high).filter(|at| seen[at - low]).collect()
    }

    /// Puts a loop that does what it and others did in its place.
    pub(super) fn replace(&mut self, i: usize, node: LoopNode) {
        self.unlink(i);
        for t in &node.inputs {
            let readers = &mut self.consumers[t.index()];
            if !readers.contains(&i) {
                readers.push(i);
            }
        }
        node.outputs.iter().for_each(|t| self.producers[t.index()] = Some(i));
        self.nodes[i] = Some(node);
    }

    /// Removes a loop.
    pub(super) fn remove(&mut self, i: usize) {
        self.unlink(i);
        self.nodes[i] = None;
    }

    /// Replaces two loops, of which `second` is the later and depends on `first` at most directly, by one that computes both:
    /// it keeps the number of the first, and comes after everything it reads.
    pub(super) fn merge(&mut self, first: usize, second: usize, joined: LoopNode) {
        let (low, high) = (self.position[first], self.position[second]);
        let needed = self.behind(&joined.inputs, low + 1);
        self.remove(second);
        self.replace(first, joined);
        let Some(last) = needed.last().copied() else { return };
        debug_assert!(last < high, "the joined loop would read what comes after it");
        // What it needs moves before it, everything between stays behind it.
        let is_needed = |at: &usize| needed.binary_search(at).is_ok();
        let before = (low + 1..=last).filter(is_needed);
        let after = (low + 1..=last).filter(|at| !is_needed(at));
        let moved: Vec<usize> = before.chain([low]).chain(after).map(|at| self.order[at]).collect();
        for (at, i) in (low..).zip(moved) {
            self.order[at] = i;
            self.position[i] = at;
        }
    }

    fn unlink(&mut self, i: usize) {
        let Some(node) = &self.nodes[i] else { return };
        node.inputs.iter().for_each(|t| self.consumers[t.index()].retain(|c| *c != i));
        for t in &node.outputs {
            let producer = &mut self.producers[t.index()];
            if *producer == Some(i) {
                *producer = None;
            }
        }
    }

    /// Removes loops none of whose results are needed.
    pub(super) fn drop_dead(&mut self) {
        for i in self.in_order().into_iter().rev() {
            let is_needed = |t: &TensorId| self.is_root(*t) || !self.consumers(*t).is_empty();
            if self.node(i).is_some_and(|n| !n.outputs.iter().any(is_needed)) {
                self.remove(i);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Products of convolutions by taps, then channels.
//!
//! A convolution sums over channels and taps. With the channels innermost, a tile of products has one tap: where its elements lie
//! is found once for all of them, not one by one. The weights, which lie channel by channel with their taps side by side, are
//! copied to `[out, taps, in]`, so that products of a row still lie side by side; the gradient with respect to the input
//! reads the same copy, whose neighbouring rows lie side by side. A program that does not update the weights makes the copy in its
//! prepare section.
//!
//! Invariants: the same products are summed, in another order; the copy is made once per tensor.

use super::substitute::{View, substitute};
use crate::lower::{LoopGraph, LoopNode, Phase, Source, Tensor, TensorId};
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind, Map};
use griffinfly_ir::types::TensorType;
use std::collections::BTreeMap;

/// Channels are a multiple of this: the products of a tile.
const CHANNELS: usize = 32;

/// Where the dimensions of the copy come from: those of the taps come before the channels.
fn copied(rank: usize) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(2..rank).chain([1])
}

/// Reorders the products of the contractions that sum over channels and taps of a parameter.
pub(super) fn run(graph: LoopGraph, max_bindings: usize) -> LoopGraph {
    let mut graph = graph;
    let mut copies: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    let mut loops = std::mem::take(&mut graph.loops);
    for node in &mut loops {
        let Some((mut reordered, weights)) = reordered(node, &graph) else { continue };
        for (operand, weight) in weights {
            let copy = *copies.entry(weight).or_insert_with(|| {
                let tensor = graph.tensor(weight);
                let dims: Vec<usize> = copied(tensor.ty.dims.len()).map(|d| tensor.ty.dims[d]).collect();
                let ty = TensorType::f32(dims);
                let label = format!("{} by taps", tensor.label);
                graph.tensors.push(Tensor { ty, source: Source::Temporary, label });
                TensorId(graph.tensors.len() as u32 - 1)
            });
            reordered.inputs[operand] = copy;
            reordered.l.operands[operand] = graph.tensor(copy).ty.clone();
        }
        reordered.compact();
        if reordered.inputs.len() + reordered.outputs.len() <= max_bindings && reordered.l.verify().is_empty()
        {
            *node = reordered;
        }
    }
    copies.retain(|_, copy| loops.iter().any(|node| node.inputs.contains(copy)));
    let made = copies.into_iter().map(|(weight, copy)| copying(&graph, weight, copy));
    graph.loops = made.collect::<Vec<_>>().into_iter().chain(loops).collect();
    graph
}

/// The loop that copies weights.
fn copying(graph: &LoopGraph, weight: TensorId, copy: TensorId) -> LoopNode {
    let (from, to) = (graph.tensor(weight), graph.tensor(copy));
    let rank = from.ty.dims.len();
    let mut coords = vec![IndexExpr::constant(0); rank];
    copied(rank).enumerate().for_each(|(axis, d)| coords[d] = IndexExpr::axis(axis));
    let body = Body::of_load(0, &from.ty, Access::at(coords));
    let map = Map { domain: to.ty.dims.clone(), body, stores: vec![Store::identity(0, rank)] };
    LoopNode {
        l: Loop { operands: vec![from.ty.clone()], results: vec![to.ty.clone()], kind: LoopKind::Map(map) },
        inputs: vec![weight],
        outputs: vec![copy],
        labels: [to.label.clone()].into(),
        phase: Phase::Forward,
    }
}

/// A contraction with its products in the other order, and the operands that become copies of weights: for the old operand of each
/// term a new one behind the others.
fn reordered(node: &LoopNode, graph: &LoopGraph) -> Option<(LoopNode, Vec<(usize, TensorId)>)> {
    let LoopKind::Contract(c) = &node.l.kind else { return None };
    let mut node = node.clone();
    let mut weights: Vec<(usize, TensorId)> = Vec::new();
    let mut c = c.clone();
    let count = c.terms().count();
    for term in 0..count {
        let (batch, own) = (c.batch.clone(), [c.m.clone(), c.n.clone()]);
        let (k, a, b) = term_of(&mut c, term)?;
        let &mut [channels, high, wide] = k.as_mut_slice() else { continue };
        if high * wide == 1 || !channels.is_multiple_of(CHANNELS) {
            continue;
        }
        let weight = |body: &Body| weight_of(body, &node, graph);
        let Some(side) = [&*a, &*b].iter().position(|body| weight(body).is_some()) else { continue };
        let extents = [channels, high, wide];
        for (body, own) in [&mut *a, &mut *b].into_iter().zip(&own) {
            *body = turned(body, &[batch.as_slice(), own].concat(), extents, node.inputs.len());
        }
        let body = [a, b].into_iter().nth(side)?;
        let load = body.loads.first_mut()?;
        let tensor = node.inputs[load.operand];
        let operand = weights.iter().find(|(_, t)| *t == tensor).map(|(operand, _)| *operand);
        let operand = operand.unwrap_or_else(|| {
            node.inputs.push(tensor);
            node.l.operands.push(graph.tensor(tensor).ty.clone());
            weights.push((node.inputs.len() - 1, tensor));
            node.inputs.len() - 1
        });
        load.operand = operand;
        let coords = &load.access.coords;
        load.access.coords = copied(coords.len()).map(|d| coords[d].clone()).collect();
        *k = vec![high, wide, channels];
    }
    if weights.is_empty() {
        return None;
    }
    node.l.kind = LoopKind::Contract(c);
    Some((node, weights))
}

/// Extents of the products and both factors of a term.
fn term_of(c: &mut Contract, term: usize) -> Option<(&mut Vec<usize>, &mut Body, &mut Body)> {
    match term.checked_sub(1) {
        None => Some((&mut c.k, &mut c.a, &mut c.b)),
        Some(at) => c.more.get_mut(at).map(|term| (&mut term.k, &mut term.a, &mut term.b)),
    }
}

/// The parameter, of channels and taps, that a factor is read from as it is.
fn weight_of(body: &Body, node: &LoopNode, graph: &LoopGraph) -> Option<TensorId> {
    let ([load], true) = (body.loads.as_slice(), body.is_move()) else { return None };
    let tensor = *node.inputs.get(load.operand)?;
    let Tensor { ty, source, .. } = graph.tensor(tensor);
    let is_weight = matches!(source, Source::Parameter(..)) && ty.dims.len() > 2;
    (is_weight && load.access.dynamic.is_none()).then_some(tensor)
}

/// A body over these axes and three of products, whose channels go behind the taps.
fn turned(body: &Body, before: &[usize], [channels, high, wide]: [usize; 3], operands: usize) -> Body {
    let first = before.len();
    let image = |axis: usize| match axis.checked_sub(first) {
        None => axis,
        Some(0) => first + 2,
        Some(_) => axis - 1,
    };
    let map: Vec<IndexExpr> = (0..first + 3).map(|axis| IndexExpr::axis(image(axis))).collect();
    let (extents, all) = ([before, &[high, wide, channels]].concat(), (0..operands).collect::<Vec<_>>());
    let view = View { map: &map, guard: &[], extents: &extents, operands: &all };
    let mut out = Body::new();
    let outputs = substitute(&mut out, body, &view, &|_| None);
    out.expr.set_outputs(outputs);
    out
}

//! Step scalars as one tensor.
//!
//! What the host computes for a step (learning rate, bias corrections) lies in one slot: a tensor with an element for each
//! scalar. Loops read the slot at a constant place instead of the scalars themselves, so a kernel binds it once whatever it
//! reads. Without this an Adam update has 10 bindings, and the smallest devices allow 8.
//!
//! Invariants: no value changes; after [`pack`] no loop reads a packed scalar by itself; the scalars stay tensors with names,
//! whose bytes are those of their element.

use super::graph::{LoopGraph, LoopNode, Source, Tensor, TensorId};
use griffinfly_ir::index::IndexExpr;
use griffinfly_ir::types::TensorType;

/// Lets every loop read the slot in place of scalars. Loops that were added since the last call are seen to, and what was
/// packed before keeps its place.
pub(crate) fn pack(graph: &mut LoopGraph) {
    let there = graph.tensors.iter().position(|t| matches!(t.source, Source::StepSlot(_)));
    let slot = there.map(|i| TensorId(i as u32)).or_else(|| add_slot(graph));
    let Some(slot) = slot else { return };
    let Source::StepSlot(members) = graph.tensor(slot).source.clone() else { return };
    let ty = graph.tensor(slot).ty.clone();
    for node in &mut graph.loops {
        if node.inputs.iter().any(|t| members.contains(t)) {
            read_slot(node, &members, (slot, &ty));
        }
    }
}

/// Adds the tensor of all scalars that are one `f32`, if there are any.
fn add_slot(graph: &mut LoopGraph) -> Option<TensorId> {
    let scalar = TensorType::f32([]);
    let is_member = |t: &Tensor| matches!(t.source, Source::StepScalar(_)) && t.ty == scalar;
    let tensors = graph.tensors.iter().enumerate();
    let members: Vec<TensorId> =
        tensors.filter(|(_, t)| is_member(t)).map(|(i, _)| TensorId(i as u32)).collect();
    if members.is_empty() {
        return None;
    }
    let (ty, label) = (TensorType::f32([members.len()]), "step scalars".into());
    Some(graph.add_tensor(Tensor { ty, source: Source::StepSlot(members), label }))
}

fn read_slot(node: &mut LoopNode, members: &[TensorId], slot: (TensorId, &TensorType)) {
    let element: Vec<Option<usize>> =
        node.inputs.iter().map(|t| members.iter().position(|m| m == t)).collect();
    let operand = node.inputs.len();
    node.inputs.push(slot.0);
    node.l.operands.push(slot.1.clone());
    for load in node.l.bodies_mut().into_iter().flat_map(|body| &mut body.loads) {
        if let Some(Some(k)) = element.get(load.operand) {
            load.operand = operand;
            load.access.coords = vec![IndexExpr::constant(*k as i64)];
        }
    }
    node.compact();
}

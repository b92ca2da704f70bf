//! Update: one pointwise body over many parameter windows, as one map per segment.
//!
//! The compiler turns updates into maps over windows of the arena; this is the direct form. All segments run the same
//! code, since a map in place does not depend on its size.

use super::emit::unsupported;
use super::{Realisation, Slot, realise_map};
use crate::KernelError;
use griffinfly_ir::index::Store;
use griffinfly_ir::loops::{Loop, LoopKind, Map, Update};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::TensorType;

/// Realises an update.
///
/// # Errors
/// A loop of another kind or with missing operands, or one that needs more than the target allows.
pub fn realise_update(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    let LoopKind::Update(update) = &l.kind else {
        return Err(unsupported("update", "the loop is not an update"));
    };
    let outputs = update.body.expr.outputs().len();
    let mut dispatches = Vec::new();
    for segment in 0..update.segments.len() {
        let (operands, map) = segment_map(l, update, segment)?;
        for mut dispatch in realise_map(&map, target)?.dispatches {
            for slot in &mut dispatch.bindings {
                *slot = match *slot {
                    Slot::Operand(i) => Slot::Operand(operands[i]),
                    Slot::Result(i) => Slot::Result(segment * outputs + i),
                    slot @ (Slot::Scratch(_) | Slot::Counters) => slot,
                };
            }
            dispatches.push(dispatch);
        }
    }
    Ok(Realisation { dispatches, ..Realisation::default() })
}

/// One segment as a map over a flat axis, and the operands of the update that it reads.
fn segment_map(l: &Loop, update: &Update, segment: usize) -> Result<(Vec<usize>, Loop), KernelError> {
    let flat = |ty: &TensorType| {
        if ty.dims.is_empty() { ty.clone() } else { TensorType::new(ty.dtype, [ty.elements()]) }
    };
    let missing = || unsupported("update", format!("segment {segment} lacks operands or results"));
    let (lanes, outputs) = (update.lanes, update.body.expr.outputs().len());
    let own = segment * lanes..(segment + 1) * lanes;
    let operands: Vec<usize> = own.chain(update.segments.len() * lanes..l.operands.len()).collect();
    let types = operands.iter().map(|i| l.operands.get(*i).map(flat)).collect::<Option<_>>();
    let results = l.results.get(segment * outputs..(segment + 1) * outputs).ok_or_else(missing)?;
    let map = Map {
        domain: vec![update.segments[segment]],
        body: update.body.clone(),
        stores: (0..outputs).map(|result| Store::identity(result, 1)).collect(),
    };
    let results = results.iter().map(flat).collect();
    let types = types.ok_or_else(missing)?;
    Ok((operands, Loop { operands: types, results, kind: LoopKind::Map(map) }))
}

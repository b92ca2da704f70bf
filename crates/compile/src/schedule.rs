//! Scheduling: which section and level each loop runs in.
//!
//! Input: a sorted loop graph. Output: a [`Schedule`] with updates settled. A loop's level is one more than the largest level
//! of the loops it depends on, so independent loops share a level. Loops that depend on parameters alone move to the prepare
//! section of programs that do not update them.

use crate::error::CompileError;
use crate::fuse::update::{self, UpdateGroup};
use crate::lower::{LoopGraph, Phase, Source, TensorId, pack};
use crate::program::SectionKind;
use std::collections::HashMap;

/// A scheduled loop graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The loops, with copies for outputs and updates added.
    pub graph: LoopGraph,
    /// Section and level (counted through all sections) of each loop.
    pub place: Vec<(SectionKind, usize)>,
    /// Number of levels.
    pub levels: usize,
    /// Tensors that take the memory of a leaf.
    pub in_place: HashMap<TensorId, TensorId>,
    /// Update loops that run together.
    pub groups: Vec<UpdateGroup>,
}

/// Schedules a loop graph.
///
/// # Errors
/// A circle of dependencies.
pub fn run(loops: &LoopGraph) -> Result<Schedule, CompileError> {
    let mut graph = loops.clone();
    let in_place = update::settle(&mut graph);
    // Copies of outputs and updates may read step scalars.
    pack(&mut graph);
    graph.sort()?;
    graph.check()?;
    let kinds = sections(&graph);
    let mut place = vec![(SectionKind::Prepare, 0); graph.loops.len()];
    let mut first = 0;
    for kind in [SectionKind::Prepare, SectionKind::ForwardBackward, SectionKind::Update] {
        first = place_section(&graph, &kinds, kind, first, &mut place);
        if kind == SectionKind::Update {
            first = delay_copies(&graph, &in_place, &mut place, first);
        }
    }
    let groups = update::groups(&graph, &in_place, &|i| place[i].1);
    Ok(Schedule { graph, place, levels: first, in_place, groups })
}

/// The section of each loop.
fn sections(graph: &LoopGraph) -> Vec<SectionKind> {
    let producers = graph.producers();
    let mut updated = vec![false; graph.tensors.len()];
    graph.updates.iter().for_each(|u| updated[u.leaf.index()] = true);
    let roots = graph.roots();
    let mut kinds: Vec<SectionKind> = Vec::new();
    for node in &graph.loops {
        let fixed = |t: &TensorId| match &graph.tensor(*t).source {
            Source::Parameter(..) => !updated[t.index()],
            Source::Constant(_) => true,
            Source::Temporary => producers[t.index()].is_some_and(|p| kinds[p] == SectionKind::Prepare),
            _ => false,
        };
        let root = node.outputs.iter().any(|t| roots[t.index()]);
        let prepared =
            node.phase != Phase::Update && !root && !node.inputs.is_empty() && node.inputs.iter().all(fixed);
        kinds.push(match (prepared, node.phase) {
            (true, _) => SectionKind::Prepare,
            (_, Phase::Forward | Phase::Backward) => SectionKind::ForwardBackward,
            (_, Phase::Update) => SectionKind::Update,
        });
    }
    kinds
}

/// Levels of the loops of one section, from `first` on; gives the first level after it.
fn place_section(
    graph: &LoopGraph,
    kinds: &[SectionKind],
    kind: SectionKind,
    first: usize,
    place: &mut [(SectionKind, usize)],
) -> usize {
    let producers = graph.producers();
    let mut next = first;
    for (i, node) in graph.loops.iter().enumerate().filter(|(i, _)| kinds[*i] == kind) {
        let after = node.inputs.iter().filter_map(|t| producers[t.index()]).map(|p| place[p].1 + 1);
        let level = after.max().unwrap_or(0).max(first);
        place[i] = (kind, level);
        next = next.max(level + 1);
    }
    next
}

/// Copies into leaves run after everything else of the update section, so that old values are read first.
fn delay_copies(
    graph: &LoopGraph,
    in_place: &HashMap<TensorId, TensorId>,
    place: &mut [(SectionKind, usize)],
    next: usize,
) -> usize {
    let copies: Vec<usize> = (0..graph.loops.len())
        .filter(|&i| {
            let n = &graph.loops[i];
            n.phase == Phase::Update
                && n.outputs.iter().any(|t| in_place.contains_key(t))
                && n.l.archetype() == griffinfly_ir::loops::Archetype::Move
        })
        .collect();
    copies.iter().for_each(|&i| place[i].1 = next);
    next + usize::from(!copies.is_empty())
}

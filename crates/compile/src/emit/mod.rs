//! Emission: a scheduled loop graph becomes a program.
//!
//! `place` gives every tensor its bytes, `dispatch` makes kernels (or host loops) of the loops, `levels` groups the dispatches
//! into levels by the byte ranges they touch. The finished program passes its own verifier before it is returned.

mod dispatch;
mod levels;
mod place;

pub(crate) use levels::conflict;

use crate::Options;
use crate::error::CompileError;
use crate::lower::Source;
use crate::program::{External, ExternalKind, FORMAT, MemoryReport, Program, Role, Section, SectionKind};
use crate::schedule::Schedule;
use griffinfly_ir::target::Target;
use place::Placement;

/// Emits the program of a schedule.
///
/// # Errors
/// A tensor over a limit of the target, a loop no kernel of the target runs, a fault the program verifier finds.
pub(crate) fn run(schedule: &Schedule, target: &Target, options: &Options) -> Result<Program, CompileError> {
    let pieces = dispatch::pieces(schedule, target)?;
    let placement = place::run(schedule, &pieces, target, options.memory)?;
    let dispatch::Emitted { kernels, loops, dispatches, sections } =
        dispatch::emit(schedule, pieces, &placement, target)?;
    let sections = [SectionKind::Prepare, SectionKind::ForwardBackward, SectionKind::Update]
        .into_iter()
        .map(|kind| Section { kind, levels: levels::run(&dispatches, &sections, kind) })
        .filter(|s| !s.levels.is_empty())
        .collect();
    let program = Program {
        format: FORMAT,
        generator: env!("CARGO_PKG_VERSION").into(),
        target: target.clone(),
        externals: externals(schedule, &placement),
        constants: place::constants(&schedule.graph, &placement),
        memory: report(&placement),
        arenas: placement.arenas,
        kernels,
        loops,
        dispatches,
        sections,
        id_guard: None,
    };
    let faults = program.verify();
    if faults.is_empty() { Ok(program) } else { Err(CompileError::Faults { stage: "program", faults }) }
}

/// Everything with a name.
fn externals(schedule: &Schedule, placement: &Placement) -> Vec<External> {
    let graph = &schedule.graph;
    let mut out = Vec::new();
    for (i, t) in graph.tensors.iter().enumerate() {
        let (name, kind) = match &t.source {
            Source::Input { name, ids } => {
                let kind = ExternalKind::Input {
                    id_limit: ids.map(|l| l.limit),
                    ignore: ids.and_then(|l| l.ignore),
                };
                (name, kind)
            }
            Source::StepScalar(name) => (name, ExternalKind::StepScalar),
            Source::Parameter(name, _) => (name, ExternalKind::Parameter),
            Source::State { name, .. } => (name, ExternalKind::State),
            _ => continue,
        };
        if let Some(place) = placement.places[i] {
            out.push(External { name: name.clone(), kind, ty: t.ty.clone(), place });
        }
    }
    for (name, t) in &graph.outputs {
        if let Some(place) = placement.places[t.index()] {
            let ty = graph.tensor(*t).ty.clone();
            out.push(External { name: name.clone(), kind: ExternalKind::Output, ty, place });
        }
    }
    out
}

fn report(placement: &Placement) -> MemoryReport {
    let scratch = |r: &Role| *r == Role::Scratch;
    let total: u64 = placement.arenas.iter().map(|a| a.bytes).sum();
    let scratch_bytes: u64 = placement.arenas.iter().filter(|a| scratch(&a.role)).map(|a| a.bytes).sum();
    MemoryReport {
        physical_bytes: total,
        logical_bytes: total - scratch_bytes + placement.logical_scratch,
        scratch_bytes,
        scratch_lower_bound: placement.lower_bound,
        peak_holders: placement.peak_holders.clone(),
    }
}

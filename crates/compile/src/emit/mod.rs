//! Emission: a scheduled loop graph becomes a program.
//!
//! `place` gives every tensor that outlives a step its bytes, `shares` says how much of the device a contraction can count on,
//! `dispatch` makes kernels (or host loops) of the loops, `kernels` keeps distinct ones, `order` finds which dispatches must come after which, `temporaries` gives
//! what is left its bytes and orders the dispatches, `levels` groups them by the byte ranges they touch, and `prefetch` adds what
//! brings weights into the cache in time; `usage` declares bindings for targets that track whole buffers; `single` makes the program of one loop alone. The finished program passes its own verifier before it is returned.

mod dispatch;
mod kernels;
mod levels;
mod order;
mod place;
mod prefetch;
mod shares;
mod single;
mod temporaries;
mod usage;

pub use kernels::Kernels;
pub(crate) use levels::conflict;
pub(crate) use shares::{Share, run as shares};
pub(crate) use single::single;

use crate::Options;
use crate::error::CompileError;
use crate::lower::Source;
use crate::parallel;
use crate::program::{External, ExternalKind, FORMAT, Program, Section};
use crate::schedule::Schedule;
use griffinfly_ir::target::Target;
use place::Placement;

/// Emits the program of a schedule.
///
/// # Errors
/// A tensor over a limit of the target, a loop no kernel of the target runs, a fault the program verifier finds.
pub(crate) fn run(schedule: &Schedule, target: &Target, options: &Options) -> Result<Program, CompileError> {
    let pieces = dispatch::pieces(schedule, target, options)?;
    let mut placement = place::run(schedule, &pieces, target)?;
    let dispatch::Emitted { kernels, loops, steps } = dispatch::emit(schedule, pieces, &placement, target)?;
    // Kernels do not depend on where memory lies, nor memory on what they are translated to.
    let (kernels, (steps, memory)) = parallel::both(
        || kernels.translated(target.backend),
        || temporaries::run(schedule, &mut placement, steps, target, options),
    )?;
    let mut levels = levels::run(&steps.dispatches, &steps.sections);
    let mut program = Program {
        format: FORMAT,
        generator: env!("CARGO_PKG_VERSION").into(),
        target: target.clone(),
        externals: externals(schedule, &placement),
        constants: place::constants(&schedule.graph, &placement),
        memory,
        arenas: placement.arenas,
        kernels: Vec::new(),
        loops,
        dispatches: steps.dispatches,
        sections: Vec::new(),
        id_guard: None,
    };
    kernels.give(&mut program)?;
    if options.budget.is_none() {
        prefetch::run(&mut program, &mut levels)?;
    }
    program.sections = levels.into_iter().map(|(kind, levels)| Section { kind, levels }).collect();
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

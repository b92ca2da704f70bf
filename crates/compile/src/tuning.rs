//! What a tuner asks of the compiler: the problems of a graph that have a choice, and a program of one of them alone.

use crate::emit::Share;
use crate::error::CompileError;
use crate::lower::Phase;
use crate::program::Program;
use crate::{Options, emit, loops, schedule};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::{NumericClass, Target};
use griffinfly_kernel::families::contract::Neighbours;
use griffinfly_kernel::families::tuned;
use std::collections::BTreeSet;

/// A loop whose kernel can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Its key in a table of choices.
    pub key: String,
    /// The loop.
    pub l: Loop,
    /// Numeric classes its contractions may use.
    pub classes: &'static [NumericClass],
    /// What runs at the same time.
    pub neighbours: Neighbours,
}

/// The loops of a compilation that have a choice, each once, without contractions that get a part of the device, which a
/// measurement alone does not see. Several can have one key.
///
/// # Errors
/// As [`crate::loops`].
pub fn problems(graph: &Graph, target: &Target, options: &Options) -> Result<Vec<Problem>, CompileError> {
    let mut seen = BTreeSet::new();
    let mut out: Vec<Problem> = Vec::new();
    let schedule = schedule::run(&loops(graph, target, options)?)?;
    let shares = emit::shares(&schedule, target);
    for (node, share) in schedule.graph.loops.into_iter().zip(shares) {
        let neighbours = match share {
            Share::Units(_) => continue,
            Share::Alone => Neighbours::None,
            Share::Beside => Neighbours::Many,
        };
        let classes = options.contract.classes(node.phase != Phase::Forward);
        let Some(key) = tuned::key(&node.l, classes) else { continue };
        // Equal loops have equal keys, so only those are compared.
        if seen.insert(key.clone()) || !out.iter().any(|p| p.key == key && p.l == node.l) {
            out.push(Problem { key, l: node.l, classes, neighbours });
        }
    }
    Ok(out)
}

/// The program of a problem alone by the choice that a text names. Its arenas are the operands, the results (all of them state,
/// for the caller to bind), then what the kernels need besides.
///
/// # Errors
/// A text that names nothing the target runs, a kernel that breaks a limit of the target.
pub fn program(problem: &Problem, text: &str, target: &Target) -> Result<Program, CompileError> {
    let realisation = tuned::realise_as(&problem.l, target, problem.classes, text).map_err(|source| {
        CompileError::Kernel {
            archetype: format!("{:?}", problem.l.archetype()),
            label: problem.key.clone(),
            source,
        }
    })?;
    emit::single(&problem.l, &realisation, target)
}

//! The compiler of Griffinfly: a graph becomes a program.
//!
//! ```text
//! Graph --guard, rewrite--> Graph --lower--> LoopGraph --fuse--> LoopGraph --schedule--> levels --plan, emit--> Program
//! ```
//!
//! Every pass is pure: input by reference, a new value out, a typed error where the input can be at fault. [`compile`] runs
//! them all; the intermediate forms are public so that tools can show them.

mod emit;
mod error;
pub mod fuse;
mod guard;
pub mod lower;
pub mod memory;
mod parallel;
pub mod program;
pub mod rewrite;
pub mod schedule;
pub mod tuning;

pub use emit::Kernels;
pub use error::CompileError;
/// The kernel crate, for devices: the host twins of its scalar functions, and what tests build kernels with.
pub use griffinfly_kernel as kernel;

use griffinfly_ir::graph::{Graph, Region};
use griffinfly_ir::target::{Contract, Target};
use griffinfly_kernel::families::tuned::Choices;
use lower::LoopGraph;
use program::Program;

/// Choices of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The precision contract.
    pub contract: Contract,
    /// Join loops; off only to compare with the unfused program.
    pub fuse: bool,
    /// Rewrite the graph; off only to compare with the unoptimised program.
    pub rewrite: bool,
    /// How temporaries share memory.
    pub memory: memory::Mode,
    /// Most bytes of all arenas together, one copy of those that exist once per step in flight.
    pub budget: Option<u64>,
    /// Choices of kernels by problem; what has no entry here gets the default of its family.
    pub choices: Choices,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            contract: Contract::Strict,
            fuse: true,
            rewrite: true,
            memory: memory::Mode::Speed,
            budget: None,
            choices: Choices::new(),
        }
    }
}

/// Compiles a graph for a target.
///
/// # Errors
/// Build errors of the graph, a broken invariant found by a verifier, a tensor over a limit of the target, a loop no kernel
/// of the target can run, a byte budget below the smallest plan.
pub fn compile(graph: &Graph, target: &Target, options: &Options) -> Result<Program, CompileError> {
    graph.finish()?;
    let (graph, guard) = guard::run(graph);
    let loops = fused(&optimise(&graph, options)?, target, options)?;
    let schedule = schedule::run(&loops)?;
    let mut program = emit::run(&schedule, target, options)?;
    program.id_guard = guard.and_then(|g| g.of(&program));
    Ok(program)
}

/// The optimised graph of a compilation: ids made on the device guarded, rewritten, composites expanded, equal nodes shared, dead nodes dropped.
///
/// # Errors
/// Build errors of the graph, a fault found by the verifier.
pub fn optimised(graph: &Graph, options: &Options) -> Result<Graph, CompileError> {
    graph.finish()?;
    optimise(&guard::run(graph).0, options)
}

fn optimise(graph: &Graph, options: &Options) -> Result<Graph, CompileError> {
    graph.finish()?;
    check_graph(graph)?;
    let rewritten = if options.rewrite { rewritten(graph) } else { graph.clone() };
    let expanded = rewritten.expanded();
    let expanded = if options.rewrite { rewrite::simplify(&expanded) } else { expanded };
    expanded.finish()?;
    check_graph(&expanded)?;
    Ok(expanded)
}

/// The graph after both stages of rewriting. A graph with derivatives had its first stage before they were taken: recognising
/// a composite now would leave the intermediates that the derivatives use.
fn rewritten(graph: &Graph) -> Graph {
    let differentiated = graph.nodes().iter().any(|n| n.region() == Region::Derivative);
    if differentiated { rewrite::simplify(graph) } else { rewrite::simplify(&rewrite::recognise(graph)) }
}

/// The loops of a compilation, fused if the options say so.
///
/// # Errors
/// As [`optimised`], and faults of loops.
pub fn loops(graph: &Graph, target: &Target, options: &Options) -> Result<LoopGraph, CompileError> {
    fused(&optimised(graph, options)?, target, options)
}

fn fused(optimised: &Graph, target: &Target, options: &Options) -> Result<LoopGraph, CompileError> {
    let mut loops = lower::run(optimised)?;
    if options.fuse {
        loops = fuse::run(loops, target);
    }
    loops.check()?;
    Ok(loops)
}

fn check_graph(graph: &Graph) -> Result<(), CompileError> {
    let faults = graph.verify();
    if faults.is_empty() {
        return Ok(());
    }
    Err(CompileError::Faults { stage: "graph", faults: faults.iter().map(ToString::to_string).collect() })
}

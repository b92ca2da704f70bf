//! The stages of a compilation as text, for people and tools.

use crate::error::Error;
use griffinfly_compile::program::Program;
use griffinfly_compile::{Options, compile, loops, optimised};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::target::Target;
use std::fmt::Write as _;
use std::str::FromStr;

/// A stage of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The graph as it was built; for training the recognised graph with gradients and updates.
    Graph,
    /// Rewritten, composites expanded, equal nodes shared, dead nodes dropped.
    Optimised,
    /// Fused loops.
    Loops,
    /// Kernels, as WGSL.
    Kernels,
    /// The program: memory, levels, dispatches.
    Plan,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 5] = [Stage::Graph, Stage::Optimised, Stage::Loops, Stage::Kernels, Stage::Plan];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Graph => "graph",
            Stage::Optimised => "optimised",
            Stage::Loops => "loops",
            Stage::Kernels => "kernels",
            Stage::Plan => "plan",
        }
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Stage::ALL.map(Stage::name).join(", ");
        let found = Stage::ALL.into_iter().find(|stage| stage.name() == text);
        found.ok_or_else(|| format!("'{text}' is no stage: choose one of {}", names()))
    }
}

/// A stage of the compilation of a graph for a target.
///
/// # Errors
/// Build errors, and whatever stops the compilation before that stage.
pub fn text(graph: &Graph, target: &Target, stage: Stage) -> Result<String, Error> {
    let options = Options::default();
    Ok(match stage {
        Stage::Graph => {
            graph.finish()?;
            graph.to_string()
        }
        Stage::Optimised => optimised(graph, &options)?.to_string(),
        Stage::Loops => loops(graph, target, &options)?.to_string(),
        Stage::Kernels => kernels(&compile(graph, target, &options)?),
        Stage::Plan => plan(&compile(graph, target, &options)?),
    })
}

fn kernels(program: &Program) -> String {
    let mut out = String::new();
    for (i, kernel) in program.kernels.iter().enumerate() {
        let uses = program.dispatches.iter().filter(|d| is_of(d, i)).count();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "// kernel k{i} {} {}: workgroup {:?}, {} bytes of workgroup memory, {uses} dispatches",
            kernel.name,
            kernel.numeric.name(),
            kernel.workgroup_size,
            kernel.workgroup_bytes
        );
        let _ = writeln!(out, "{}", kernel.wgsl.trim_end());
    }
    if program.kernels.is_empty() {
        out.push_str("// the host executes the loops themselves: see the stage loops\n");
    }
    out
}

fn is_of(dispatch: &griffinfly_compile::program::Dispatch, kernel: usize) -> bool {
    use griffinfly_compile::program::Work;
    matches!(&dispatch.work, Work::Kernel { kernel: k, .. } if k.index() == kernel)
}

fn plan(program: &Program) -> String {
    let mut out = program.to_string();
    out.push_str(&program.summary());
    for (label, bytes) in &program.memory.peak_holders {
        let _ = writeln!(out, "peak {bytes} {label}");
    }
    out
}

/// The graph a trainer compiles: with gradients and updates.
///
/// # Errors
/// No gradient, hyperparameters out of range.
pub fn with_updates(
    graph: &crate::TrainingGraph,
    optimizer: &griffinfly_ir::optimizer::Optimizer,
) -> Result<Graph, Error> {
    Ok(graph.differentiated(optimizer)?.0)
}

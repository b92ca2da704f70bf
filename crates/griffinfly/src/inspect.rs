//! The stages of a compilation, as text for people and as rows for tools.

use crate::error::Error;
use griffinfly_compile::program::{Program, SectionKind, Work};
use griffinfly_compile::{Options, compile, loops, optimised};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::target::{NumericClass, Target};
use serde::Serialize;
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
    /// Kernels, as WGSL, with the dispatches that use them.
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

/// A stage as it is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// For people.
    pub text: String,
    /// For tools: the dispatches in the order of the program, where the stage has them (kernels, plan).
    pub dispatches: Option<Vec<DispatchRow>>,
}

/// One dispatch of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DispatchRow {
    /// Its number in the program.
    pub dispatch: u32,
    /// The part of the step it belongs to.
    pub section: SectionKind,
    /// Its level in the section. Dispatches of one level are independent.
    pub level: usize,
    /// How it is done: family, tiling, vector width, split.
    pub instance: String,
    /// Arithmetic of its products.
    pub numeric: NumericClass,
    /// Its kernel; none on the host, which runs loops.
    pub kernel: Option<u32>,
    /// Workgroups per dimension.
    pub groups: Option<[u32; 3]>,
    /// Labels of the graph's nodes it computes.
    pub computes: Vec<String>,
}

/// A stage of the compilation of a graph for a target.
///
/// # Errors
/// Build errors, and whatever stops the compilation before that stage.
pub fn stage(graph: &Graph, target: &Target, stage: Stage) -> Result<Shown, Error> {
    let options = Options::default();
    let of_text = |text| Shown { text, dispatches: None };
    let of_program = |show: fn(&Program, &[DispatchRow]) -> String| -> Result<Shown, Error> {
        let program = compile(graph, target, &options)?;
        let rows = rows(&program);
        Ok(Shown { text: show(&program, &rows), dispatches: Some(rows) })
    };
    match stage {
        Stage::Graph => {
            graph.finish()?;
            Ok(of_text(graph.to_string()))
        }
        Stage::Optimised => Ok(of_text(optimised(graph, &options)?.to_string())),
        Stage::Loops => Ok(of_text(loops(graph, target, &options)?.to_string())),
        Stage::Kernels => of_program(kernels),
        Stage::Plan => of_program(|program, _| plan(program)),
    }
}

pub(crate) fn rows(program: &Program) -> Vec<DispatchRow> {
    let mut rows = Vec::with_capacity(program.dispatches.len());
    for section in &program.sections {
        for (level, dispatches) in section.levels.iter().enumerate() {
            for id in dispatches {
                let d = &program.dispatches[id.index()];
                let (kernel, groups) = match &d.work {
                    Work::Kernel { kernel, groups, .. } => (Some(kernel.0), Some(*groups)),
                    Work::Loop => (None, None),
                };
                let class = |k: u32| program.kernels.get(k as usize).map(|k| k.numeric);
                rows.push(DispatchRow {
                    numeric: kernel.and_then(class).unwrap_or(NumericClass::F32),
                    dispatch: id.0,
                    section: section.kind,
                    level,
                    instance: d.instance.clone(),
                    kernel,
                    groups,
                    computes: d.provenance.clone(),
                });
            }
        }
    }
    rows
}

/// Each kernel under what it is and where it is used.
fn kernels(program: &Program, rows: &[DispatchRow]) -> String {
    let mut out = String::new();
    for (i, kernel) in program.kernels.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "// kernel k{i} {} {}: workgroup {:?}, {} bytes of workgroup memory",
            kernel.name,
            kernel.numeric.name(),
            kernel.workgroup_size,
            kernel.workgroup_bytes
        );
        for row in rows.iter().filter(|row| row.kernel == Some(i as u32)) {
            let (groups, labels) = (row.groups.unwrap_or_default(), row.computes.join(" "));
            let _ = writeln!(out, "//   dispatch {} {groups:?} {} # {labels}", row.dispatch, row.instance);
        }
        let _ = writeln!(out, "{}\n", kernel.wgsl.trim_end());
    }
    if program.kernels.is_empty() {
        out.push_str("// the host has no kernels, it runs the loops themselves:\n");
        for row in rows {
            let _ =
                writeln!(out, "//   dispatch {} {} # {}", row.dispatch, row.instance, row.computes.join(" "));
        }
    }
    out
}

fn plan(program: &Program) -> String {
    let mut out = program.to_string();
    out.push_str(&program.summary());
    let memory = &program.memory;
    let width =
        memory.width.map_or("as many dispatches as data allows".into(), |w| format!("{w} dispatches"));
    let _ = writeln!(out, "memory mode {:?}, {width} at a time", memory.mode);
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

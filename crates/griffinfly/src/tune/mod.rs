//! Which kernels are fastest for a graph on a device, by measurement.
//!
//! Input: a [`Subject`]: a graph, inputs, and how to make its weights. Output: a [`Table`] of choices on disk, which programs
//! compiled for the device use from then on, and a [`Report`].
//!
//! 1. The problems of the program (contractions, attention) are ranked by their share of a measured step.
//! 2. Candidates of each, ranked by the estimate behind the default choice, run on private buffers over random operands. One
//!    that fails, hangs past its limit or gives other results than the default is dropped and named.
//! 3. What was faster alone goes into the whole program: outputs and gradients must be those of the untuned program, and the
//!    step faster beyond noise. Where all of it together is not, halves are tried. Whatever is accepted is on disk at once.
//!
//! | module | owns |
//! |---|---|
//! | `table` | tables in files, and which of them counts for a device |
//! | `search`, `accept` | ranking problems and trying their candidates; accepting winners |
//! | `trial` | candidates of one problem |
//! | `step`, `compare` | whole steps; equal results, times beyond noise |
//! | `report` | what is told while it goes on and at the end |
//!
//! Invariants: nothing of the caller's is written but the file; the file is replaced as a whole, so that a tuner killed at any
//! time leaves the old table or a newer one; the budget ends the search between two measurements.

mod accept;
mod compare;
mod report;
mod search;
mod step;
mod table;
mod trial;

pub use report::{Dropped, Event, Report};
pub(crate) use table::applicable;
pub use table::{Table, TableFault, file};

use crate::definition::InferenceGraph;
use crate::device::Device;
use crate::error::Error;
use crate::inputs::Input;
use crate::weights::Weights;
use griffinfly_compile::program::Program;
use griffinfly_ir::target::Contract;
use std::path::PathBuf;
use std::time::Duration;

/// What is tuned: for training the graph of [`crate::TrainingGraph::gradients`], whose kernels are those of a trainer.
pub struct Subject<'a> {
    /// The graph.
    pub graph: &'a InferenceGraph,
    /// How precise it must be.
    pub contract: Contract,
    /// Inputs of a step.
    pub inputs: &'a [(&'a str, Input<'a>)],
    /// Makes weights with values on a device.
    pub weights: &'a dyn Fn(&Device) -> Result<Weights, Error>,
}

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time of the whole search. Compiling a whole program is not interrupted, but not begun either where it would not fit.
    pub budget: Duration,
    /// Time of one run of one candidate.
    pub candidate: Duration,
    /// Candidates per problem, the default among them.
    pub candidates: usize,
    /// Pairs of whole steps that are compared; at least 9 can show a difference.
    pub pairs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            budget: Duration::from_secs(120),
            candidate: Duration::from_secs(2),
            candidates: 14,
            pairs: 41,
        }
    }
}

/// What tests do to a candidate: its text, its program, its limit.
type Hook = fn(&str, &mut Program, &mut Duration);

/// A search on a device.
pub struct Tuner<'a> {
    open: &'a dyn Fn() -> Result<Device, Error>,
    limits: Limits,
    file: Option<PathBuf>,
    origin: String,
    progress: &'a mut dyn FnMut(&Event),
    hook: Hook,
}

impl<'a> Tuner<'a> {
    /// A search on the device that `open` gives. It is called again where a candidate took the device with it. The search
    /// begins with the choices of the device, and keeps what it accepts in [`file`](fn@file).
    pub fn new(
        open: &'a dyn Fn() -> Result<Device, Error>,
        limits: Limits,
        progress: &'a mut dyn FnMut(&Event),
    ) -> Tuner<'a> {
        let origin = "griffinfly tune".into();
        Tuner { open, limits, file: None, origin, progress, hook: |_, _, _| {} }
    }

    /// Keeps what is accepted in this file instead, with a line on where it comes from.
    #[must_use]
    pub fn with_file(self, file: impl Into<PathBuf>, origin: impl Into<String>) -> Tuner<'a> {
        Tuner { file: Some(file.into()), origin: origin.into(), ..self }
    }

    /// Searches.
    ///
    /// # Errors
    /// A device without kernels or timestamps; whatever compiling and running the untuned graph reports; a file that cannot be
    /// written. What was accepted before is on disk.
    pub fn run(&mut self, subject: &Subject<'_>) -> Result<Report, Error> {
        search::run(self, subject)
    }
}

/// Drops something that may wait for a device that does not answer, without waiting for it.
fn abandon(what: impl Send + 'static) {
    // Where no thread can be made, `what` is dropped here.
    drop(std::thread::Builder::new().spawn(move || drop(what)));
}

#[cfg(test)]
mod tests;

//! Where the time of a step goes: each dispatch with its time, its work and how much of the device that work takes.
//!
//! A profile is taken by steps of its own, with a timestamp behind every dispatch and a barrier between any two, apart from
//! timed series and on a warm device: the sum of its times is more than the time of an ordinary step, whose levels run
//! together. That time is taken beside them.
//!
//! | module | owns |
//! |---|---|
//! | `roof` | what the device reaches at most: measured by three small programs |
//! | `table`, `trace` | a table for people; the trace-event format of Perfetto |
//!
//! Invariants: rows are in the order in which the dispatches ran; the arithmetic of a loop that takes several dispatches counts at
//! the first of them; bytes are those of all ranges a dispatch binds, each once, so they are the least it can move where it
//! reads all of them.

mod roof;
mod table;
mod trace;

pub use roof::Roof;

use crate::inspect::{DispatchRow, rows};
use griffinfly_compile::program::{Dispatch, Program};
use griffinfly_gpu::{DeviceInfo, KernelCost, StepTiming};
use serde::Serialize;
use std::collections::BTreeSet;

/// One dispatch with its time and work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileRow {
    /// What it is.
    #[serde(flatten)]
    pub dispatch: DispatchRow,
    /// Nanoseconds on the device: the median of the steps taken.
    pub nanoseconds: f64,
    /// Arithmetic operations on values.
    pub operations: u64,
    /// Bytes of the ranges it binds.
    pub bytes: u64,
    /// The time that its operations or its bytes take at least, whichever is longer, as a share of its time; none where the roof
    /// is not known.
    pub of_roof: Option<f64>,
    /// Registers of one invocation, where the driver tells.
    pub registers: Option<f64>,
    /// What did not fit into registers, as the driver counts it: bytes of the stack with NVIDIA's, else registers.
    pub spills: Option<f64>,
}

/// The dispatches of a step in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// What the device reaches at most.
    pub roof: Option<Roof>,
    /// One row for each dispatch.
    pub rows: Vec<ProfileRow>,
    /// Nanoseconds from the first to the last: the median of the steps taken.
    pub total_ns: f64,
    /// Nanoseconds of a step on the device, with nothing between its dispatches but the barriers between levels: the median
    /// of as many steps.
    pub step_ns: f64,
    /// All that the driver says of the program's kernels, by their numbers.
    pub kernels: Vec<KernelCost>,
}

/// What was measured of a program.
pub(crate) struct Timings {
    /// Steps with a timestamp behind every dispatch.
    pub(crate) steps: Vec<StepTiming>,
    /// Nanoseconds of steps without.
    pub(crate) whole_ns: Vec<f64>,
    /// Of each kernel, or nothing.
    pub(crate) costs: Vec<KernelCost>,
}

impl Profile {
    /// The medians of some steps of a program.
    pub(crate) fn new(program: &Program, timings: Timings, device: &DeviceInfo) -> Profile {
        let Timings { steps, whole_ns, costs } = timings;
        let of = |number: u32| {
            let times = steps.iter().flat_map(|s| s.dispatch_ns.iter().filter(move |(d, _)| *d == number));
            median(times.map(|(_, ns)| *ns).collect())
        };
        let mut counted = BTreeSet::new();
        let row = |dispatch: DispatchRow| {
            let nanoseconds = of(dispatch.dispatch)?;
            let d = program.dispatches.get(dispatch.dispatch as usize)?;
            let l = program.loops.get(d.source.index());
            let l = l.filter(|_| !d.is_prefetch() && counted.insert(d.source));
            let operations = l.map_or(0, griffinfly_ir::loops::Loop::operations);
            let cost = dispatch.kernel.and_then(|kernel| costs.get(kernel as usize));
            let [registers, spills] = [KernelCost::registers, KernelCost::spills].map(|of| cost.and_then(of));
            let bytes = bytes(d);
            Some(ProfileRow { dispatch, nanoseconds, operations, bytes, of_roof: None, registers, spills })
        };
        Profile {
            device: device.name.clone(),
            driver: device.driver.clone(),
            roof: None,
            rows: rows(program).into_iter().filter_map(row).collect(),
            total_ns: median(steps.iter().map(|s| s.total_ns).collect()).unwrap_or(0.0),
            step_ns: median(whole_ns).unwrap_or(0.0),
            kernels: costs,
        }
    }

    /// The same with shares of a roof.
    #[must_use]
    pub fn under(mut self, roof: Roof) -> Profile {
        for row in &mut self.rows {
            let least = roof.least_ns(row.operations, row.bytes);
            row.of_roof = (row.nanoseconds > 0.0).then(|| least / row.nanoseconds);
        }
        self.roof = Some(roof);
        self
    }
}

/// Bytes of the different ranges of a dispatch.
fn bytes(d: &Dispatch) -> u64 {
    let ranges: BTreeSet<_> = d.bindings.iter().map(|b| (b.arena, b.offset, b.bytes)).collect();
    ranges.into_iter().map(|(.., bytes)| bytes).sum()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests;

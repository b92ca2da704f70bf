//! The CPU as a device: no driver needed, the same fused loops.
//!
//! Input: programs for [`Backend::Host`](griffinfly_ir::target::Backend), whose dispatches name a loop and its byte ranges.
//! Each loop is planned once, when the program is instantiated (`plan`); a step only runs plans. Bodies are compiled to
//! straight-line code over registers of 256 lanes (`code`, `evaluate`) after their axes were merged and split so that
//! almost every index is affine (`space`, `points`); contractions go through a matrix product over strided operands or
//! packed panels (`contract`, `factor`). The meaning is that of `griffinfly_ir::loops::interpret`.
//!
//! Invariants: results do not depend on the number of threads (the cutting into tasks is a function of the sizes alone);
//! steps, reads and writes of one device exclude each other; a step runs to its end inside `submit`; memory and loops are
//! fully checked when a program is instantiated (`check`, `overlap`, `soundness`), so running cannot fail.

mod arithmetic;
mod attention;
mod check;
mod code;
mod contract;
mod cost;
mod device;
mod evaluate;
mod executor;
mod factor;
mod faults;
mod forms;
mod functions;
mod load;
mod map;
mod memory;
mod overlap;
mod plan;
mod points;
mod reduce;
mod row;
mod scatter;
mod simd;
mod soundness;
mod space;
mod table;
mod tiling;
mod workers;

pub use faults::FaultPlan;

use crate::device::Device;
use std::sync::Arc;

/// How a host device is made.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// Threads; as many as the machine offers where not given.
    pub threads: Option<usize>,
    /// Bytes that may be allocated in all; no limit where not given.
    pub memory_bytes: Option<u64>,
    /// Failures to inject, for tests.
    pub faults: FaultPlan,
    /// The word that memory of a program begins with, apart from what its owner binds; tests take a NaN pattern.
    pub fill: u32,
}

/// The CPU, with all its threads.
#[must_use]
pub fn open() -> Arc<dyn Device> {
    open_with(&HostOptions::default())
}

/// The CPU, as asked for.
#[must_use]
pub fn open_with(options: &HostOptions) -> Arc<dyn Device> {
    Arc::new(device::HostDevice::new(options))
}

//! Tests of the compiler without a device: host programs run through the slow loop interpreter.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod attention;
mod digits;
mod golden;
mod guard;
mod limits;
mod memory;
mod prefetch;
mod programs;
mod random;
mod recompute;
mod rules;
mod scale;
mod scaling;
mod targets;
mod terms;
mod tuning;
mod usage;
mod windows;

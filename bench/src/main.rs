//! The benchmark command: workloads, protocol, gates and reports. How to run a comparison: `bench/README.md`.
//!
//! * `write`: the files of the workloads: weights, inputs, configuration.
//! * `run`: times our engine on them and keeps its results.
//! * `compare`: our record against the reference's, which `bench/pytorch/run.py` makes of the same files.
//! * `report`: the results page from the files of `compare` and `plan`.
//! * `backends`: what one backend costs beside another, from records of `run`.
//! * `plan`: bytes and dispatches of the workloads in both memory modes.
//! * `profile`: each dispatch of the workloads with its time.
//! * `micro`: single operations of the workloads, beside the reference's where its record is given.
//! * `tune`: which kernels are fastest for the workloads, as the table that comes with the library.
//! * `demo`: the training step of the demo's digits classifier: preparation time (construction + first step - median step),
//!   step time, host work per step (submit to return), dispatches, pipelines, levels and plan bytes.
//!
//! Matrix products are timed by the `matmul` example of `griffinfly-gpu`, contractions and loops on the host by its
//! ignored `host_speed` test.

mod bundle;
mod clocks;
mod compare;
mod demo;
mod error;
mod fill;
mod gate;
mod json;
mod measure;
mod micro;
mod number;
mod plan;
#[cfg(test)]
mod plans;
mod profile;
mod record;
#[cfg(test)]
mod small;
mod tune;
mod workload;
mod write;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measures and reports.
#[derive(Debug, Parser)]
#[command(name = "griffinfly-bench", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Writes the files of the workloads.
    Write(write::Arguments),
    /// Times the workloads.
    Run(measure::Arguments),
    /// Compares records of results.
    Compare(compare::Arguments),
    /// The results page from comparisons and plans.
    Report(compare::report::Arguments),
    /// What one backend costs beside another, as a page.
    Backends(compare::backends::Arguments),
    /// Compiles the workloads in both memory modes, without running them.
    Plan(plan::Arguments),
    /// Where the time of the workloads goes: each dispatch with its time.
    Profile(profile::Arguments),
    /// Times single operations of the workloads on the device.
    Micro(micro::Arguments),
    /// Which kernels are fastest for the workloads, as a table.
    Tune(tune::Arguments),
    /// The digits classifier's training step.
    Demo(demo::Arguments),
}

#[allow(clippy::print_stderr, reason = "where a command reports its failure")]
fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Write(arguments) => write::run(&arguments),
        Verb::Run(arguments) => measure::run(&arguments),
        Verb::Compare(arguments) => compare::run(&arguments),
        Verb::Report(arguments) => compare::report::run(&arguments),
        Verb::Backends(arguments) => compare::backends::run(&arguments),
        Verb::Plan(arguments) => plan::run(&arguments),
        Verb::Profile(arguments) => profile::run(&arguments),
        Verb::Micro(arguments) => micro::run(&arguments),
        Verb::Tune(arguments) => tune::run(&arguments),
        Verb::Demo(arguments) => demo::run(&arguments).map_err(Into::into),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

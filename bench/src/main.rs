//! The benchmark command. Reports; never asserts.
//!
//! `griffinfly-bench demo [--device auto|vulkan|host] [--steps N] [--json]` trains the digits classifier of the demo and
//! reports preparation time (construction + first step - median step), step time, host work per step (submit to return),
//! dispatches, pipelines, levels and plan bytes, with device and driver beside them.
//! Matrix products are timed by the `matmul` example of `griffinfly-gpu`, contractions and loops on the host by its
//! ignored `host_speed` test.

mod demo;

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
    /// The digits classifier's training step.
    Demo(demo::Arguments),
}

#[allow(clippy::print_stderr, reason = "where a command reports its failure")]
fn main() -> ExitCode {
    let Verb::Demo(arguments) = Arguments::parse().verb;
    match demo::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

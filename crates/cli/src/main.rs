//! The `griffinfly` command.
//!
//! Results go to standard output, progress and errors to standard error. Exit codes: 0 success, 1 failure, 2 usage.

mod demo;
mod devices;
mod inspect;
mod output;
mod profile;
mod tune;

use clap::{Parser, Subcommand};
use griffinfly::DeviceChoice;
use std::process::ExitCode;

/// Trains and runs neural networks on any GPU.
#[derive(Debug, Parser)]
#[command(name = "griffinfly", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Train a digit classifier, save it, load it into a fresh session and test it.
    Demo(demo::Arguments),
    /// List the devices of this machine.
    Devices(devices::Arguments),
    /// Show a stage of the compilation of a built-in model.
    Inspect(inspect::Arguments),
    /// Show where the time of a step of a built-in model goes.
    Profile(profile::Arguments),
    /// Measure which kernels are fastest for a built-in model, and keep the choice for this device.
    Tune(tune::Arguments),
}

/// The device of a command.
#[derive(Clone, Copy, Debug, clap::Args)]
struct DeviceArgument {
    /// auto (a hardware GPU, else host), vulkan (any driver, software too) or host.
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    device: DeviceChoice,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.verb {
        Verb::Demo(arguments) => demo::run(arguments),
        Verb::Devices(arguments) => devices::run(arguments),
        Verb::Inspect(arguments) => inspect::run(arguments),
        Verb::Profile(arguments) => profile::run(arguments),
        Verb::Tune(arguments) => tune::run(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
        Err(error) if output::is_closed(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

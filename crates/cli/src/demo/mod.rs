//! `griffinfly demo`: describe once, train, save, load into a fresh inference session, test.

mod evaluate;
mod plot;
mod report;
mod train;

use crate::{DeviceArgument, Failure, output};
use griffinfly::{Device, data, models};
use std::path::PathBuf;

/// Name of the checkpoint in the output directory.
const CHECKPOINT: &str = "digits.safetensors";
/// Images per training step.
const BATCH: usize = 64;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    device: DeviceArgument,
    /// Where digits.safetensors goes; made if it is not there.
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
    /// Skip training and test this checkpoint.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "steps", "seed"])]
    load: Option<PathBuf>,
    /// Of the weights and the order of the images.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Training steps of 64 images.
    #[arg(long, default_value_t = 440, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: u64,
    /// Print one JSON object as the last line, and nothing else.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let device = Device::open(arguments.device.device)?;
    let digits = data::digits();
    let model = models::digits(BATCH);
    let (trained, checkpoint) = match &arguments.load {
        Some(file) => (None, file.clone()),
        None => {
            std::fs::create_dir_all(&arguments.out)
                .map_err(|e| format!("cannot make the directory {}: {e}", arguments.out.display()))?;
            let checkpoint = arguments.out.join(CHECKPOINT);
            let plan = train::Plan { seed: arguments.seed, steps: arguments.steps };
            (Some(train::run(&device, &model, &digits.train, &plan, &checkpoint)?), checkpoint)
        }
    };
    let tested = evaluate::run(&device, &model, &digits.test, &checkpoint)?;
    let report = report::Report {
        device: &device,
        trained: trained.as_ref(),
        tested: &tested,
        checkpoint: &checkpoint,
    };
    let text = if arguments.json { report.json(arguments.seed)? } else { report.text() };
    Ok(output::print(&text)?)
}

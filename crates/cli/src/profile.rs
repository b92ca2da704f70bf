//! `griffinfly profile`: each dispatch of a step with its time, its work and its share of what the device can do.

use crate::inspect::Model;
use crate::{DeviceArgument, Failure, output};
use griffinfly::models::{self, DigitsModel};
use griffinfly::profile::{Profile, Roof};
use griffinfly::{Device, Feed, Input, Session, Trainer, Weights, data};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which built-in model.
    #[arg(long, default_value = "digits")]
    model: Model,
    /// The training step instead of the inference one.
    #[arg(long)]
    train: bool,
    /// Images per step.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    batch: u32,
    /// Steps whose medians are taken.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    steps: u32,
    #[command(flatten)]
    device: DeviceArgument,
    /// Leave out the measurement of what the device can do at most.
    #[arg(long)]
    without_roof: bool,
    /// Write the profile as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a trace for Perfetto (ui.perfetto.dev) to this file.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let device = Device::open(arguments.device.device)?;
    let Model::Digits = arguments.model;
    let mut profile = digits(&device, arguments)?;
    if !arguments.without_roof {
        profile = profile.under(Roof::measure(&device)?);
    }
    if let Some(path) = &arguments.json {
        write(path, &serde_json::to_string(&profile)?)?;
    }
    if let Some(path) = &arguments.trace {
        write(path, &profile.trace())?;
    }
    Ok(output::print(&profile.table())?)
}

fn digits(device: &Device, arguments: &Arguments) -> Result<Profile, Failure> {
    let batch = arguments.batch as usize;
    let (model, images) = (models::digits(batch), data::digits().train);
    let first = images.batches(batch, 0)?.next().ok_or("there are too few images for a batch")?;
    let steps = arguments.steps as usize;
    if arguments.train {
        let graph = model.training()?;
        let weights = Weights::init(device, graph.graph(), 0)?;
        let mut trainer = Trainer::with_weights(graph, DigitsModel::optimizer(), &weights)?;
        trainer.step(&first.inputs())?;
        return Ok(trainer.profile(steps)?);
    }
    let graph = model.inference()?;
    let weights = Weights::init(device, graph.graph(), 0)?;
    let mut session = Session::with_weights(graph, &weights)?;
    session.run(&[("image", Input::f32(&first.images))])?;
    Ok(session.profile(steps)?)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()).into())
}

//! `griffinfly inspect`: the stages of a compilation.

use crate::{DeviceArgument, Failure, output};
use clap::ValueEnum;
use griffinfly::inspect::{Stage, stage, with_updates};
use griffinfly::{Device, models};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// graph, optimised, loops, kernels or plan.
    #[arg(long)]
    stage: Stage,
    /// Which built-in model.
    #[arg(long, default_value = "digits")]
    model: Model,
    /// The training program instead of the inference one.
    #[arg(long)]
    train: bool,
    /// Images per step.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,
    #[command(flatten)]
    device: DeviceArgument,
    /// Print one JSON object: the text, and for kernels and plan a row for each dispatch.
    #[arg(long)]
    json: bool,
}

/// The built-in models.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Model {
    /// The convolutional classifier of the demo.
    Digits,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let device = Device::open(arguments.device.device)?;
    let Model::Digits = arguments.model;
    let model = models::digits(arguments.batch as usize);
    let graph = if arguments.train {
        with_updates(&model.training()?, &models::DigitsModel::optimizer())?
    } else {
        model.inference()?.graph().clone()
    };
    let shown = stage(&graph, device.target(), arguments.stage)?;
    if !arguments.json {
        return Ok(output::print(&shown.text)?);
    }
    let mut object = serde_json::json!({
        "model": "digits",
        "train": arguments.train,
        "batch": arguments.batch,
        "backend": device.info().backend,
        "device": device.info().name,
        "stage": arguments.stage.name(),
        "text": shown.text,
    });
    if let Some(dispatches) = &shown.dispatches {
        object["dispatches"] = serde_json::to_value(dispatches)?;
    }
    Ok(output::print(&serde_json::to_string(&object)?)?)
}

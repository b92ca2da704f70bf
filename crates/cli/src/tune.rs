//! `griffinfly tune`: measures which kernels are fastest for a built-in model on this device, and keeps the choice for all
//! programs from then on.

use crate::inspect::Model;
use crate::{DeviceArgument, Failure, output};
use griffinfly::tune::{Event, Limits, Report, Subject, Tuner};
use griffinfly::{Contract, Device, Feed, Input, Weights, data, models};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which built-in model.
    #[arg(long, default_value = "digits")]
    model: Model,
    /// The loss and its gradients instead of inference.
    #[arg(long)]
    train: bool,
    /// Images per step.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    batch: u32,
    /// Seconds the search may take.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    budget: u32,
    /// auto (a hardware GPU) or vulkan (any driver).
    #[command(flatten)]
    device: DeviceArgument,
    /// Keep the table in this file instead of the cache directory.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Model::Digits = arguments.model;
    let batch = arguments.batch as usize;
    let (model, images) = (models::digits(batch), data::digits().train);
    let first = images.batches(batch, 0)?.next().ok_or("there are too few images for a batch")?;
    let (graph, inputs) = if arguments.train {
        (model.training()?.gradients()?, first.inputs())
    } else {
        (model.inference()?, vec![("image", Input::f32(&first.images))])
    };
    let weights = |device: &Device| Weights::init(device, graph.graph(), 0);
    let open = || Device::open(arguments.device.device);
    let mut progress = |event: &Event| output::note(&event.to_string());
    let limits = Limits { budget: Duration::from_secs(arguments.budget.into()), ..Limits::default() };
    let mut tuner = Tuner::new(&open, limits, &mut progress);
    if let Some(file) = &arguments.out {
        tuner = tuner.with_file(file, "griffinfly tune");
    }
    let report = tuner.run(&Subject {
        graph: &graph,
        contract: Contract::Strict,
        inputs: &inputs,
        weights: &weights,
    })?;
    if !report.is_complete && report.problems[0] == 0 {
        return Err(format!("the budget of {} s ended before any kernel was tried", arguments.budget).into());
    }
    let text = if arguments.json { serde_json::to_string(&report)? } else { shown(&report) };
    Ok(output::print(&text)?)
}

/// The report for people.
fn shown(report: &Report) -> String {
    let [tried, wanted] = report.problems;
    let mut out = format!("{} ({})\n", report.device, report.driver);
    let ended = if report.is_complete { "" } else { ", ended by the budget" };
    out.push_str(&format!(
        "{tried} of {wanted} problems, {} candidates, {} dropped, {:.1} s{ended}\n",
        report.candidates,
        report.dropped.len(),
        report.seconds
    ));
    if let Some([before, after]) = report.milliseconds {
        out.push_str(&format!("step: {before:.3} ms before, {after:.3} ms after\n"));
    }
    for (problem, choice) in report.accepted.iter() {
        out.push_str(&format!("{problem}: {choice}\n"));
    }
    match &report.file {
        _ if report.accepted.is_empty() => out.push_str("nothing was faster beyond noise\n"),
        Some(file) => out.push_str(&format!("kept in {}\n", file.display())),
        None => out.push_str("kept nowhere: there is no cache directory\n"),
    }
    out
}

//! `griffinfly-bench tune`: measures which kernels are fastest for the workloads, one cell after the other, into one table.
//!
//! This is how the tables that come with the library are made. A table at the path is gone on from where it counts for the
//! device; otherwise the search begins with the defaults.

use crate::bundle::Bundle;
use crate::error::BenchError;
use crate::measure::{contract, input};
use crate::record::{Phase, Precision};
use crate::workload::{Name, Shape, Size, names};
use griffinfly::tune::{Event, Limits, Report, Subject, Table, Tuner};
use griffinfly::{Choices, Device, DeviceChoice, Input, Weights};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the files that `write` made.
    #[arg(long, default_value = "target/bench/files")]
    files: PathBuf,
    /// smollm2, smolvla, unet, resnet50, whisper with commas, or all.
    #[arg(long, default_value = "all")]
    workload: String,
    /// Phases; all of them by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    phase: Vec<Phase>,
    /// Size of the workloads.
    #[arg(long, value_enum, default_value = "full")]
    size: Size,
    /// auto (a hardware GPU) or vulkan (any driver).
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// strict or fast.
    #[arg(long, value_enum, default_value = "strict")]
    precision: Precision,
    /// Seconds for all cells together; each gets its part of what is left.
    #[arg(long, default_value_t = 600)]
    budget: u64,
    /// Candidates per problem.
    #[arg(long, default_value_t = 14)]
    candidates: usize,
    /// Revision of the repository, to be noted in the table.
    #[arg(long)]
    revision: Option<String>,
    /// The table.
    #[arg(long)]
    out: PathBuf,
}

#[allow(clippy::print_stderr, reason = "progress of a long command")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let wanted = |reason| BenchError::File { path: "--workload".into(), reason };
    let workloads = names(&arguments.workload).map_err(wanted)?;
    let phases = if arguments.phase.is_empty() { Phase::ALL.to_vec() } else { arguments.phase.clone() };
    let device = Device::open(arguments.device)?;
    let deadline = Instant::now() + Duration::from_secs(arguments.budget);
    let mut left = workloads.len() * phases.len();
    for name in workloads {
        let bundle = Bundle::read(&arguments.files, name, arguments.size)?;
        for phase in &phases {
            let budget = deadline.saturating_duration_since(Instant::now()) / left.max(1) as u32;
            left -= 1;
            let report = cell((name, *phase), (&bundle, budget), arguments)?;
            let times = report.milliseconds.map_or(String::new(), |[a, b]| format!(", {a:.3} to {b:.3} ms"));
            eprintln!(
                "{}.{}: {} of {} problems, {} candidates, {} dropped, {} accepted{times}, {:.1} s{}",
                name.text(),
                phase.text(),
                report.problems[0],
                report.problems[1],
                report.candidates,
                report.dropped.len(),
                report.accepted.len(),
                report.seconds,
                if report.is_complete { "" } else { ", ended by the budget" }
            );
        }
    }
    let table = Table::new(device.info(), origin(arguments), begin(arguments, &device));
    Ok(table.save(&arguments.out)?)
}

/// The choices of the table so far.
fn begin(arguments: &Arguments, device: &Device) -> Choices {
    let table = Table::load(&arguments.out).ok().flatten();
    table.filter(|table| table.check(device.info(), false).is_ok()).map_or_else(Choices::new, |t| t.choices)
}

fn origin(arguments: &Arguments) -> String {
    let revision = arguments.revision.as_deref().unwrap_or("unknown");
    format!("griffinfly-bench tune --workload {}, revision {revision}", arguments.workload)
}

#[allow(clippy::print_stderr, reason = "progress of a long command")]
fn cell(
    (name, phase): (Name, Phase),
    (bundle, budget): (&Bundle, Duration),
    arguments: &Arguments,
) -> Result<Report, BenchError> {
    let shape = if phase == Phase::Latency { Shape::Minimal } else { Shape::Full };
    let model = name.at(arguments.size).model(shape)?;
    let graph = if phase == Phase::Train { model.training()?.gradients()? } else { model.inference()? };
    let inputs = bundle.inputs(shape);
    let has = |name: &str| graph.graph().leaf(name).is_some();
    let given: Vec<(&str, Input<'_>)> =
        inputs.iter().filter(|i| has(&i.name)).map(|i| (i.name.as_str(), input(i))).collect();
    let weights = |device: &Device| {
        let weights = Weights::empty(device, graph.graph())?;
        match bundle.load(&weights) {
            Ok(()) => Ok(weights),
            Err(BenchError::Library(fault)) => Err(fault),
            Err(fault) => {
                let (value, reason) = (name.text().into(), fault.to_string());
                Err(griffinfly::Error::Value { what: "the workload", value, reason })
            }
        }
    };
    let open = || {
        let device = Device::open(arguments.device)?;
        Ok(device.with_choices(begin(arguments, &device)))
    };
    let mut progress = |event: &Event| eprintln!("  {event}");
    let limits = Limits { budget, candidates: arguments.candidates, ..Limits::default() };
    let mut tuner = Tuner::new(&open, limits, &mut progress).with_file(&arguments.out, origin(arguments));
    let contract = contract(arguments.precision)?;
    Ok(tuner.run(&Subject { graph: &graph, contract, inputs: &given, weights: &weights })?)
}

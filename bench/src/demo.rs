//! The training step of the digits classifier: preparation, step time, host work per step.

use griffinfly::{Device, DeviceChoice, Error, Feed, Trainer, data, models};
use serde_json::json;
use std::time::{Duration, Instant};

/// Images per step.
const BATCH: usize = 64;
/// Steps before anything is timed.
const WARM_UP: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// auto (a hardware GPU, else host), vulkan or webgpu (any driver), or host.
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Timed steps.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    steps: u64,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Samples of a run.
struct Samples {
    construction: Duration,
    first: Duration,
    steps: Vec<Duration>,
    submits: Vec<Duration>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let device = Device::open(arguments.device)?;
    let start = Instant::now();
    let mut trainer =
        Trainer::new(&device, models::digits(BATCH).training()?, models::DigitsModel::optimizer())?;
    let construction = start.elapsed();
    let samples = measure(&mut trainer, construction, arguments.steps as usize)?;
    print(&device, &trainer, &samples, arguments.json);
    Ok(())
}

fn measure(trainer: &mut Trainer, construction: Duration, steps: usize) -> Result<Samples, Error> {
    let digits = data::digits();
    let mut batches = digits.train.batches(BATCH, 0)?;
    let mut samples = Samples { construction, first: Duration::ZERO, steps: Vec::new(), submits: Vec::new() };
    for i in 0..=WARM_UP + steps {
        let Some(batch) = batches.next() else { break };
        let start = Instant::now();
        trainer.submit(&batch.inputs())?;
        let submitted = start.elapsed();
        trainer.finish()?;
        let finished = start.elapsed();
        if i == 0 {
            samples.first = finished;
        } else if i > WARM_UP {
            samples.submits.push(submitted);
            samples.steps.push(finished);
        }
    }
    samples.steps.sort_unstable();
    samples.submits.sort_unstable();
    Ok(samples)
}

/// The element at this fraction of sorted samples.
fn at(sorted: &[Duration], fraction: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * fraction).round() as usize).copied().unwrap_or_default()
}

#[allow(clippy::print_stdout, reason = "a report for the terminal")]
fn print(device: &Device, trainer: &Trainer, s: &Samples, as_json: bool) {
    let micros = |d: Duration| d.as_secs_f64() * 1e6;
    let median = at(&s.steps, 0.5);
    let preparation = (s.construction + s.first).saturating_sub(median);
    let (info, program) = (device.info(), trainer.program());
    let report = json!({
        "device": info.name,
        "driver": info.driver,
        "version": env!("CARGO_PKG_VERSION"),
        "preparation_s": preparation.as_secs_f64(),
        "step_us": { "p25": micros(at(&s.steps, 0.25)), "median": micros(median), "p75": micros(at(&s.steps, 0.75)) },
        "host_us": { "p25": micros(at(&s.submits, 0.25)), "median": micros(at(&s.submits, 0.5)), "p75": micros(at(&s.submits, 0.75)) },
        "dispatches": program.dispatches.len(),
        "pipelines": program.kernels.len(),
        "levels": program.level_count(),
        "plan_bytes_physical": program.memory.physical_bytes,
        "plan_bytes_logical": program.memory.logical_bytes,
    });
    if as_json {
        println!("{report}");
        return;
    }
    for (key, value) in report.as_object().into_iter().flatten() {
        println!("{key:<22} {value}");
    }
}

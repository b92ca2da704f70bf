//! `griffinfly-bench micro`: single operations of the workloads, each as a program of its own, timed on the device.
//!
//! Input: shapes, and the records that `bench/pytorch/micro.py` made of the same shapes. Output: a record for `report --micro`.
//! Per operation and pass: as many steps as fill some milliseconds run one behind the other in one submission, on a device
//! warmed up by 0.3 s of steps; the median of such submissions counts. A result whose sample differs from `f64` by more than
//! the strict gate allows is an error, so no time stands without a result.
//!
//! | module | owns |
//! |---|---|
//! | `shape` | the shapes, their passes and arithmetic |
//! | `case` | the graphs and their inputs |
//! | `check` | a sample of each result in `f64` |
//! | [`record`] | the record that both engines write |

mod case;
mod check;
pub(crate) mod record;
mod shape;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod workloads;

use crate::error::BenchError;
use crate::measure::device_record;
use crate::record::{FORMAT, Precision, quartiles};
use case::Ready;
use griffinfly::{Device, DeviceChoice};
use record::{Micro, Row};
use shape::{Case, Pass};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Largest relative L2 error of a sample: the strict gate.
const LIMIT: f64 = 1e-4;
/// The least time of one submission.
const SUBMISSION: Duration = Duration::from_millis(5);
/// The most steps of one submission.
const MOST: u32 = 500;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// File of shapes; those of the workloads by default.
    #[arg(long)]
    shapes: Option<PathBuf>,
    /// gemm, conv, attention with commas; all by default.
    #[arg(long, value_delimiter = ',')]
    kind: Vec<String>,
    /// auto (a hardware GPU, else host), vulkan or webgpu (any driver), or host.
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Submissions whose median is taken.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    samples: u32,
    /// Records of `bench/pytorch/micro.py`, whose columns are taken over.
    #[arg(long)]
    reference: Vec<PathBuf>,
    /// Revision of the repository, to be recorded.
    #[arg(long)]
    revision: Option<String>,
    /// Where the record goes.
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let cases = shape::read(arguments.shapes.as_deref())?;
    let references =
        arguments.reference.iter().map(|path| Micro::read(path)).collect::<Result<Vec<_>, _>>()?;
    let device = Device::open(arguments.device)?;
    let described = device_record(&device);
    let mut micro = Micro {
        format: FORMAT,
        device: described.name,
        driver: described.driver,
        revision: arguments.revision.clone().unwrap_or_else(|| "unknown".into()),
        rows: Vec::new(),
    };
    let wanted = |case: &&Case| {
        arguments.kind.is_empty() || arguments.kind.iter().any(|kind| kind == case.shape.kind().text())
    };
    for case in cases.iter().filter(wanted) {
        for pass in case.shape.passes() {
            let row = measured(&device, (case, *pass), arguments)?;
            progress(&row);
            let same = |r: &&Row| (r.kind, &r.shape, &r.pass) == (row.kind, &row.shape, &row.pass);
            let theirs: Vec<&Row> = references.iter().flat_map(|m| m.rows.iter().filter(same)).collect();
            micro.rows.extend(joined(&row, &theirs));
        }
        micro.write(&arguments.out)?;
    }
    Ok(())
}

/// One operation in one pass: ours alone.
fn measured(device: &Device, (case, pass): (&Case, Pass), arguments: &Arguments) -> Result<Row, BenchError> {
    let mut ready = case::ready(device, &case.shape, pass)?;
    let error = check::error(&ready, &case.shape, pass)?;
    let class = ready.session.program().kernels.first().map_or("f32", |kernel| kernel.numeric.name());
    let row = Row {
        kind: case.shape.kind(),
        shape: case.name.clone(),
        pass: pass.text().into(),
        contract: Precision::Strict,
        operations: Some(case.shape.operations(pass)),
        ours_us: Some(median_us(&mut ready, arguments.samples)?),
        ours_class: Some(class.into()),
        ours_error: Some(error),
        reference: None,
        reference_us: None,
        reference_error: None,
    };
    // NaN fails too.
    if error <= LIMIT {
        return Ok(row);
    }
    let reason = format!("a sample of the result differs from f64 by {error:e}, allowed is {LIMIT:e}");
    Err(BenchError::Cell { path: arguments.out.clone(), cell: row.name(), reason })
}

/// The median time of a step in microseconds.
fn median_us(ready: &mut Ready, samples: u32) -> Result<f64, BenchError> {
    let session = &mut ready.session;
    let start = Instant::now();
    let step = session.submit_again()?;
    session.wait(step)?;
    let times = (SUBMISSION.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-6)).ceil();
    let nanoseconds = session.device_times((times as u32).clamp(1, MOST), samples as usize)?;
    Ok(quartiles(&nanoseconds).map_or(f64::NAN, |q| q.median / 1e3))
}

/// Ours beside each row of the reference, or alone.
fn joined(ours: &Row, theirs: &[&Row]) -> Vec<Row> {
    let beside = |theirs: &&Row| Row {
        contract: theirs.contract,
        reference: theirs.reference.clone(),
        reference_us: theirs.reference_us,
        reference_error: theirs.reference_error,
        ..ours.clone()
    };
    if theirs.is_empty() { vec![ours.clone()] } else { theirs.iter().map(beside).collect() }
}

#[allow(clippy::print_stderr, reason = "progress of a long command")]
fn progress(row: &Row) {
    let (time, operations) = (row.ours_us.unwrap_or(f64::NAN), row.operations.unwrap_or(0) as f64);
    let (teraflops, error) = (operations / time / 1e6, row.ours_error.unwrap_or(f64::NAN));
    eprintln!("{}: {time:.2} us, {teraflops:.2} TFLOP/s, error {error:.1e}", row.name());
}

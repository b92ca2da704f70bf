//! `griffinfly-bench run`: times our engine on the workloads and keeps its results.
//!
//! Protocol: per cell at least 5 calls and 2 seconds of warm-up, then 30 calls; a sample is the wall time from just before the
//! submission to an idle device; inputs are resident, results stay on the device. Training is forward, loss and all gradients
//! as outputs, without an optimizer. Results are read before and after the series and must be the same bits.

use crate::bundle::Bundle;
use crate::clocks;
use crate::error::BenchError;
use crate::plan;
use crate::record::{Cell, DeviceRecord, FORMAT, Memory, Phase, Precision, Run, quartiles};
use crate::workload::{InputTensor, Name, Shape, Size, Values, names};
use griffinfly::import::safetensors::{self, Dtype, TensorSource};
use griffinfly::{Contract, Data, Device, DeviceChoice, Input, Output, Outputs, Session, Weights};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least number of calls before anything is timed.
const WARM_UP_CALLS: usize = 5;
/// The least time of warming up.
const WARM_UP: Duration = Duration::from_secs(2);
/// How a program of ours runs.
const MODE: &str = "program";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the files that `write` made.
    #[arg(long, default_value = "target/bench/files")]
    pub(crate) files: PathBuf,
    /// smollm2, smolvla, unet, resnet50, whisper with commas, or all.
    #[arg(long, default_value = "all")]
    pub(crate) workload: String,
    /// Phases; all of them by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) phase: Vec<Phase>,
    /// Size of the workloads.
    #[arg(long, value_enum, default_value = "full")]
    pub(crate) size: Size,
    /// The arithmetic contract.
    #[arg(long, value_enum, default_value = "strict")]
    pub(crate) precision: Precision,
    /// auto (a hardware GPU, else host), vulkan or webgpu (any driver), or host.
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Timed calls per cell; 0 only computes.
    #[arg(long, default_value_t = 30)]
    pub(crate) samples: usize,
    /// Revision of the repository, to be recorded.
    #[arg(long)]
    pub(crate) revision: Option<String>,
    /// Where the record goes.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Folder for the results as safetensors.
    #[arg(long)]
    pub(crate) dump: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let contract = contract(arguments.precision)?;
    let wanted = |reason| BenchError::File { path: arguments.files.clone(), reason };
    let workloads = names(&arguments.workload).map_err(wanted)?;
    let device = Device::open(arguments.device)?;
    let mut run = record(&device, arguments);
    for name in workloads {
        let bundle = Bundle::read(&arguments.files, name, arguments.size)?;
        let model = name.at(arguments.size).model(Shape::Full)?;
        let weights = Weights::empty(&device, &model.graph)?;
        bundle.load(&weights)?;
        let phases = if arguments.phase.is_empty() { Phase::ALL.to_vec() } else { arguments.phase.clone() };
        for phase in phases {
            let measured =
                Measurement { arguments, contract, name, phase, bundle: &bundle, weights: &weights };
            // One failed cell must not cost the others; the record says why.
            let cell = measured.run().unwrap_or_else(|error| {
                let error = Some(error.to_string());
                Cell { error, ..Cell::new(name, phase, MODE) }
            });
            progress(&cell);
            run.cells.push(cell);
            run.write(&arguments.out)?;
        }
    }
    Ok(())
}

/// The contract that programs of a precision are made under.
pub(crate) fn contract(precision: Precision) -> Result<Contract, BenchError> {
    match precision {
        Precision::Strict => Ok(Contract::Strict),
        Precision::Fast => Ok(Contract::Fast),
        Precision::F64 => {
            let (value, reason) = (precision.text().into(), "programs are strict or fast".into());
            Err(griffinfly::Error::Value { what: "the precision", value, reason }.into())
        }
    }
}

#[allow(clippy::print_stderr, reason = "progress of a long command")]
fn progress(cell: &Cell) {
    let time = quartiles(&cell.samples_us).map(|q| format!("{:.3} ms", q.median / 1e3));
    let said = time.or_else(|| cell.error.clone()).unwrap_or_else(|| "not timed".into());
    eprintln!("{} {}: {said}", cell.workload.text(), cell.phase.text());
}

fn record(device: &Device, arguments: &Arguments) -> Run {
    Run {
        format: FORMAT,
        engine: "griffinfly".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        revision: arguments.revision.clone(),
        precision: arguments.precision,
        size: arguments.size,
        device: device_record(device),
        host: Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        cells: Vec::new(),
    }
}

/// What a device says of itself.
pub(crate) fn device_record(device: &Device) -> DeviceRecord {
    let info = device.info();
    DeviceRecord {
        backend: info.backend.into(),
        name: info.name.clone(),
        driver: info.driver.clone(),
        runtime: None,
    }
}

/// Whether neither we nor a driver keep pipelines on disk, as `compare.sh` has it.
fn caches_are_off() -> bool {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|v| v == value);
    is("GRIFFINFLY_CACHE_DIR", "")
        && is("__GL_SHADER_DISK_CACHE", "0")
        && is("MESA_SHADER_CACHE_DISABLE", "true")
}

/// One cell to be measured.
struct Measurement<'a> {
    arguments: &'a Arguments,
    contract: Contract,
    name: Name,
    phase: Phase,
    bundle: &'a Bundle,
    weights: &'a Weights,
}

impl Measurement<'_> {
    fn run(&self) -> Result<Cell, BenchError> {
        let mut cell = Cell::new(self.name, self.phase, MODE);
        let shape = if self.phase == Phase::Latency { Shape::Minimal } else { Shape::Full };
        let inputs = self.bundle.inputs(shape);
        let (mut session, first, seconds) = self.prepared(shape, &inputs)?;
        (cell.preparation_s, cell.caches_empty) = (Some(seconds), Some(caches_are_off()));
        let device = self.weights.device();
        if self.arguments.samples > 0 {
            cell.clocks_before = clocks::clocks(device);
            (cell.samples_us, cell.host_us) = timed(&mut session, self.arguments.samples)?;
            cell.clocks_after = clocks::clocks(device);
        }
        self.describe(&session, &mut cell);
        let last = session.run(&self.given(&inputs, &session))?;
        if !same_bits(&first, &last) {
            cell.error = Some("the results before and after the series differ".into());
        }
        if let Ok([loss, ..]) = last.f32("loss") {
            cell.loss = Some(f64::from(*loss));
        }
        cell.dump = self.arguments.dump.as_deref().map(|folder| self.dump(folder, &last)).transpose()?;
        if self.arguments.samples > 0 {
            // Not both at once: large programs have no room for that.
            drop(session);
            cell.preparation_again_s = Some(self.prepared(shape, &inputs)?.2);
        }
        Ok(cell)
    }

    /// From the model to a program that ran once, and the seconds that took; with the results of a further run.
    fn prepared(&self, shape: Shape, inputs: &[InputTensor]) -> Result<(Session, Outputs, f64), BenchError> {
        let start = Instant::now();
        let model = self.name.at(self.arguments.size).model(shape)?;
        let graph =
            if self.phase == Phase::Train { model.training()?.gradients()? } else { model.inference()? };
        let mut session = Session::with_settings(graph, self.weights, self.contract)?;
        // As PyTorch leaves them, results of the first step are on the device.
        let step = session.submit(&self.given(inputs, &session))?;
        session.wait(step)?;
        let seconds = start.elapsed().as_secs_f64();
        let results = session.run(&self.given(inputs, &session))?;
        Ok((session, results, seconds))
    }

    /// The inputs that the graph has: an inference needs no targets.
    fn given<'a>(&self, inputs: &'a [InputTensor], session: &Session) -> Vec<(&'a str, Input<'a>)> {
        let has = |i: &&InputTensor| session.graph().graph().leaf(&i.name).is_some();
        inputs.iter().filter(has).map(|i| (i.name.as_str(), input(i))).collect()
    }

    fn describe(&self, session: &Session, cell: &mut Cell) {
        let program = session.program();
        cell.program = Some(plan::size_of(program));
        let device_used = clocks::memory_used(self.weights.device());
        cell.memory = Some(Memory { device_used, ..plan::memory(program) });
    }

    /// Writes the results and gives their path relative to the record.
    fn dump(&self, folder: &Path, outputs: &Outputs) -> Result<PathBuf, BenchError> {
        let (size, phase, contract) = (self.arguments.size, self.phase.text(), self.contract.name());
        let stem = self.name.file(size);
        let file =
            format!("griffinfly.{contract}.{}.{phase}.safetensors", stem.trim_end_matches(".safetensors"));
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let path = folder.join(file);
        let bytes = encoded(outputs)?;
        std::fs::write(&path, bytes).map_err(BenchError::io(&path))?;
        // Absolute, because record and dumps may lie anywhere; the reader takes both.
        std::path::absolute(&path).map_err(BenchError::io(&path))
    }
}

pub(crate) fn input(tensor: &InputTensor) -> Input<'_> {
    match &tensor.values {
        Values::F32(v) => Input::f32(v),
        Values::I32(v) => Input::ids(v),
    }
}

/// Results as a safetensors file.
pub(crate) fn encoded(outputs: &Outputs) -> Result<Vec<u8>, BenchError> {
    let bytes: Vec<Vec<u8>> = outputs.all().iter().map(little_endian).collect();
    let pairs = outputs.all().iter().zip(&bytes);
    let source =
        pairs.map(|(o, bytes)| TensorSource { name: &o.name, dtype: Dtype::F32, shape: &o.ty.dims, bytes });
    Ok(safetensors::to_bytes(&source.collect::<Vec<_>>(), &BTreeMap::new())?)
}

fn little_endian(output: &Output) -> Vec<u8> {
    match &output.data {
        Data::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        _ => Vec::new(),
    }
}

fn same_bits(a: &Outputs, b: &Outputs) -> bool {
    let pairs = a.all().iter().zip(b.all());
    a.all().len() == b.all().len()
        && pairs.into_iter().all(|(a, b)| match (&a.data, &b.data) {
            (Data::F32(x), Data::F32(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x.to_bits() == y.to_bits())
            }
            (x, y) => x == y,
        })
}

/// Wall time and, within it, time until the submission returned, of each call in microseconds.
fn timed(session: &mut Session, samples: usize) -> Result<(Vec<f64>, Vec<f64>), BenchError> {
    let start = Instant::now();
    let mut calls = 0;
    while calls < WARM_UP_CALLS || start.elapsed() < WARM_UP {
        let step = session.submit_again()?;
        session.wait(step)?;
        calls += 1;
    }
    let (mut walls, mut hosts) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
    for _ in 0..samples {
        let before = Instant::now();
        let step = session.submit_again()?;
        let submitted = before.elapsed();
        session.wait(step)?;
        walls.push(before.elapsed().as_secs_f64() * 1e6);
        hosts.push(submitted.as_secs_f64() * 1e6);
    }
    Ok((walls, hosts))
}

//! `griffinfly-bench plan`: compiles the workloads for a device in both memory modes without running them, and records bytes,
//! dispatches, levels and seconds.

use crate::error::BenchError;
use crate::measure::device_record;
use crate::record::{Cell, FORMAT, Memory, Phase, Precision, ProgramRecord, Run};
use crate::workload::{Name, Shape, Size, names};
use griffinfly::compile::{Options, compile, program::Program};
use griffinfly::{Device, DeviceChoice, MemoryMode};
use std::path::PathBuf;
use std::time::Instant;

/// How cells of plans that spend bytes for speed are called.
pub(crate) const SPEED_FIRST: &str = "plan, speed first";
/// How cells of the smallest plans are called.
pub(crate) const MEMORY_FIRST: &str = "plan, memory first";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// smollm2, smolvla, unet, resnet50, whisper with commas, or all.
    #[arg(long, default_value = "all")]
    workload: String,
    /// Size of the workloads.
    #[arg(long, value_enum, default_value = "full")]
    size: Size,
    /// auto (a hardware GPU, else host), vulkan or webgpu (any driver), or host.
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Revision of the repository, to be recorded.
    #[arg(long)]
    revision: Option<String>,
    /// Where the record goes.
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let wanted = |reason| BenchError::File { path: "--workload".into(), reason };
    let workloads = names(&arguments.workload).map_err(wanted)?;
    let device = Device::open(arguments.device)?;
    let mut cells = Vec::new();
    for name in workloads {
        for phase in [Phase::Inference, Phase::Train] {
            for (mode, text) in [(MemoryMode::Speed, SPEED_FIRST), (MemoryMode::Memory, MEMORY_FIRST)] {
                cells.push(planned(&device, (name, arguments.size), phase, (mode, text))?);
            }
        }
    }
    let run = Run {
        format: FORMAT,
        engine: "griffinfly".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        revision: arguments.revision.clone(),
        precision: Precision::Strict,
        size: arguments.size,
        device: device_record(&device),
        host: None,
        cells,
    };
    run.write(&arguments.out)
}

#[allow(clippy::print_stderr, reason = "progress of a long command")]
fn planned(
    device: &Device,
    (name, size): (Name, Size),
    phase: Phase,
    (mode, text): (MemoryMode, &str),
) -> Result<Cell, BenchError> {
    let start = Instant::now();
    let model = name.at(size).model(Shape::Full)?;
    let graph = if phase == Phase::Train { model.training()?.gradients()? } else { model.inference()? };
    let options = Options { memory: mode, ..Options::default() };
    let program = compile(graph.graph(), device.target(), &options).map_err(griffinfly::Error::from)?;
    let memory = memory(&program);
    let mebibytes = program.memory.physical_bytes >> 20;
    eprintln!("{} {}, {text}: {mebibytes} MiB", name.text(), phase.text());
    Ok(Cell {
        preparation_s: Some(start.elapsed().as_secs_f64()),
        memory: Some(memory),
        program: Some(size_of(&program)),
        ..Cell::new(name, phase, text)
    })
}

/// Bytes of a program's plan.
pub(crate) fn memory(program: &Program) -> Memory {
    let plan = &program.memory;
    Memory {
        physical: Some(plan.physical_bytes),
        logical: Some(plan.logical_bytes),
        lower_bound: Some(plan.physical_bytes - plan.scratch_bytes + plan.scratch_lower_bound),
        ..Memory::default()
    }
}

/// Dispatches, prefetches, pipelines and levels of a program.
pub(crate) fn size_of(program: &Program) -> ProgramRecord {
    let prefetches = program.dispatches.iter().filter(|d| d.is_prefetch()).count();
    ProgramRecord {
        dispatches: program.dispatches.len() - prefetches,
        prefetches,
        pipelines: program.kernels.len(),
        levels: program.level_count(),
    }
}

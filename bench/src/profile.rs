//! `griffinfly-bench profile`: each dispatch of the workloads with its time on the device, its work and its share of what
//! the device reaches, apart from the timed series.

use crate::bundle::Bundle;
use crate::error::BenchError;
use crate::measure::{contract, input};
use crate::record::{Phase, Precision};
use crate::workload::{Name, Shape, Size, names};
use griffinfly::profile::{Profile, Roof};
use griffinfly::{Device, DeviceChoice, Session, Weights};
use std::path::PathBuf;

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
    /// auto (a hardware GPU, else host), vulkan or webgpu (any driver), or host.
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// strict or fast.
    #[arg(long, value_enum, default_value = "strict")]
    precision: Precision,
    /// Steps whose medians are taken.
    #[arg(long, default_value_t = 30)]
    steps: usize,
    /// Folder for WORKLOAD.PHASE.json, .trace.json (for Perfetto) and .txt each.
    #[arg(long)]
    out: PathBuf,
}

#[allow(clippy::print_stderr, reason = "progress of a long command")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let wanted = |reason| BenchError::File { path: "--workload".into(), reason };
    let workloads = names(&arguments.workload).map_err(wanted)?;
    let device = Device::open(arguments.device)?;
    let phases = if arguments.phase.is_empty() { Phase::ALL.to_vec() } else { arguments.phase.clone() };
    std::fs::create_dir_all(&arguments.out).map_err(BenchError::io(&arguments.out))?;
    let roof = Roof::measure(&device)?;
    for name in workloads {
        let bundle = Bundle::read(&arguments.files, name, arguments.size)?;
        let model = name.at(arguments.size).model(Shape::Full)?;
        let weights = Weights::empty(&device, &model.graph)?;
        bundle.load(&weights)?;
        for phase in &phases {
            let stem = format!("{}.{}", name.text(), phase.text());
            let profile = profiled((name, *phase), arguments, (&bundle, &weights))?.under(roof);
            let path = arguments.out.join(format!("{stem}.json"));
            let json = BenchError::record(&path);
            let text = serde_json::to_string(&profile).map_err(json)?;
            for (ending, text) in [("json", text), ("trace.json", profile.trace()), ("txt", profile.table())]
            {
                let path = arguments.out.join(format!("{stem}.{ending}"));
                std::fs::write(&path, text).map_err(BenchError::io(&path))?;
            }
            eprintln!("{stem}: {:.3} ms", profile.total_ns / 1e6);
        }
    }
    Ok(())
}

fn profiled(
    (name, phase): (Name, Phase),
    arguments: &Arguments,
    (bundle, weights): (&Bundle, &Weights),
) -> Result<Profile, BenchError> {
    let shape = if phase == Phase::Latency { Shape::Minimal } else { Shape::Full };
    let model = name.at(arguments.size).model(shape)?;
    let graph = if phase == Phase::Train { model.training()?.gradients()? } else { model.inference()? };
    let mut session = Session::with_settings(graph, weights, contract(arguments.precision)?)?;
    let inputs = bundle.inputs(shape);
    let has = |name: &str| session.graph().graph().leaf(name).is_some();
    let given: Vec<_> = inputs.iter().filter(|i| has(&i.name)).map(|i| (i.name.as_str(), input(i))).collect();
    session.run(&given)?;
    Ok(session.profile(arguments.steps)?)
}

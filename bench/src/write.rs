//! `griffinfly-bench write`: makes the files of the workloads.

use crate::bundle;
use crate::error::BenchError;
use crate::workload::{Size, names};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// smollm2, smolvla, unet, resnet50, whisper with commas, or all.
    #[arg(long, default_value = "all")]
    workload: String,
    /// Size of the workloads.
    #[arg(long, value_enum, default_value = "full")]
    size: Size,
    /// Weights of a real checkpoint instead of drawn ones: a safetensors file, the index of several, or a directory with
    /// either. For one workload.
    #[arg(long)]
    weights: Option<PathBuf>,
    /// Folder for the files.
    #[arg(long, default_value = "target/bench/files")]
    out: PathBuf,
}

#[allow(clippy::print_stdout, reason = "what a command made")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let wrong = |reason| BenchError::File { path: arguments.out.clone(), reason };
    let workloads = names(&arguments.workload).map_err(wrong)?;
    if arguments.weights.is_some() && workloads.len() != 1 {
        return Err(wrong("weights are those of one workload: name it".into()));
    }
    for name in workloads {
        let path = bundle::write(name, arguments.size, &arguments.out, arguments.weights.as_deref())?;
        println!("{}", path.display());
    }
    Ok(())
}

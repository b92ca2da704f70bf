//! Everything that can go wrong, as one type. Nothing was changed where an error is returned, unless the device is lost.

use crate::checkpoint::CheckpointFault;
use crate::inputs::InputError;
use griffinfly_compile::CompileError;
use griffinfly_gpu::GpuError;
use griffinfly_import::ImportError;
use griffinfly_ir::autodiff::AutodiffError;
use griffinfly_ir::graph::BuildErrors;
use griffinfly_ir::layout::TooLarge;
use griffinfly_ir::types::TensorType;
use std::path::PathBuf;
use thiserror::Error;

/// A failure of any layer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The graph has build errors, all of which are listed.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// The loss cannot be differentiated.
    #[error(transparent)]
    Autodiff(#[from] AutodiffError),
    /// The graph cannot be compiled for the device.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device failed or refused.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A parameter is larger than the device can hold in one piece.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Inputs that do not fit the program.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An id made on the device (computed, or kept in a parameter or state) was out of range. It was read as the nearest
    /// allowed one, so the outputs of the step mean nothing and are not given. No update happened in that step or in those
    /// submitted after it: parameters and state are as before it.
    #[error(
        "an id that the device computed for {operation} is not in 0..{limit}{}: nothing was updated by the step, nor by those \
         submitted after it",
        crate::inputs::or(*ignore)
    )]
    DeviceId {
        /// Labels of the operation that uses the id.
        operation: String,
        /// Ids must be below this.
        limit: i32,
        /// An id that is allowed besides.
        ignore: Option<i32>,
    },
    /// A valid file whose content does not fit.
    #[error("{} does not fit: {}", path.display(), list(faults))]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// Everything that does not fit.
        faults: Vec<CheckpointFault>,
    },
    /// A name that no tensor has.
    #[error("there is no {what} named '{name}'; there are: {}", known.join(", "))]
    NoSuchTensor {
        /// What was looked for: a parameter, an output.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Values of another count or dtype than the tensor has.
    #[error("'{name}' is {ty}, given {given}")]
    TensorType {
        /// The tensor.
        name: String,
        /// Its type.
        ty: TensorType,
        /// What was given or asked for.
        given: String,
    },
    /// A graph whose parameters are not those of the weights.
    #[error("the graph's parameters are not those of the weights: {}", .0.join("; "))]
    Parameters(Vec<String>),
    /// Weights that were neither initialised, loaded nor set.
    #[error("the weights hold no values yet for {}: load a file, or set them", .0.join(", "))]
    Unset(Vec<String>),
    /// A value that is not allowed.
    #[error("{what} is {value}: {reason}")]
    Value {
        /// What it is.
        what: &'static str,
        /// The value.
        value: String,
        /// What is allowed.
        reason: String,
    },
}

impl Error {
    /// Whether the device is lost: make a new one and continue from the last checkpoint.
    #[must_use]
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Error::Gpu(GpuError::DeviceLost { .. }))
    }
}

fn list(faults: &[CheckpointFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

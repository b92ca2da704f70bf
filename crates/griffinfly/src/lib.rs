//! Griffinfly trains and runs neural networks on any GPU through Vulkan, or on the CPU.
//!
//! A model is described once, as a [`Graph`]. The same graph is trained by a [`Trainer`] and run by a [`Session`]; both
//! compile it to a static program and share [`Weights`], whose files are safetensors.
//!
//! ```
//! use griffinfly::{Device, Graph, GraphExt, Input, Optimizer, Session, Trainer, nn};
//!
//! let mut g = Graph::new();
//! let (x, target) = (g.input("x", [4, 3]), g.input("target", [4, 1]));
//! let y = nn::Linear::new("head", 3, 1).apply(&mut g, x);
//! let loss = g.mse(y, target);
//!
//! let device = Device::host();
//! let mut trainer = Trainer::new(&device, g.training(loss)?, Optimizer::sgd(0.1))?;
//! let (inputs, targets) = ([0.5_f32; 12], [1.0_f32; 4]);
//! let before = trainer.step(&[("x", Input::f32(&inputs)), ("target", Input::f32(&targets))])?;
//! let after = trainer.step(&[("x", Input::f32(&inputs)), ("target", Input::f32(&targets))])?;
//! assert!(after < before);
//!
//! let mut session = Session::with_weights(g.inference([("y", y)])?, trainer.weights())?;
//! let out = session.run(&[("x", Input::f32(&inputs))])?;
//! assert_eq!(out.f32("y")?.len(), 4);
//! # Ok::<(), griffinfly::Error>(())
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`nn`] | layers with PyTorch's names, layouts and initialisation |
//! | `definition` | the two uses of a graph: [`TrainingGraph`], [`InferenceGraph`] |
//! | `device` | which device to use |
//! | `tensors`, `weights`, `checkpoint` | named tensors in device memory; parameters; files |
//! | `inputs`, `outputs`, `runner` | what goes in and out of a step, checked; a program bound to memory |
//! | [`profile`] | where the time of a step goes |
//! | [`tune`] | which kernels are fastest, by measurement, and tables of it |
//! | `model_state` | running averages on their way from trainers to sessions |
//! | `session`, `trainer` | the two things users run |
//! | [`data`], [`models`] | the embedded digits; the model of the demo and known architectures |
//!
//! Invariants: no call panics on bad input; a failed call leaves parameters, state, step and files as they were, or says
//! that the device is lost; the same seed, program and device give the same bits.

mod checkpoint;
pub mod data;
mod definition;
mod device;
mod error;
mod id_flag;
mod inputs;
pub mod inspect;
mod memory;
mod model_state;
pub mod models;
pub mod nn;
mod outputs;
pub mod philox;
pub mod profile;
#[cfg(not(target_arch = "wasm32"))]
mod progress;
mod runner;
mod session;
mod tensors;
mod trainer;
pub mod tune;
mod weights;

pub use checkpoint::CheckpointFault;
pub use definition::{GraphExt, InferenceGraph, TrainingGraph};
pub use device::{Device, DeviceChoice, DeviceListing};
pub use error::Error;
pub use griffinfly_compile as compile;
pub use griffinfly_compile::kernel::families::tuned::Choices;
pub use griffinfly_compile::memory::Mode as MemoryMode;
pub use griffinfly_gpu as gpu;
pub use griffinfly_import as import;
pub use griffinfly_ir as ir;
pub use griffinfly_ir::graph::{BuildErrors, Graph, Init, Value};
pub use griffinfly_ir::loops::AttentionMask;
pub use griffinfly_ir::ops::{AttentionOptions, RotaryStyle, Window2d};
pub use griffinfly_ir::optimizer::{AdamConfig, Optimizer, SgdConfig};
pub use griffinfly_ir::target::{Contract, NumericClass};
pub use griffinfly_ir::types::{DType, TensorType};
pub use inputs::{Feed, Input, InputError};
pub use memory::{Memory, Settings};
pub use outputs::{Data, Output, Outputs};
#[cfg(not(target_arch = "wasm32"))]
pub use progress::Progress;
pub use session::Session;
pub use trainer::Trainer;
pub use weights::Weights;

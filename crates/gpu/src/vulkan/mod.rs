//! The Vulkan backend: SPIR-V kernels on any Vulkan 1.1 driver with timeline semaphores.
//!
//! Input: a [`Program`](griffinfly_compile::program::Program) compiled for this device's
//! [`Target`](griffinfly_ir::target::Target); output: an [`Executor`](crate::Executor) over recorded command buffers. The
//! loader is found at run time, so neither an SDK nor a driver is needed to build or to start.
//!
//! | module | owns |
//! |---|---|
//! | [`options`](OpenOptions), [`faults`](FaultPlan) | what the caller may choose |
//! | `instance`, `adapter`, `negotiate` | loader, adapters, their limits as a `Target` |
//! | `context` | device, queue, submission, waiting, the lost flag |
//! | `command` | command pools and barriers |
//! | `memory`, `transfer` | buffers; staged uploads and readbacks |
//! | `cache`, `pipeline` | the driver's pipeline cache on disk; pipelines, made on several threads |
//! | `arenas`, `bind`, `record`, `ring`, `executor` | a program instantiated and run |
//! | `profile`, `statistics` | times of dispatches and steps; what the driver says of kernels |
//!
//! Invariants: every raw handle lives in an owner that destroys it once, after the device finished using it; every owner
//! keeps the context alive, so devices, buffers and executors may be dropped in any order; one queue takes all work, so
//! a barrier at the start of a command buffer covers everything submitted before it.

#![allow(unsafe_code, reason = "Vulkan is a C interface; each block states why it is sound")]

mod adapter;
mod arenas;
mod bind;
mod cache;
mod command;
mod context;
mod device;
mod executor;
mod faults;
mod instance;
mod matrices;
mod memory;
mod negotiate;
mod options;
mod pipeline;
mod profile;
mod record;
mod ring;
mod statistics;
mod transfer;

pub use crate::adapter::{AdapterType, Selector};
pub use adapter::AdapterInfo;
#[cfg(all(feature = "webgpu", not(target_vendor = "apple")))]
pub(crate) use adapter::compute_units;
pub use device::{VulkanDevice, enumerate, open, open_with};
pub use faults::{FaultPlan, SubmitFault};
pub use instance::ValidationLog;
pub use options::OpenOptions;

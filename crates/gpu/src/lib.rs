//! Devices that run programs.
//!
//! A [`Device`] owns memory and executes [`Program`](griffinfly_compile::program::Program)s. `vulkan` runs SPIR-V kernels on
//! any Vulkan 1.2+ driver; `webgpu` (a feature) runs WGSL kernels on Metal, DX12, Vulkan and in browsers; `host` executes the fused
//! loops on the CPU. All are driven the same way: buffers are made, a
//! program is instantiated over them, inputs are written for a step, the step is submitted, and outputs are read when its
//! ticket is done. Several steps may be in flight.
//!
//! Invariants: no call panics on bad input or on a failing driver; a failed call leaves all buffers as they were or says
//! that the device is lost; outputs of a step stay readable until as many later steps were submitted as the ring has slots.

mod adapter;
mod cache_dir;
pub mod clock;
mod device;
mod error;
pub mod host;
mod ids;
mod stepping;
#[cfg(not(target_arch = "wasm32"))]
pub mod vulkan;
#[cfg(feature = "webgpu")]
pub mod webgpu;

pub use adapter::{AdapterType, Selector};
pub use cache_dir::cache_dir;
pub use device::{Buffer, Device, DeviceInfo, Executor, KernelCost, Later, Sections, StepTiming, Ticket};
pub use error::GpuError;

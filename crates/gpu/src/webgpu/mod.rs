//! The WebGPU backend: WGSL kernels through `wgpu`, which runs them on Metal, DX12 or Vulkan, and in a browser.
//!
//! Input: a [`Program`](griffinfly_compile::program::Program) compiled for this device's [`Target`](griffinfly_ir::target::Target);
//! output: an [`Executor`](crate::Executor) that encodes every step anew. The same trait, programs, files and tests as those of the
//! Vulkan backend.
//!
//! | module | owns |
//! |---|---|
//! | `options` | what the caller may choose |
//! | `open`, `negotiate`, `probe` | adapters, their limits as a `Target`, whether their matrices compute what they should |
//! | `context` | device, queue, waiting, errors as ours, the lost flag |
//! | `buffer`, `transfer` | buffers, the application's too; uploads and readbacks |
//! | `pipeline`, `bind`, `encode` | kernels, what dispatches bind, the commands of a step |
//! | `readback`, `executor` | outputs on their way to the host; a program instantiated and run |
//! | `profile` | times of dispatches and steps |
//!
//! Invariants: errors of WebGPU are caught where they arise and come back as results; order between dispatches and copies is
//! WebGPU's own, which runs everything of a queue in order of submission; code is trusted (our verifier proved its indices), so
//! nothing is checked while it runs, where the API below allows that.

#![allow(
    unsafe_code,
    reason = "trusted shader modules and native adapters are unsafe to ask for; each block states why it is sound"
)]

mod bind;
mod buffer;
mod context;
mod device;
mod encode;
mod executor;
mod negotiate;
mod open;
mod options;
mod pipeline;
mod probe;
mod profile;
mod readback;
mod transfer;

pub use device::WebGpuDevice;
pub use open::{AdapterInfo, enumerate, open, open_with};
pub use options::OpenOptions;
pub use wgpu;

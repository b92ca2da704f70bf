//! Tests of the devices through their public interface.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod attention;
#[path = "../../../ir/tests/ir/attention_grid.rs"]
mod attention_grid;
#[path = "../../../ir/tests/ir/convolution_grid.rs"]
mod convolution_grid;
mod device_contractions;
mod device_executing;
mod device_families;
mod host;
mod suite;
mod under_test;
mod vulkan_device;
#[cfg(feature = "webgpu")]
mod webgpu_device;

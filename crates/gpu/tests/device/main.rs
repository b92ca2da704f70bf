//! Tests of the devices through their public interface.

mod attention;
#[path = "../../../ir/tests/ir/attention_grid.rs"]
mod attention_grid;
mod contract;
#[path = "../../../ir/tests/ir/convolution_grid.rs"]
mod convolution_grid;
mod families;
mod host;
mod suite;
mod vulkan_device;

//! Tests of the devices through their public interface.

mod contract;
mod host;
mod suite;
mod vulkan_device;

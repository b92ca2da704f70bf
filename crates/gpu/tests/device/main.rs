//! Tests of the devices through their public interface.

mod contract;
mod families;
mod host;
mod suite;
mod vulkan_device;

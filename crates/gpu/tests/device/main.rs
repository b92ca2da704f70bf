//! Tests of the devices through their public interface.

mod attention;
mod contract;
mod families;
mod host;
mod suite;
mod vulkan_device;

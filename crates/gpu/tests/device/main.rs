//! Tests of the devices through their public interface.

mod host;
mod vulkan_device;

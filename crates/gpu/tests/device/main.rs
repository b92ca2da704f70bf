//! Tests of the devices through their public interface.

mod vulkan_device;

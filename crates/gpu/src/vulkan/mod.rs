//! Vulkan.

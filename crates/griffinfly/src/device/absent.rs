//! An API that is not built in.

#![allow(dead_code, reason = "stands in the place of any of them")]

use super::DeviceListing;
use griffinfly_gpu::{Device, GpuError};
use std::sync::Arc;

pub(super) fn open() -> Result<Arc<dyn Device>, GpuError> {
    let reason =
        "this API is not built in: WebGPU needs the feature `webgpu`, Vulkan is not in browsers".into();
    Err(GpuError::NoDevice { backend: module_path!().rsplit("::").next().unwrap_or("GPU"), reason })
}

pub(super) async fn open_async() -> Result<Arc<dyn Device>, GpuError> {
    open()
}

pub(super) fn hardware() -> Option<Arc<dyn Device>> {
    None
}

pub(super) fn list() -> Vec<DeviceListing> {
    Vec::new()
}

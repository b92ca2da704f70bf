//! WebGPU devices.

use super::{DeviceListing, kind, opened};
use griffinfly_gpu::webgpu::{self, AdapterInfo, OpenOptions, WebGpuDevice};
use griffinfly_gpu::{Device, GpuError, Selector};
use std::sync::Arc;

pub(super) fn open() -> Result<Arc<dyn Device>, GpuError> {
    webgpu::open(&Selector::Best)
}

pub(super) async fn open_async() -> Result<Arc<dyn Device>, GpuError> {
    let device: Arc<dyn Device> = WebGpuDevice::open(&OpenOptions::default()).await?;
    Ok(device)
}

/// A hardware GPU, if there is one that opens.
pub(super) fn hardware() -> Option<Arc<dyn Device>> {
    let is_usable = |a: &AdapterInfo| a.kind.is_hardware() && a.unusable.is_none();
    let has_any = webgpu::enumerate().unwrap_or_default().iter().any(is_usable);
    if has_any { opened(webgpu::open(&Selector::HardwareOnly)) } else { None }
}

pub(super) fn list() -> Vec<DeviceListing> {
    let listing = |a: AdapterInfo| DeviceListing {
        backend: "webgpu",
        name: a.name,
        kind: kind(a.kind),
        driver: a.driver,
        memory_bytes: 0,
        unusable: a.unusable,
    };
    webgpu::enumerate().unwrap_or_default().into_iter().map(listing).collect()
}

//! Vulkan devices.

use super::{DeviceListing, kind, opened};
use griffinfly_gpu::vulkan::{self, AdapterInfo};
use griffinfly_gpu::{Device, GpuError, Selector};
use std::sync::Arc;

pub(super) fn open() -> Result<Arc<dyn Device>, GpuError> {
    vulkan::open(&Selector::Best)
}

/// A hardware GPU, if there is one that opens.
pub(super) fn hardware() -> Option<Arc<dyn Device>> {
    let is_usable = |a: &AdapterInfo| a.kind.is_hardware() && a.unusable.is_none();
    match vulkan::enumerate() {
        Ok(adapters) if adapters.iter().any(is_usable) => opened(vulkan::open(&Selector::HardwareOnly)),
        Ok(_) => None,
        Err(reason) => {
            tracing::debug!(%reason, "no Vulkan device");
            None
        }
    }
}

pub(super) fn list() -> Vec<DeviceListing> {
    let listing = |a: AdapterInfo| DeviceListing {
        backend: "vulkan",
        name: a.name,
        kind: kind(a.kind),
        driver: a.driver,
        memory_bytes: a.memory_bytes,
        unusable: a.unusable,
    };
    vulkan::enumerate().unwrap_or_default().into_iter().map(listing).collect()
}

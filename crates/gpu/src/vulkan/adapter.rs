//! Adapters: what the instance offers, ranked, and why one cannot be used.
//!
//! Hardware comes before software; within that, discrete before virtual before integrated, then the driver's own order.

use super::instance::{Instance, has_extension, no_device};
use super::{matrices, negotiate};
use crate::adapter::{AdapterType, Candidate, Selector, choose};
use crate::device::DeviceInfo;
use crate::error::GpuError;
use ash::{khr, vk};
use griffinfly_ir::target::Target;
use serde::Serialize;
use std::ffi::CStr;

/// What is known about an adapter without opening it.
#[derive(Clone, Debug, Serialize)]
pub struct AdapterInfo {
    /// The adapter's own name.
    pub name: String,
    /// What it is.
    pub kind: AdapterType,
    /// Driver name and version, as the driver says them.
    pub driver: String,
    /// Vulkan version it implements: major, minor, patch.
    pub api_version: [u32; 3],
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Why it cannot be used, if so.
    pub unusable: Option<String>,
}

impl AdapterInfo {
    fn candidate(&self) -> Candidate<'_> {
        Candidate { name: &self.name, kind: self.kind, unusable: self.unusable.as_deref() }
    }
}

/// An adapter with everything needed to open it.
pub(super) struct Adapter {
    pub(super) physical: vk::PhysicalDevice,
    pub(super) info: AdapterInfo,
    pub(super) target: Target,
    pub(super) facts: Facts,
}

/// Facts about an adapter that are not part of the target.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) properties: vk::PhysicalDeviceProperties,
    pub(super) memory: vk::PhysicalDeviceMemoryProperties,
    /// Queue family used for everything.
    pub(super) family: u32,
    /// Bits of a timestamp that count; 0 without timestamps.
    pub(super) timestamp_bits: u32,
    pub(super) extensions: Vec<&'static CStr>,
    /// Timeline semaphores come from the extension, not from version 1.2.
    pub(super) timeline_extension: bool,
    /// The driver tells what its compiled kernels take.
    pub(super) statistics: bool,
}

/// All adapters of an instance, best first.
pub(super) fn list(instance: &Instance) -> Result<Vec<Adapter>, GpuError> {
    // SAFETY: the instance is alive.
    let devices = unsafe { instance.raw.enumerate_physical_devices() }
        .map_err(|result| no_device(format!("vkEnumeratePhysicalDevices failed: {result}")))?;
    let mut adapters = Vec::with_capacity(devices.len());
    for physical in devices {
        adapters.push(describe(instance, physical)?);
    }
    adapters.sort_by_key(|adapter| (!adapter.info.kind.is_hardware(), adapter.info.kind));
    Ok(adapters)
}

/// Picks one adapter.
pub(super) fn select(mut adapters: Vec<Adapter>, selector: &Selector) -> Result<Adapter, GpuError> {
    let index = {
        let candidates: Vec<_> = adapters.iter().map(|adapter| adapter.info.candidate()).collect();
        choose(&candidates, selector).map_err(no_device)?
    };
    Ok(adapters.swap_remove(index))
}

impl Adapter {
    pub(super) fn device_info(&self) -> DeviceInfo {
        DeviceInfo {
            backend: "vulkan",
            name: self.info.name.clone(),
            driver: self.info.driver.clone(),
            is_hardware_gpu: self.info.kind.is_hardware(),
            memory_bytes: self.info.memory_bytes,
        }
    }
}

fn describe(loaded: &Instance, physical: vk::PhysicalDevice) -> Result<Adapter, GpuError> {
    let instance = &loaded.raw;
    // SAFETY: the handle was just enumerated from this instance.
    let (properties, memory, families, available) = unsafe {
        (
            instance.get_physical_device_properties(physical),
            instance.get_physical_device_memory_properties(physical),
            instance.get_physical_device_queue_family_properties(physical),
            instance.enumerate_device_extension_properties(physical),
        )
    };
    let available = available.map_err(|result| no_device(format!("no device extensions: {result}")))?;
    let kind = kind(properties.device_type);
    let version = properties.api_version;
    let family = compute_family(&families);
    let timeline_extension = version < vk::API_VERSION_1_2;
    let mut extensions = Vec::new();
    if timeline_extension {
        extensions.push(khr::timeline_semaphore::NAME);
    }
    if has_extension(&available, khr::portability_subset::NAME) {
        extensions.push(khr::portability_subset::NAME);
    }
    let statistics = negotiate::has_statistics(instance, physical, &available, version);
    if statistics {
        extensions.push(khr::pipeline_executable_properties::NAME);
    }
    let (mut target, driver) = if version < vk::API_VERSION_1_1 {
        (Target::minimal_vulkan(), "unknown".into())
    } else {
        let query = negotiate::Query { instance, physical, properties: &properties, available: &available };
        (query.target(kind.is_hardware()), query.driver())
    };
    if kind.is_hardware() {
        let version = version.min(loaded.version);
        let (entry, available, subgroup_size) = (&loaded.entry, &available, target.subgroup_size);
        target.matrix_formats =
            matrices::Query { entry, instance, physical, available, version, subgroup_size }.formats();
        extensions.extend(matrices::extensions(&target.matrix_formats));
    }
    let mut info = AdapterInfo {
        name: target_name(&properties),
        kind,
        driver,
        api_version: [
            vk::api_version_major(version),
            vk::api_version_minor(version),
            vk::api_version_patch(version),
        ],
        memory_bytes: device_memory(&memory),
        unusable: None,
    };
    let has_timeline = negotiate::has_timeline(instance, physical, &available, version);
    info.unusable = unusable(&info, &target, family.is_some(), has_timeline);
    let (family, timestamp_bits) = family.unwrap_or((0, 0));
    let facts =
        Facts { properties, memory, family, timestamp_bits, extensions, timeline_extension, statistics };
    Ok(Adapter { physical, info, target, facts })
}

fn unusable(info: &AdapterInfo, target: &Target, has_compute: bool, has_timeline: bool) -> Option<String> {
    let [major, minor, _] = info.api_version;
    if (major, minor) < (1, 1) {
        return Some(format!("it implements Vulkan {major}.{minor}, 1.1 is needed"));
    }
    if !has_timeline {
        return Some("it has no timeline semaphores (Vulkan 1.2 or VK_KHR_timeline_semaphore)".into());
    }
    if !has_compute {
        return Some("it has no queue that computes".into());
    }
    if target.max_bindings < negotiate::MIN_BINDINGS {
        return Some(format!(
            "it allows {} storage bindings per kernel, {} are needed",
            target.max_bindings,
            negotiate::MIN_BINDINGS
        ));
    }
    None
}

fn kind(kind: vk::PhysicalDeviceType) -> AdapterType {
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => AdapterType::DiscreteGpu,
        vk::PhysicalDeviceType::VIRTUAL_GPU => AdapterType::VirtualGpu,
        vk::PhysicalDeviceType::INTEGRATED_GPU => AdapterType::IntegratedGpu,
        vk::PhysicalDeviceType::CPU => AdapterType::Software,
        _ => AdapterType::Other,
    }
}

pub(super) fn target_name(properties: &vk::PhysicalDeviceProperties) -> String {
    properties
        .device_name_as_c_str()
        .map_or_else(|_| "unnamed".into(), |name| name.to_string_lossy().into_owned())
}

fn device_memory(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    let heaps = memory.memory_heaps_as_slice().iter();
    heaps.filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL)).map(|heap| heap.size).sum()
}

/// The first family that computes and has timestamps, else the first that computes.
fn compute_family(families: &[vk::QueueFamilyProperties]) -> Option<(u32, u32)> {
    let computing = || {
        families.iter().zip(0_u32..).filter(|(family, _)| {
            family.queue_count > 0 && family.queue_flags.contains(vk::QueueFlags::COMPUTE)
        })
    };
    let timed = computing().find(|(family, _)| family.timestamp_valid_bits > 0);
    timed.or_else(|| computing().next()).map(|(family, index)| (index, family.timestamp_valid_bits))
}

/// Compute units of an adapter of another instance, as far as the driver tells.
#[cfg(all(feature = "webgpu", not(target_vendor = "apple")))]
pub(crate) fn compute_units(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    is_hardware: bool,
) -> Option<u32> {
    // SAFETY: the adapter belongs to the instance, which is alive.
    let (properties, available) = unsafe {
        (
            instance.get_physical_device_properties(physical),
            instance.enumerate_device_extension_properties(physical).ok()?,
        )
    };
    if properties.api_version < vk::API_VERSION_1_1 {
        return None;
    }
    let query = negotiate::Query { instance, physical, properties: &properties, available: &available };
    Some(query.compute_units(is_hardware))
}

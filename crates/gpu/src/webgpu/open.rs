//! Adapters and opening one.

use super::context::{Context, Ownership, ready};
use super::device::WebGpuDevice;
use super::negotiate::{self, Found};
use super::options::OpenOptions;
use super::probe;
use crate::adapter::{AdapterType, Candidate, Selector, choose};
use crate::device::{Device, DeviceInfo};
use crate::error::GpuError;
use serde::Serialize;
use std::sync::Arc;
use wgpu::{Backends, DeviceType, Features, InstanceFlags, Limits};

/// What is known about an adapter without opening it.
#[derive(Clone, Debug, Serialize)]
pub struct AdapterInfo {
    /// The adapter's own name.
    pub name: String,
    /// What it is.
    pub kind: AdapterType,
    /// The API below (`vulkan`, `metal`, `dx12`) and driver name and version, as the driver says them.
    pub driver: String,
    /// Why it cannot be used, if so.
    pub unusable: Option<String>,
}

impl AdapterInfo {
    fn candidate(&self) -> Candidate<'_> {
        Candidate { name: &self.name, kind: self.kind, unusable: self.unusable.as_deref() }
    }
}

/// All adapters, best first; each says whether and why it cannot be used. In a browser: see [`WebGpuDevice::open`].
///
/// # Errors
/// None natively; in a browser, where one has to wait for the answer.
pub fn enumerate() -> Result<Vec<AdapterInfo>, GpuError> {
    Ok(adapters()?.iter().map(describe).collect())
}

/// Opens an adapter with default options.
///
/// # Errors
/// No adapter that matches and is usable; in a browser, where one has to wait for the answer: see [`WebGpuDevice::open`].
pub fn open(selector: &Selector) -> Result<Arc<dyn Device>, GpuError> {
    Ok(open_with(selector, &OpenOptions::default())?)
}

/// Opens an adapter.
///
/// # Errors
/// As [`open`].
pub fn open_with(selector: &Selector, options: &OpenOptions) -> Result<Arc<WebGpuDevice>, GpuError> {
    let adapter = select(adapters()?, selector)?;
    ready(device(&adapter, options)).unwrap_or_else(|| Err(no_device("this API answers later")))
}

impl WebGpuDevice {
    /// Opens the adapter the browser prefers (natively: the best one), without blocking.
    ///
    /// In a browser nothing can be waited for: a step that is not done is a timeout, to be asked for again when the tab has had the
    /// thread, and what reads a buffer at once (`read`, `profile`, `repeat`, unaligned writes) fails.
    ///
    /// # Errors
    /// No WebGPU, no adapter, or one below the default limits.
    pub async fn open(options: &OpenOptions) -> Result<Arc<WebGpuDevice>, GpuError> {
        let wanted = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = instance().request_adapter(&wanted).await;
        let adapter = adapter.map_err(|error| no_device(&error.to_string()))?;
        if let Some(reason) = describe(&adapter).unusable {
            return Err(no_device(&reason));
        }
        device(&adapter, options).await
    }
}

fn instance() -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = Backends::PRIMARY;
    descriptor.flags = InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER;
    wgpu::Instance::new(descriptor)
}

/// Usable before unusable, hardware before software, discrete before integrated, then the order of the API.
fn adapters() -> Result<Vec<wgpu::Adapter>, GpuError> {
    let found = ready(instance().enumerate_adapters(Backends::PRIMARY));
    let mut found = found.ok_or_else(|| no_device("this API answers later"))?;
    found.sort_by_key(|adapter| {
        let info = describe(adapter);
        (info.unusable.is_some(), info.kind)
    });
    Ok(found)
}

fn describe(adapter: &wgpu::Adapter) -> AdapterInfo {
    let info = adapter.get_info();
    AdapterInfo {
        name: negotiate::name(&info),
        kind: kind(&info),
        driver: driver(&info),
        unusable: negotiate::unusable(&adapter.limits()),
    }
}

fn kind(info: &wgpu::AdapterInfo) -> AdapterType {
    match info.device_type {
        _ if !negotiate::is_hardware(info) => AdapterType::Software,
        DeviceType::DiscreteGpu => AdapterType::DiscreteGpu,
        DeviceType::IntegratedGpu => AdapterType::IntegratedGpu,
        DeviceType::VirtualGpu => AdapterType::VirtualGpu,
        DeviceType::Other | DeviceType::Cpu => AdapterType::Other,
    }
}

fn driver(info: &wgpu::AdapterInfo) -> String {
    let parts = [info.backend.to_str(), info.driver.as_str(), info.driver_info.as_str()];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    said.join(" ")
}

fn select(adapters: Vec<wgpu::Adapter>, selector: &Selector) -> Result<wgpu::Adapter, GpuError> {
    let described: Vec<AdapterInfo> = adapters.iter().map(describe).collect();
    let candidates: Vec<_> = described.iter().map(AdapterInfo::candidate).collect();
    let place = choose(&candidates, selector).map_err(|reason| no_device(&reason))?;
    adapters.into_iter().nth(place).ok_or_else(|| no_device("it went away"))
}

async fn device(adapter: &wgpu::Adapter, options: &OpenOptions) -> Result<Arc<WebGpuDevice>, GpuError> {
    let limits = if options.default_limits { Limits::default() } else { adapter.limits() };
    let matrices = probe::wanted(adapter);
    let features = adapter.features() & Features::TIMESTAMP_QUERY | matrices;
    // SAFETY: what is an experiment here is asked for only if it is used, in kernels that every run of the tests compares on the CPU
    // with what they should compute, and only if the probe agrees on this device.
    let experiments = unsafe { wgpu::ExperimentalFeatures::enabled() };
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("griffinfly"),
        required_features: features,
        required_limits: limits.clone(),
        memory_hints: wgpu::MemoryHints::Performance,
        experimental_features: if matrices.is_empty() {
            wgpu::ExperimentalFeatures::disabled()
        } else {
            experiments
        },
        ..wgpu::DeviceDescriptor::default()
    };
    let opened = adapter.request_device(&descriptor).await;
    let opened = opened.map_err(|error| no_device(&error.to_string()))?;
    let info = adapter.get_info();
    let found = Found {
        compute_units: compute_units(adapter),
        has_f32_matrices: probe::has_f32_matrices(&opened.0, &opened.1),
    };
    let target = negotiate::target(&info, &limits, found);
    let described = describe(adapter);
    let info = DeviceInfo {
        backend: "webgpu",
        name: described.name,
        driver: described.driver,
        is_hardware_gpu: described.kind.is_hardware(),
        memory_bytes: 0,
    };
    tracing::debug!(device = %info.name, driver = %info.driver, "opened a WebGPU device");
    let context = Context::new(opened, (info, target), Ownership::Ours);
    Ok(Arc::new(WebGpuDevice::new(context, options)))
}

/// What a device of the application's is, as far as it says; matrices of one that has the features for them are asked once.
pub(super) fn facts(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
) -> (DeviceInfo, griffinfly_ir::target::Target) {
    let info = device.adapter_info();
    let found = Found { compute_units: None, has_f32_matrices: probe::has_f32_matrices(device, queue) };
    let target = negotiate::target(&info, &device.limits(), found);
    let described = DeviceInfo {
        backend: "webgpu",
        name: negotiate::name(&info),
        driver: driver(&info),
        is_hardware_gpu: kind(&info).is_hardware(),
        memory_bytes: 0,
    };
    (described, target)
}

/// Compute units, where Vulkan lies below.
#[cfg(not(any(target_arch = "wasm32", target_vendor = "apple")))]
fn compute_units(adapter: &wgpu::Adapter) -> Option<u32> {
    // SAFETY: the guard is only asked for handles, which outlive it, and destroys nothing.
    let below = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let is_hardware = negotiate::is_hardware(&adapter.get_info());
    crate::vulkan::compute_units(
        below.shared_instance().raw_instance(),
        below.raw_physical_device(),
        is_hardware,
    )
}

#[cfg(any(target_arch = "wasm32", target_vendor = "apple"))]
fn compute_units(_: &wgpu::Adapter) -> Option<u32> {
    None
}

fn no_device(reason: &str) -> GpuError {
    GpuError::NoDevice { backend: "WebGPU", reason: reason.into() }
}

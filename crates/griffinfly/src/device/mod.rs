//! Which device to use. The handle is shared: cloning it gives the same device.
//!
//! `vulkan` and `webgpu` open and list the devices of an API; where one is not built in, `absent` says so in its place.

#[cfg(not(target_arch = "wasm32"))]
mod vulkan;
#[cfg(target_arch = "wasm32")]
#[path = "absent.rs"]
mod vulkan;
#[cfg(any(feature = "webgpu", target_vendor = "apple"))]
mod webgpu;
#[cfg(not(any(feature = "webgpu", target_vendor = "apple")))]
#[path = "absent.rs"]
mod webgpu;

use crate::error::Error;
use crate::tune;
use griffinfly_compile::kernel::families::tuned::Choices;
use griffinfly_gpu::{AdapterType, DeviceInfo, host};
use griffinfly_ir::target::Target;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A device that programs run on, with the choices of kernels that were measured on it.
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn griffinfly_gpu::Device>,
    choices: Arc<Choices>,
}

/// How a device is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A hardware GPU, else the CPU.
    #[default]
    Auto,
    /// Any Vulkan device, hardware before software.
    Vulkan,
    /// Any WebGPU device (Metal, DX12 or Vulkan below it), hardware before software.
    WebGpu,
    /// The CPU.
    Host,
}

/// A device as listings show it.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceListing {
    /// `vulkan`, `webgpu` or `host`.
    pub backend: &'static str,
    /// The device's own name.
    pub name: String,
    /// Kind: `discrete_gpu`, `software`, `cpu` and so on.
    pub kind: String,
    /// Driver name and version.
    pub driver: String,
    /// Memory in bytes, as far as known.
    pub memory_bytes: u64,
    /// Why it cannot be used, if so.
    pub unusable: Option<String>,
}

impl Device {
    /// The best device there is: a hardware GPU through Vulkan, else one through WebGPU where that is built in, else the CPU; on Apple's
    /// systems WebGPU comes first, since Vulkan there is a layer over what WebGPU uses. A
    /// software driver is slower than the CPU and is used only when asked for.
    ///
    /// # Errors
    /// None at present: a GPU that cannot be opened is passed over, with a warning to the log.
    pub fn best() -> Result<Device, Error> {
        let opened = if cfg!(target_vendor = "apple") {
            webgpu::hardware().or_else(vulkan::hardware)
        } else {
            vulkan::hardware().or_else(webgpu::hardware)
        };
        Ok(opened.map_or_else(Device::host, Device::tuned))
    }

    /// The CPU.
    #[must_use]
    pub fn host() -> Device {
        Device::from_backend(host::open())
    }

    /// The first usable Vulkan device, hardware before software.
    ///
    /// # Errors
    /// No loader, no driver, no usable device.
    pub fn vulkan() -> Result<Device, Error> {
        Ok(Device::tuned(vulkan::open()?))
    }

    /// The first usable WebGPU device, hardware before software.
    ///
    /// # Errors
    /// No usable device; built without the feature `webgpu`.
    pub fn webgpu() -> Result<Device, Error> {
        Ok(Device::tuned(webgpu::open()?))
    }

    /// The WebGPU device that is preferred, without blocking: in a browser the only way.
    ///
    /// # Errors
    /// No WebGPU, no adapter, one below the default limits; built without the feature `webgpu`.
    pub async fn webgpu_async() -> Result<Device, Error> {
        Ok(Device::tuned(webgpu::open_async().await?))
    }

    /// A device by choice.
    ///
    /// # Errors
    /// As [`Device::best`], [`Device::vulkan`] and [`Device::webgpu`].
    pub fn open(choice: DeviceChoice) -> Result<Device, Error> {
        match choice {
            DeviceChoice::Auto => Device::best(),
            DeviceChoice::Vulkan => Device::vulkan(),
            DeviceChoice::WebGpu => Device::webgpu(),
            DeviceChoice::Host => Ok(Device::host()),
        }
    }

    /// A device opened through [`crate::gpu`] with options of its own, and the default choices of kernels.
    #[must_use]
    pub fn from_backend(backend: Arc<dyn griffinfly_gpu::Device>) -> Device {
        Device { backend, choices: Arc::default() }
    }

    /// With the table that applies to it.
    fn tuned(backend: Arc<dyn griffinfly_gpu::Device>) -> Device {
        let choices = tune::applicable(backend.info());
        Device { backend, choices: Arc::new(choices) }
    }

    /// This device with other choices of kernels for the programs compiled from now on; with [`Choices::new`] every loop gets
    /// the default of its family. Weights remember the handle they were made with.
    #[must_use]
    pub fn with_choices(&self, choices: Choices) -> Device {
        Device { backend: self.backend.clone(), choices: Arc::new(choices) }
    }

    /// The choices of kernels for programs compiled for this handle: those of a table measured on this machine, or of one that
    /// comes with the library, or none.
    #[must_use]
    pub fn choices(&self) -> &Arc<Choices> {
        &self.choices
    }

    /// Every device of this machine.
    #[must_use]
    pub fn list() -> Vec<DeviceListing> {
        let mut all = vulkan::list();
        all.extend(webgpu::list());
        let host = Device::host();
        let info = host.info();
        all.push(DeviceListing {
            backend: info.backend,
            name: info.name.clone(),
            kind: "cpu".into(),
            driver: info.driver.clone(),
            memory_bytes: info.memory_bytes,
            unusable: None,
        });
        all
    }

    /// What the device says about itself.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        self.backend.info()
    }

    /// What programs for it are compiled for.
    #[must_use]
    pub fn target(&self) -> &Target {
        self.backend.target()
    }

    /// The device behind the handle.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn griffinfly_gpu::Device> {
        &self.backend
    }

    /// Whether both handles are the same device.
    #[must_use]
    pub fn is(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

/// A device, or a warning that it does not open.
fn opened(
    device: Result<Arc<dyn griffinfly_gpu::Device>, griffinfly_gpu::GpuError>,
) -> Option<Arc<dyn griffinfly_gpu::Device>> {
    match device {
        Ok(device) => Some(device),
        Err(reason) => {
            tracing::warn!(%reason, "the GPU does not open");
            None
        }
    }
}

/// The kind of an adapter in listings.
fn kind(kind: AdapterType) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(kind)) => kind,
        _ => "other".into(),
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}: {})", self.info().backend, self.info().name)
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "vulkan" => Ok(DeviceChoice::Vulkan),
            "webgpu" => Ok(DeviceChoice::WebGpu),
            "host" => Ok(DeviceChoice::Host),
            other => Err(format!("'{other}' is no device: choose auto, vulkan, webgpu or host")),
        }
    }
}

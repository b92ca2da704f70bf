//! The device as callers see it.

use super::adapter::{self, AdapterInfo};
use super::cache::PipelineCache;
use super::context::Context;
use super::executor::VulkanExecutor;
use super::instance::{Instance, ValidationLog};
use super::memory::{self, Home, RawBuffer, Request, VulkanBuffer};
use super::options::OpenOptions;
use super::transfer::Transfer;
use crate::adapter::Selector;
use crate::device::{Buffer, Device, DeviceInfo, Executor};
use crate::error::GpuError;
use crate::stepping::bound::check_range;
use griffinfly_compile::program::{ArenaId, Program};
use griffinfly_ir::target::Target;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All adapters, best first; each says whether and why it cannot be used.
///
/// # Errors
/// No Vulkan loader, or a loader without any driver.
pub fn enumerate() -> Result<Vec<AdapterInfo>, GpuError> {
    let instance = Instance::new(false)?;
    Ok(adapter::list(&instance)?.into_iter().map(|adapter| adapter.info).collect())
}

/// Opens an adapter with [`OpenOptions::from_env`].
///
/// # Errors
/// No loader, no driver, no adapter that matches and is usable, validation asked for but not installed.
pub fn open(selector: &Selector) -> Result<Arc<dyn Device>, GpuError> {
    Ok(open_with(selector, &OpenOptions::from_env())?)
}

/// Opens an adapter.
///
/// # Errors
/// As [`open`].
pub fn open_with(selector: &Selector, options: &OpenOptions) -> Result<Arc<VulkanDevice>, GpuError> {
    let instance = Instance::new(options.validation)?;
    let adapter = adapter::select(adapter::list(&instance)?, selector)?;
    let context = Arc::new(Context::new(instance, adapter, options.faults.clone())?);
    tracing::debug!(device = %context.info.name, driver = %context.info.driver, "opened a Vulkan device");
    let shared = Shared {
        transfer: Mutex::new(Transfer::new(&context)?),
        cache: PipelineCache::new(&context, options.cache_dir.as_deref())?,
        slots: options.slots.clamp(2, 4),
        fill: options.fill,
        context,
    };
    Ok(Arc::new(VulkanDevice(Arc::new(shared))))
}

/// What the device and its executors share.
pub(super) struct Shared {
    transfer: Mutex<Transfer>,
    pub(super) cache: PipelineCache,
    pub(super) slots: usize,
    pub(super) fill: u32,
    pub(super) context: Arc<Context>,
}

impl Shared {
    pub(super) fn transfer(&self) -> MutexGuard<'_, Transfer> {
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An opened Vulkan device.
pub struct VulkanDevice(Arc<Shared>);

impl VulkanDevice {
    /// Warnings and errors of the validation layer so far; empty without validation.
    #[must_use]
    pub fn validation_messages(&self) -> Vec<String> {
        self.validation_log().messages()
    }

    /// The log itself, which can be read after the device was dropped.
    #[must_use]
    pub fn validation_log(&self) -> ValidationLog {
        self.0.context.instance.log().clone()
    }

    fn range(&self, buffer: &dyn Buffer, offset: u64, length: usize) -> Result<(), GpuError> {
        self.0.context.alive("a transfer")?;
        memory::own(&self.0.context, buffer)?;
        check_range("a buffer", offset, length as u64, buffer.bytes())
    }
}

impl Device for VulkanDevice {
    fn info(&self) -> &DeviceInfo {
        &self.0.context.info
    }

    fn target(&self) -> &Target {
        &self.0.context.target
    }

    fn buffer(&self, bytes: u64) -> Result<Arc<dyn Buffer>, GpuError> {
        let raw = RawBuffer::new(&self.0.context, &Request { what: "a buffer", bytes, home: Home::Device })?;
        self.0.transfer().fill(&[&raw], 0)?;
        Ok(Arc::new(VulkanBuffer(raw)))
    }

    fn write(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.range(buffer.as_ref(), offset, bytes.len())?;
        self.0.transfer().upload(memory::own(&self.0.context, buffer.as_ref())?, offset, bytes)
    }

    fn read(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &mut [u8]) -> Result<(), GpuError> {
        self.range(buffer.as_ref(), offset, bytes.len())?;
        self.0.transfer().download(memory::own(&self.0.context, buffer.as_ref())?, offset, bytes)
    }

    fn instantiate(
        &self,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Box<dyn Executor>, GpuError> {
        Ok(Box::new(VulkanExecutor::new(&self.0, program, bound)?))
    }
}

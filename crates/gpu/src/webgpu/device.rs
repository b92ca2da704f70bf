//! The device as callers see it.

use super::buffer::{WebGpuBuffer, own};
use super::context::{Context, Ownership};
use super::executor::WebGpuExecutor;
use super::options::OpenOptions;
use super::{negotiate, open, transfer};
use crate::device::{Buffer, Device, DeviceInfo, Executor, Later, at_once, check_copy};
use crate::error::GpuError;
use crate::stepping::bound::check_range;
use griffinfly_compile::program::{ArenaId, Program};
use griffinfly_ir::target::Target;
use std::sync::Arc;

/// What the device and its executors share.
pub(super) struct Shared {
    pub(super) context: Arc<Context>,
    pub(super) slots: usize,
    pub(super) fill: u32,
    pub(super) parts: bool,
}

/// An opened WebGPU device.
pub struct WebGpuDevice(Shared);

impl WebGpuDevice {
    pub(super) fn new(context: Context, options: &OpenOptions) -> Self {
        WebGpuDevice(Shared {
            context: Arc::new(context),
            slots: options.slots.clamp(2, 4),
            fill: options.fill,
            parts: options.parts,
        })
    }

    /// An application's own device and queue. Steps run in order with whatever else is submitted to the queue. The application
    /// keeps its callbacks for errors and loss: a lost device shows here as failing reads.
    ///
    /// # Errors
    /// A device with less than the default limits of WebGPU.
    pub fn of(
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &OpenOptions,
    ) -> Result<Arc<WebGpuDevice>, GpuError> {
        if let Some(reason) = negotiate::unusable(&device.limits()) {
            return Err(GpuError::NoDevice { backend: "WebGPU", reason });
        }
        let facts = open::facts(&device, &queue);
        let context = Context::new((device, queue), facts, Ownership::Theirs);
        Ok(Arc::new(WebGpuDevice::new(context, options)))
    }

    /// The device and queue below, for an application that works with the same memory.
    #[must_use]
    pub fn below(&self) -> (&wgpu::Device, &wgpu::Queue) {
        (&self.0.context.device, &self.0.context.queue)
    }

    /// A buffer of the application on the same device, to bind as parameters or state of a program.
    ///
    /// # Errors
    /// A buffer without the uses storage, copy source and copy destination.
    pub fn import(&self, buffer: wgpu::Buffer) -> Result<Arc<dyn Buffer>, GpuError> {
        Ok(Arc::new(WebGpuBuffer::import(&self.0.context, buffer)?))
    }

    /// A buffer of this device, for the application's own commands.
    ///
    /// # Errors
    /// A buffer of another device.
    pub fn export(&self, buffer: &Arc<dyn Buffer>) -> Result<wgpu::Buffer, GpuError> {
        Ok(own(&self.0.context, buffer.as_ref())?.raw.clone())
    }

    fn range(&self, buffer: &dyn Buffer, offset: u64, length: usize) -> Result<(), GpuError> {
        self.0.context.alive("a transfer")?;
        own(&self.0.context, buffer)?;
        check_range("a buffer", offset, length as u64, buffer.bytes())
    }
}

impl Device for WebGpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.0.context.info
    }

    fn target(&self) -> &Target {
        &self.0.context.target
    }

    fn buffer(&self, bytes: u64) -> Result<Arc<dyn Buffer>, GpuError> {
        self.0.context.alive("a new buffer")?;
        Ok(Arc::new(WebGpuBuffer::new(&self.0.context, bytes)?))
    }

    fn write(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.range(buffer.as_ref(), offset, bytes.len())?;
        transfer::upload(&self.0.context, &own(&self.0.context, buffer.as_ref())?.raw, offset, bytes)
    }

    fn read(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &mut [u8]) -> Result<(), GpuError> {
        self.range(buffer.as_ref(), offset, bytes.len())?;
        transfer::download(&self.0.context, &own(&self.0.context, buffer.as_ref())?.raw, offset, bytes)
    }

    fn read_async(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: usize) -> Later<Vec<u8>> {
        let started = self.range(buffer.as_ref(), offset, bytes).and_then(|()| {
            let raw = &own(&self.0.context, buffer.as_ref())?.raw;
            transfer::download_async(&self.0.context, raw, offset, bytes)
        });
        started.unwrap_or_else(|error| at_once(Err(error)))
    }

    fn copy(
        &self,
        from: (&Arc<dyn Buffer>, u64),
        to: (&Arc<dyn Buffer>, u64),
        bytes: usize,
    ) -> Result<(), GpuError> {
        check_copy(from, to, bytes)?;
        let context = &self.0.context;
        context.alive("a copy")?;
        let source = (&own(context, from.0.as_ref())?.raw, from.1);
        let target = (&own(context, to.0.as_ref())?.raw, to.1);
        if bytes > 0 {
            transfer::copy(context, source, target, bytes as u64)?;
        }
        Ok(())
    }

    fn instantiate(
        &self,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Box<dyn Executor>, GpuError> {
        Ok(Box::new(WebGpuExecutor::new(&self.0, program, bound)?))
    }
}

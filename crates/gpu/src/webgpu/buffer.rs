//! Buffers: made here, or the application's.
//!
//! Sizes are rounded up to whole words, as copies of WebGPU demand; new memory is zero, which WebGPU guarantees.

use super::context::Context;
use crate::device::Buffer;
use crate::error::GpuError;
use std::any::Any;
use std::sync::Arc;
use wgpu::BufferUsages;

/// Uses of memory that kernels work on.
pub(super) const STORAGE: BufferUsages =
    BufferUsages::STORAGE.union(BufferUsages::COPY_SRC).union(BufferUsages::COPY_DST);
/// Uses of memory that outputs are read back through.
pub(super) const READBACK: BufferUsages = BufferUsages::MAP_READ.union(BufferUsages::COPY_DST);

/// Makes a buffer.
pub(super) fn create(
    context: &Context,
    what: &str,
    (bytes, usage): (u64, BufferUsages),
) -> Result<wgpu::Buffer, GpuError> {
    let size = bytes.max(4).div_ceil(4).saturating_mul(4);
    let limit = context.target.max_buffer_bytes;
    if size > limit {
        let device = context.info.name.clone();
        return Err(GpuError::Limit { what: what.into(), value: bytes, limit, device });
    }
    let descriptor = wgpu::BufferDescriptor { label: Some(what), size, usage, mapped_at_creation: false };
    context.attempt((what, size), || context.device.create_buffer(&descriptor))
}

/// A persistent buffer handed to the caller.
pub(super) struct WebGpuBuffer {
    pub(super) raw: wgpu::Buffer,
    bytes: u64,
    context: Arc<Context>,
}

impl WebGpuBuffer {
    pub(super) fn new(context: &Arc<Context>, bytes: u64) -> Result<Self, GpuError> {
        let raw = create(context, "a buffer", (bytes, STORAGE))?;
        Ok(WebGpuBuffer { raw, bytes, context: context.clone() })
    }

    /// The application's buffer as one of ours.
    pub(super) fn import(context: &Arc<Context>, raw: wgpu::Buffer) -> Result<Self, GpuError> {
        if !raw.usage().contains(STORAGE) {
            let detail = format!("its uses are {:?}, {STORAGE:?} are needed", raw.usage());
            return Err(GpuError::Usage { what: "a buffer of the application".into(), detail });
        }
        if !raw.size().is_multiple_of(4) {
            let detail = format!("its {} bytes are not a number of words", raw.size());
            return Err(GpuError::Usage { what: "a buffer of the application".into(), detail });
        }
        Ok(WebGpuBuffer { bytes: raw.size(), raw, context: context.clone() })
    }
}

impl Buffer for WebGpuBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Recognises a buffer of this device.
pub(super) fn own<'a>(context: &Arc<Context>, buffer: &'a dyn Buffer) -> Result<&'a WebGpuBuffer, GpuError> {
    match buffer.as_any().downcast_ref::<WebGpuBuffer>() {
        Some(own) if Arc::ptr_eq(&own.context, context) => Ok(own),
        _ => Err(GpuError::Usage {
            what: "a buffer".into(),
            detail: format!("it belongs to another device than {}", context.info.name),
        }),
    }
}

//! Copies between host memory and buffers through one reusable staging buffer, and other short commands run at once.
//!
//! Each run starts with a barrier behind all submitted work and is waited for before it returns, so its sources and
//! destinations may be released afterwards.

use super::command::{AFTER_COPY, BEFORE_COPY, CommandPool, Copy, barrier, copy};
use super::context::{Clock, Context, Submission};
use super::memory::{Home, RawBuffer, Request};
use crate::error::GpuError;
use ash::vk;
use std::sync::Arc;

/// The staging buffer has at least this size.
const MIN_STAGING_BYTES: u64 = 64 << 10;
/// Larger copies are made in pieces of this size.
const MAX_STAGING_BYTES: usize = 32 << 20;

/// A command buffer and a staging buffer, used by one caller at a time.
pub(super) struct Transfer {
    context: Arc<Context>,
    pool: CommandPool,
    command: vk::CommandBuffer,
    clock: Clock,
    submitted: u64,
    staging: Option<RawBuffer>,
}

impl Transfer {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, GpuError> {
        let mut pool = CommandPool::new(context, true)?;
        let command = pool.allocate()?;
        let clock = context.clock()?;
        Ok(Transfer { context: context.clone(), pool, command, clock, submitted: 0, staging: None })
    }

    /// Fills whole buffers with a word.
    pub(super) fn fill(&mut self, buffers: &[&RawBuffer], word: u32) -> Result<(), GpuError> {
        self.run_copies(|device, command| {
            for buffer in buffers {
                // SAFETY: recording; the buffer outlives the run.
                unsafe { device.cmd_fill_buffer(command, buffer.handle(), 0, vk::WHOLE_SIZE, word) };
            }
        })
    }

    /// Writes bytes at an offset. The caller checked the range.
    pub(super) fn upload(&mut self, buffer: &RawBuffer, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        let mut at = offset;
        for piece in bytes.chunks(MAX_STAGING_BYTES) {
            let size = piece.len() as u64;
            let mut staging = self.take_staging(size)?;
            staging.write_mapped(0, piece)?;
            let region = vk::BufferCopy { src_offset: 0, dst_offset: at, size };
            let plan = Copy { from: staging.handle(), to: buffer.handle(), region };
            self.run_copies(|device, command| copy(device, command, &plan))?;
            self.staging = Some(staging);
            at += size;
        }
        Ok(())
    }

    /// Reads bytes at an offset. The caller checked the range.
    pub(super) fn download(
        &mut self,
        buffer: &RawBuffer,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), GpuError> {
        let mut at = offset;
        for piece in bytes.chunks_mut(MAX_STAGING_BYTES) {
            let size = piece.len() as u64;
            let staging = self.take_staging(size)?;
            let region = vk::BufferCopy { src_offset: at, dst_offset: 0, size };
            let plan = Copy { from: buffer.handle(), to: staging.handle(), region };
            self.run_copies(|device, command| copy(device, command, &plan))?;
            staging.read_mapped(0, piece)?;
            self.staging = Some(staging);
            at += size;
        }
        Ok(())
    }

    fn run_copies(&mut self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<(), GpuError> {
        self.run(|device, command| {
            barrier(device, command, &BEFORE_COPY);
            record(device, command);
            barrier(device, command, &AFTER_COPY);
            Ok(())
        })
    }

    /// Records commands, submits them behind all earlier work and waits for them.
    pub(super) fn run(
        &mut self,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        self.context.alive("a transfer")?;
        self.pool.rerecord(self.command, vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT, record)?;
        let (commands, value) = ([self.command], self.submitted + 1);
        let (semaphore, at) = (self.clock.semaphore(), self.clock.at(value));
        self.context.submit(&Submission { commands: &commands, semaphore, value: at })?;
        self.submitted = value;
        self.clock.wait(value, u64::MAX).map(|_| ())
    }

    /// The staging buffer, or a larger one; the caller puts it back.
    fn take_staging(&mut self, bytes: u64) -> Result<RawBuffer, GpuError> {
        if let Some(staging) = self.staging.take().filter(|staging| staging.bytes() >= bytes) {
            return Ok(staging);
        }
        let bytes = bytes.next_power_of_two().max(MIN_STAGING_BYTES);
        let request = Request { what: "the staging buffer", bytes, home: Home::Readback };
        RawBuffer::new(&self.context, &request)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.clock.drain(self.submitted);
    }
}

//! Command pools, recording, and the barriers between levels, sections and copies.
//!
//! All barriers are global memory barriers: drivers gain nothing from naming buffers.

use super::context::{Context, Owned};
use crate::error::GpuError;
use ash::vk;
use std::sync::Arc;

/// A global memory barrier.
pub(super) struct Barrier {
    from: (vk::PipelineStageFlags, vk::AccessFlags),
    to: (vk::PipelineStageFlags, vk::AccessFlags),
}

const COMPUTE: vk::PipelineStageFlags = vk::PipelineStageFlags::COMPUTE_SHADER;
const COPY: vk::PipelineStageFlags = vk::PipelineStageFlags::TRANSFER;
const COMPUTE_OR_COPY: vk::PipelineStageFlags = stages(COMPUTE, COPY);
const SHADER_ANY: vk::AccessFlags = accesses(vk::AccessFlags::SHADER_READ, vk::AccessFlags::SHADER_WRITE);
const COPY_ANY: vk::AccessFlags = accesses(vk::AccessFlags::TRANSFER_READ, vk::AccessFlags::TRANSFER_WRITE);
const WRITES: vk::AccessFlags = accesses(vk::AccessFlags::SHADER_WRITE, vk::AccessFlags::TRANSFER_WRITE);

/// Between two levels.
pub(super) const LEVEL: Barrier =
    Barrier { from: (COMPUTE, vk::AccessFlags::SHADER_WRITE), to: (COMPUTE, SHADER_ANY) };
/// At the start of a section: behind all earlier steps and copies.
pub(super) const SECTION: Barrier = Barrier { from: (COMPUTE_OR_COPY, WRITES), to: (COMPUTE, SHADER_ANY) };
/// In front of copies: behind all earlier work.
pub(super) const BEFORE_COPY: Barrier = Barrier { from: (COMPUTE_OR_COPY, WRITES), to: (COPY, COPY_ANY) };
/// Behind copies: for kernels, further copies and the host.
pub(super) const AFTER_COPY: Barrier = Barrier {
    from: (COPY, vk::AccessFlags::TRANSFER_WRITE),
    to: (
        stages(COMPUTE_OR_COPY, vk::PipelineStageFlags::HOST),
        accesses(accesses(SHADER_ANY, COPY_ANY), vk::AccessFlags::HOST_READ),
    ),
};

const fn stages(a: vk::PipelineStageFlags, b: vk::PipelineStageFlags) -> vk::PipelineStageFlags {
    vk::PipelineStageFlags::from_raw(a.as_raw() | b.as_raw())
}

const fn accesses(a: vk::AccessFlags, b: vk::AccessFlags) -> vk::AccessFlags {
    vk::AccessFlags::from_raw(a.as_raw() | b.as_raw())
}

/// Records a barrier.
pub(super) fn barrier(device: &ash::Device, command: vk::CommandBuffer, barrier: &Barrier) {
    let ((from_stage, from), (to_stage, to)) = (barrier.from, barrier.to);
    let memory = [vk::MemoryBarrier::default().src_access_mask(from).dst_access_mask(to)];
    // SAFETY: the command buffer is being recorded.
    unsafe {
        device.cmd_pipeline_barrier(
            command,
            from_stage,
            to_stage,
            vk::DependencyFlags::empty(),
            &memory,
            &[],
            &[],
        );
    }
}

/// Copies a byte range from one buffer to another.
pub(super) struct Copy {
    pub(super) from: vk::Buffer,
    pub(super) to: vk::Buffer,
    pub(super) region: vk::BufferCopy,
}

/// Records a copy. Both buffers must outlive the execution.
pub(super) fn copy(device: &ash::Device, command: vk::CommandBuffer, copy: &Copy) {
    // SAFETY: the command buffer is being recorded; callers checked the ranges and keep the buffers.
    unsafe { device.cmd_copy_buffer(command, copy.from, copy.to, &[copy.region]) };
}

/// A pool of command buffers, which are freed with it.
pub(super) struct CommandPool(Owned<vk::CommandPool>);

impl CommandPool {
    /// `reset`: buffers are recorded more than once.
    pub(super) fn new(context: &Arc<Context>, reset: bool) -> Result<Self, GpuError> {
        let flags = if reset {
            vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER
        } else {
            vk::CommandPoolCreateFlags::empty()
        };
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(context.facts.family).flags(flags);
        // SAFETY: the family is the device's.
        let pool = unsafe { context.raw.create_command_pool(&info, None) }
            .map_err(|result| context.fail("vkCreateCommandPool", result))?;
        // SAFETY: called once by the owner, after the last use.
        Ok(CommandPool(Owned::new(context, pool, |device, pool| unsafe {
            device.destroy_command_pool(pool, None)
        })))
    }

    /// A new command buffer, recorded; `&mut` because pools are not synchronised.
    pub(super) fn record(
        &mut self,
        action: impl FnOnce(&ash::Device, vk::CommandBuffer) -> Result<(), GpuError>,
    ) -> Result<vk::CommandBuffer, GpuError> {
        let command = self.allocate()?;
        self.rerecord(command, vk::CommandBufferUsageFlags::empty(), action)?;
        Ok(command)
    }

    /// A new, empty command buffer.
    pub(super) fn allocate(&mut self) -> Result<vk::CommandBuffer, GpuError> {
        let context = &self.0.context;
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(self.0.get()).command_buffer_count(1);
        // SAFETY: the pool is alive and borrowed exclusively.
        let buffers = unsafe { context.raw.allocate_command_buffers(&info) }
            .map_err(|result| context.fail("vkAllocateCommandBuffers", result))?;
        let missing = || context.fail("vkAllocateCommandBuffers", vk::Result::ERROR_UNKNOWN);
        buffers.first().copied().ok_or_else(missing)
    }

    /// Records a command buffer of this pool that is not in use.
    pub(super) fn rerecord(
        &mut self,
        command: vk::CommandBuffer,
        usage: vk::CommandBufferUsageFlags,
        action: impl FnOnce(&ash::Device, vk::CommandBuffer) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let context = &self.0.context;
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: the buffer belongs to this pool, is not pending, and the pool is borrowed exclusively.
        unsafe { context.raw.begin_command_buffer(command, &info) }
            .map_err(|result| context.fail("vkBeginCommandBuffer", result))?;
        let recorded = action(&context.raw, command);
        // SAFETY: recording began above.
        unsafe { context.raw.end_command_buffer(command) }
            .map_err(|result| context.fail("vkEndCommandBuffer", result))?;
        recorded
    }
}

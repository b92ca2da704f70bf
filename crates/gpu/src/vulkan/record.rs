//! Command buffers of a program, recorded once: per slot one for each section, and one that copies outputs for the host once that is
//! wanted.
//!
//! A barrier precedes each level, so a level sees what the one before wrote. The first of a section also covers copies
//! and, since one queue runs everything, all earlier submissions.

use super::arenas::Arenas;
use super::bind::{Sets, not_checked};
use super::command::{AFTER_COPY, BEFORE_COPY, CommandPool, Copy, LEVEL, SECTION, barrier, copy};
use super::context::Context;
use super::memory::RawBuffer;
use super::pipeline::Pipeline;
use super::ring::Ring;
use crate::device::Sections;
use crate::error::GpuError;
use ash::vk;
use griffinfly_compile::program::{DispatchId, Program, Section, SectionKind, Work};
use std::sync::Arc;

/// What recording needs.
pub(super) struct Recorder<'a> {
    pub(super) program: &'a Program,
    pub(super) pipelines: &'a [Pipeline],
    pub(super) sets: &'a Sets,
    pub(super) arenas: &'a Arenas,
}

/// The recorded command buffers of all slots.
pub(super) struct Recorded {
    slots: Vec<SlotCommands>,
    /// Owns the buffers.
    pool: CommandPool,
}

struct SlotCommands {
    sections: Vec<(SectionKind, vk::CommandBuffer)>,
    finish: Option<vk::CommandBuffer>,
}

impl Recorded {
    pub(super) fn new(
        context: &Arc<Context>,
        recorder: &Recorder<'_>,
        count: usize,
    ) -> Result<Self, GpuError> {
        let mut pool = CommandPool::new(context, false)?;
        let mut slots = Vec::with_capacity(count);
        for slot in 0..count {
            let mut sections = Vec::with_capacity(recorder.program.sections.len());
            for section in &recorder.program.sections {
                let command =
                    pool.record(|device, command| recorder.section(device, command, (section, slot)))?;
                sections.push((section.kind, command));
            }
            slots.push(SlotCommands { sections, finish: None });
        }
        Ok(Recorded { slots, pool })
    }

    /// Whether the copy of a slot's outputs is recorded.
    pub(super) fn has_copies(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|commands| commands.finish.is_some())
    }

    /// Records the copy of a slot's outputs, whose readback buffer is there.
    pub(super) fn finish(
        &mut self,
        recorder: &Recorder<'_>,
        ring: &Ring,
        slot: usize,
    ) -> Result<(), GpuError> {
        if let (Some(readback), Some(commands)) = (ring.readback(slot), self.slots.get_mut(slot)) {
            let copies =
                self.pool.record(|device, command| recorder.finish(device, command, (ring, readback, slot)));
            commands.finish = Some(copies?);
        }
        Ok(())
    }

    /// The command buffers of a step in a slot, in place of what the list held: a step allocates nothing.
    pub(super) fn commands(&self, slot: usize, sections: Sections, list: &mut Vec<vk::CommandBuffer>) {
        list.clear();
        let Some(commands) = self.slots.get(slot) else { return };
        let chosen = commands.sections.iter().filter(|(kind, _)| sections.includes(*kind));
        let finish = commands.finish.filter(|_| sections.outputs);
        list.extend(chosen.map(|(_, command)| *command).chain(finish));
    }
}

impl Recorder<'_> {
    /// Records the levels of a section, each behind a barrier.
    pub(super) fn section(
        &self,
        device: &ash::Device,
        command: vk::CommandBuffer,
        (section, slot): (&Section, usize),
    ) -> Result<(), GpuError> {
        let mut bound = vk::Pipeline::null();
        let mut before = &SECTION;
        for level in section.levels.iter().filter(|level| !level.is_empty()) {
            barrier(device, command, before);
            before = &LEVEL;
            for dispatch in level {
                bound = self.dispatch(device, command, (*dispatch, slot, bound))?;
            }
        }
        Ok(())
    }

    /// Records one dispatch; returns the pipeline that is bound now, given the one bound before.
    pub(super) fn dispatch(
        &self,
        device: &ash::Device,
        command: vk::CommandBuffer,
        (id, slot, bound): (DispatchId, usize, vk::Pipeline),
    ) -> Result<vk::Pipeline, GpuError> {
        let dispatch = self.program.dispatches.get(id.index());
        let Some(Work::Kernel { kernel, parameters, groups }) = dispatch.map(|dispatch| &dispatch.work)
        else {
            return Err(not_checked("a dispatch without a kernel"));
        };
        let (Some(pipeline), Some(set)) =
            (self.pipelines.get(kernel.index()), self.sets.get(id.index(), slot))
        else {
            return Err(not_checked("a dispatch without a pipeline"));
        };
        let point = vk::PipelineBindPoint::COMPUTE;
        let words: Vec<u8> = parameters.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let [x, y, z] = *groups;
        // SAFETY: the command buffer is being recorded; `check` compared parameters, bindings and counts with kernel and
        // limits; pipeline, set and buffers are owned by the executor, which waits for its steps before it goes.
        unsafe {
            if bound != pipeline.handle() {
                device.cmd_bind_pipeline(command, point, pipeline.handle());
            }
            device.cmd_bind_descriptor_sets(command, point, pipeline.layout(), 0, &[set], &[]);
            if !words.is_empty() {
                device.cmd_push_constants(
                    command,
                    pipeline.layout(),
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    &words,
                );
            }
            device.cmd_dispatch(command, x, y, z);
        }
        Ok(pipeline.handle())
    }

    fn finish(
        &self,
        device: &ash::Device,
        command: vk::CommandBuffer,
        (ring, readback, slot): (&Ring, &RawBuffer, usize),
    ) -> Result<(), GpuError> {
        barrier(device, command, &BEFORE_COPY);
        for output in &ring.outputs.all {
            let from = self.arenas.handle(output.place.arena, slot);
            let from = from.ok_or_else(|| not_checked("an output without an arena"))?;
            let region =
                vk::BufferCopy { src_offset: output.place.offset, dst_offset: output.at, size: output.bytes };
            copy(device, command, &Copy { from, to: readback.handle(), region });
        }
        barrier(device, command, &AFTER_COPY);
        Ok(())
    }
}

//! The commands of a step. They are encoded anew for every submission: command buffers of WebGPU are used once.
//!
//! Encoding a dispatch takes about as long as a short dispatch runs. So hardware gets a step in parts, small ones first, and works on
//! one while the next is encoded. What changes parameters and state is one part with all that follows: a step that fails before
//! it has changed nothing.

use super::bind::{Arenas, not_checked};
use super::pipeline::Pipeline;
use crate::device::Sections;
use crate::error::GpuError;
use crate::stepping::externals::Outputs;
use griffinfly_compile::program::{DispatchId, Program, SectionKind, Work};
use wgpu::{CommandEncoderDescriptor, ComputePassDescriptor, SubmissionIndex};

/// Dispatches of the first part of a step, and how many times as many each further part has, up to the most.
const FIRST: usize = 16;
const GROWTH: usize = 2;
const MOST: usize = 256;

/// What encoding needs.
pub(super) struct Encoder<'a> {
    pub(super) program: &'a Program,
    pub(super) pipelines: &'a [Pipeline],
    pub(super) groups: &'a [wgpu::BindGroup],
    pub(super) arenas: &'a Arenas,
}

impl Encoder<'_> {
    /// The dispatches of sections, in order.
    pub(super) fn order(&self, sections: Sections) -> impl Iterator<Item = DispatchId> + '_ {
        let included = self.program.sections.iter().filter(move |section| sections.includes(section.kind));
        included.flat_map(|section| section.levels.iter().flatten().copied())
    }

    /// Encodes sections.
    pub(super) fn sections(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        sections: Sections,
    ) -> Result<(), GpuError> {
        let mut bound = None;
        self.order(sections).try_for_each(|id| self.dispatch(pass, id, &mut bound))
    }

    /// Encodes and submits a step, in parts if `eager`; the last submission.
    pub(super) fn submit(
        &self,
        (device, queue): (&wgpu::Device, &wgpu::Queue),
        (sections, eager): (Sections, bool),
        readback: Option<(&Outputs, &wgpu::Buffer)>,
    ) -> Result<SubmissionIndex, GpuError> {
        let encoder = || device.create_command_encoder(&CommandEncoderDescriptor::default());
        let mut order = self.order(sections);
        for count in if eager { self.parts(sections) } else { Vec::new() } {
            let mut encoder = encoder();
            self.dispatches(&mut encoder, order.by_ref().take(count))?;
            queue.submit([encoder.finish()]);
        }
        let mut encoder = encoder();
        self.dispatches(&mut encoder, order)?;
        if let Some(readback) = readback {
            self.copies(&mut encoder, readback)?;
        }
        Ok(queue.submit([encoder.finish()]))
    }

    /// Dispatches of each part that goes ahead of the last one.
    fn parts(&self, sections: Sections) -> Vec<usize> {
        let before = self
            .program
            .sections
            .iter()
            .filter(|section| sections.includes(section.kind) && section.kind != SectionKind::Update);
        parts(before.flat_map(|section| &section.levels).map(Vec::len).sum())
    }

    fn dispatches(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        mut ids: impl Iterator<Item = DispatchId>,
    ) -> Result<(), GpuError> {
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        let mut bound = None;
        ids.try_for_each(|id| self.dispatch(&mut pass, id, &mut bound))
    }

    /// Encodes one dispatch; `bound` is the kernel that is bound.
    pub(super) fn dispatch(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        id: DispatchId,
        bound: &mut Option<usize>,
    ) -> Result<(), GpuError> {
        let work = self.program.dispatches.get(id.index()).map(|dispatch| &dispatch.work);
        let Some(Work::Kernel { kernel, groups: [x, y, z], .. }) = work else {
            return Err(not_checked("a dispatch without a kernel"));
        };
        let (Some(pipeline), Some(group)) = (self.pipelines.get(kernel.index()), self.groups.get(id.index()))
        else {
            return Err(not_checked("a dispatch without a pipeline"));
        };
        if *bound != Some(kernel.index()) {
            pass.set_pipeline(&pipeline.raw);
            *bound = Some(kernel.index());
        }
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(*x, *y, *z);
        Ok(())
    }

    /// Encodes the copies of outputs to where the host reads them.
    pub(super) fn copies(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        (outputs, to): (&Outputs, &wgpu::Buffer),
    ) -> Result<(), GpuError> {
        for output in &outputs.all {
            let from = self.arenas.get(output.place.arena);
            let from = from.ok_or_else(|| not_checked("an output without an arena"))?;
            encoder.copy_buffer_to_buffer(from, output.place.offset, to, output.at, output.bytes);
        }
        Ok(())
    }
}

/// So many dispatches in parts, all but the last.
fn parts(mut dispatches: usize) -> Vec<usize> {
    let (mut parts, mut next) = (Vec::new(), FIRST);
    while dispatches > next {
        parts.push(next);
        dispatches -= next;
        next = (GROWTH * next).min(MOST);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_and_leave_something_for_the_last() {
        assert_eq!(parts(0), [0_usize; 0]);
        assert_eq!(parts(16), [0_usize; 0]);
        assert_eq!(parts(17), [16]);
        assert_eq!(parts(1190), [16, 32, 64, 128, 256, 256, 256]);
    }
}

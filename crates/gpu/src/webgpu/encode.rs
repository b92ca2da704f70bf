//! The commands of a step. They are encoded anew for every submission: command buffers of WebGPU are used once.

use super::bind::{Arenas, not_checked};
use super::pipeline::Pipeline;
use crate::common::externals::Outputs;
use crate::device::Sections;
use crate::error::GpuError;
use griffinfly_compile::program::{DispatchId, Program, Work};

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

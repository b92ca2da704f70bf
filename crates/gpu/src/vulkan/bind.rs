//! Descriptor sets: one per dispatch, and one per slot where the dispatch reads what the host writes per step.

use super::arenas::Arenas;
use super::context::{Context, Owned};
use super::pipeline::Pipeline;
use crate::error::GpuError;
use ash::vk;
use griffinfly_compile::program::{Dispatch, Program, Work};
use std::sync::Arc;

/// All descriptor sets of a program; freed with their pool.
pub(super) struct Sets {
    _pool: Option<Owned<vk::DescriptorPool>>,
    /// By dispatch, then by slot (one entry where all slots share it).
    sets: Vec<Vec<vk::DescriptorSet>>,
}

impl Sets {
    pub(super) fn new(
        context: &Arc<Context>,
        program: &Program,
        parts: (&[Pipeline], &Arenas),
        slots: usize,
    ) -> Result<Self, GpuError> {
        let (pipelines, arenas) = parts;
        let copies = |dispatch: &Dispatch| {
            if dispatch.bindings.iter().any(|binding| arenas.is_ring(binding.arena)) { slots } else { 1 }
        };
        let count: usize = program.dispatches.iter().map(copies).sum();
        let descriptors: usize = program.dispatches.iter().map(|d| copies(d) * d.bindings.len()).sum();
        if count == 0 {
            return Ok(Sets { _pool: None, sets: vec![] });
        }
        let pool = pool(context, count, descriptors)?;
        let mut sets = Vec::with_capacity(program.dispatches.len());
        for dispatch in &program.dispatches {
            let layout = layout_of(dispatch, pipelines)?;
            let layouts = vec![layout; copies(dispatch)];
            let info =
                vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool.get()).set_layouts(&layouts);
            // SAFETY: the pool was sized for all sets and is used by this thread only.
            let made = unsafe { context.raw.allocate_descriptor_sets(&info) }
                .map_err(|result| context.fail("vkAllocateDescriptorSets", result))?;
            for (slot, set) in made.iter().enumerate() {
                write(context, *set, dispatch, |binding| arenas.handle(binding, slot))?;
            }
            sets.push(made);
        }
        Ok(Sets { _pool: Some(pool), sets })
    }

    /// The set of a dispatch in a slot.
    pub(super) fn get(&self, dispatch: usize, slot: usize) -> Option<vk::DescriptorSet> {
        let sets = self.sets.get(dispatch)?;
        sets.get(slot).or_else(|| sets.first()).copied()
    }
}

fn pool(
    context: &Arc<Context>,
    sets: usize,
    descriptors: usize,
) -> Result<Owned<vk::DescriptorPool>, GpuError> {
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let sizes = [vk::DescriptorPoolSize::default()
        .ty(vk::DescriptorType::STORAGE_BUFFER)
        .descriptor_count(count(descriptors).max(1))];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(count(sets)).pool_sizes(&sizes);
    // SAFETY: sizes are positive.
    let pool = unsafe { context.raw.create_descriptor_pool(&info, None) }
        .map_err(|result| context.fail("vkCreateDescriptorPool", result))?;
    // SAFETY: called once by the owner, after the last use.
    Ok(Owned::new(context, pool, |device, pool| unsafe { device.destroy_descriptor_pool(pool, None) }))
}

fn layout_of(dispatch: &Dispatch, pipelines: &[Pipeline]) -> Result<vk::DescriptorSetLayout, GpuError> {
    let pipeline = match &dispatch.work {
        Work::Kernel { kernel, .. } => pipelines.get(kernel.index()),
        Work::Loop => None,
    };
    pipeline.map(Pipeline::set_layout).ok_or_else(|| not_checked("a dispatch without a kernel"))
}

fn write(
    context: &Context,
    set: vk::DescriptorSet,
    dispatch: &Dispatch,
    handle: impl Fn(griffinfly_compile::program::ArenaId) -> Option<vk::Buffer>,
) -> Result<(), GpuError> {
    let mut ranges = Vec::with_capacity(dispatch.bindings.len());
    for binding in &dispatch.bindings {
        let buffer = handle(binding.arena).ok_or_else(|| not_checked("a binding without an arena"))?;
        ranges.push([vk::DescriptorBufferInfo { buffer, offset: binding.offset, range: binding.bytes }]);
    }
    let writes: Vec<_> = (0_u32..)
        .zip(&ranges)
        .map(|(index, range)| {
            vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(index)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(range)
        })
        .collect();
    // SAFETY: the set is not in use; ranges and alignment were checked against the arenas.
    unsafe { context.raw.update_descriptor_sets(&writes, &[]) };
    Ok(())
}

/// A fault that `check` excludes, kept an error so that nothing panics.
pub(super) fn not_checked(detail: &str) -> GpuError {
    GpuError::Usage { what: "the program".into(), detail: detail.into() }
}

//! One compute pipeline per kernel, made on several threads.
//!
//! Layout: storage buffers at group 0, binding i; parameter words as push constants. The entry point is `main`.

use super::cache::PipelineCache;
use super::context::{Context, Owned};
use crate::error::GpuError;
use ash::vk;
use griffinfly_compile::program::Kernel;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A pipeline and its layouts.
pub(super) struct Pipeline {
    // Field order is drop order.
    pipeline: Owned<vk::Pipeline>,
    layout: Owned<vk::PipelineLayout>,
    set_layout: Owned<vk::DescriptorSetLayout>,
}

impl Pipeline {
    pub(super) fn handle(&self) -> vk::Pipeline {
        self.pipeline.get()
    }

    pub(super) fn layout(&self) -> vk::PipelineLayout {
        self.layout.get()
    }

    pub(super) fn set_layout(&self) -> vk::DescriptorSetLayout {
        self.set_layout.get()
    }

    fn new(
        context: &Arc<Context>,
        cache: &PipelineCache,
        (kernel, flags): (&Kernel, vk::PipelineCreateFlags),
    ) -> Result<Self, GpuError> {
        context.alive("vkCreateComputePipelines")?;
        let set_layout = set_layout(context, kernel)?;
        let layout = layout(context, kernel, set_layout.get())?;
        let info = vk::ShaderModuleCreateInfo::default().code(&kernel.spirv);
        // SAFETY: the code has the SPIR-V magic word; it was validated when it was generated.
        let module = unsafe { context.raw.create_shader_module(&info, None) }
            .map_err(|result| refused(context, kernel, "vkCreateShaderModule", result))?;
        // SAFETY: called once by the owner; a module may go once its pipeline is made.
        let destroy = |device: &ash::Device, module| unsafe { device.destroy_shader_module(module, None) };
        let module = Owned::new(context, module, destroy);
        context
            .faults
            .pipeline()
            .map_err(|result| refused(context, kernel, "vkCreateComputePipelines", result))?;
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module.get())
            .name(c"main");
        let info = [vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(layout.get())];
        // SAFETY: module, layout and cache are alive.
        let made = unsafe { context.raw.create_compute_pipelines(cache.handle(), &info, None) };
        let made =
            made.map_err(|(_, result)| refused(context, kernel, "vkCreateComputePipelines", result))?;
        let unknown = || refused(context, kernel, "vkCreateComputePipelines", vk::Result::ERROR_UNKNOWN);
        let handle = made.first().copied().ok_or_else(unknown)?;
        // SAFETY: called once by the owner, after the last use.
        let destroy = |device: &ash::Device, handle| unsafe { device.destroy_pipeline(handle, None) };
        Ok(Pipeline { pipeline: Owned::new(context, handle, destroy), layout, set_layout })
    }
}

/// Makes the pipelines of all kernels, in their order, with these flags.
pub(super) fn create_all(
    context: &Arc<Context>,
    cache: &PipelineCache,
    kernels: &[Kernel],
    flags: vk::PipelineCreateFlags,
) -> Result<Vec<Pipeline>, GpuError> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(kernels.len()));
    let work = || {
        while let Some((index, kernel)) = take(&next, kernels) {
            let result = Pipeline::new(context, cache, (kernel, flags));
            if result.is_err() {
                next.store(kernels.len(), Ordering::Relaxed);
            }
            made.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(kernels.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without a further thread, this one does the work.
            let _spawned = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(index, _)| *index);
    made.into_iter().map(|(_, result)| result).collect()
}

fn take<'a>(next: &AtomicUsize, kernels: &'a [Kernel]) -> Option<(usize, &'a Kernel)> {
    // Stays far from overflow: each thread adds at most one past the end.
    let index = next.fetch_add(1, Ordering::Relaxed);
    kernels.get(index).map(|kernel| (index, kernel))
}

fn refused(context: &Context, kernel: &Kernel, call: &'static str, result: vk::Result) -> GpuError {
    match context.fail(call, result) {
        GpuError::Driver { call, result } => {
            GpuError::Driver { call, result: format!("{result} (kernel {})", kernel.name) }
        }
        other => other,
    }
}

fn set_layout(context: &Arc<Context>, kernel: &Kernel) -> Result<Owned<vk::DescriptorSetLayout>, GpuError> {
    let bindings: Vec<_> = (0_u32..)
        .zip(&kernel.bindings)
        .map(|(binding, _)| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the number of bindings was checked against the limit.
    let handle = unsafe { context.raw.create_descriptor_set_layout(&info, None) }
        .map_err(|result| refused(context, kernel, "vkCreateDescriptorSetLayout", result))?;
    // SAFETY: called once by the owner, after the last use.
    let destroy =
        |device: &ash::Device, handle| unsafe { device.destroy_descriptor_set_layout(handle, None) };
    Ok(Owned::new(context, handle, destroy))
}

fn layout(
    context: &Arc<Context>,
    kernel: &Kernel,
    set_layout: vk::DescriptorSetLayout,
) -> Result<Owned<vk::PipelineLayout>, GpuError> {
    let sets = [set_layout];
    let words = vk::PushConstantRange::default()
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
        .size(kernel.parameter_words.saturating_mul(4));
    let ranges = if words.size == 0 { vec![] } else { vec![words] };
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&ranges);
    // SAFETY: the set layout is alive; the size was checked against the limit.
    let handle = unsafe { context.raw.create_pipeline_layout(&info, None) }
        .map_err(|result| refused(context, kernel, "vkCreatePipelineLayout", result))?;
    // SAFETY: called once by the owner, after the last use.
    let destroy = |device: &ash::Device, handle| unsafe { device.destroy_pipeline_layout(handle, None) };
    Ok(Owned::new(context, handle, destroy))
}

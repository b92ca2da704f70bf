//! Kernels as pipelines, made on several threads where there are any.
//!
//! The code is trusted: our verifier proved that indices stay inside, that loops end and that nothing is divided by zero, so the
//! translation puts in no checks. In a browser it does all the same.

use super::context::Context;
use crate::error::GpuError;
use griffinfly_compile::program::{BindingAccess, Kernel};
use wgpu::{BindingType, BufferBindingType, ShaderStages};

/// Name of the entry point of every kernel.
const ENTRY: &str = griffinfly_compile::kernel::print::ENTRY;

/// A kernel ready to be dispatched.
pub(super) struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
}

/// The pipelines of all kernels, in their order; of errors the first.
pub(super) fn create_all(context: &Context, kernels: &[Kernel]) -> Result<Vec<Pipeline>, GpuError> {
    #[cfg(not(target_arch = "wasm32"))]
    {
        use rayon::prelude::*;
        let made: Vec<_> = kernels.par_iter().map(|kernel| create(context, kernel)).collect();
        made.into_iter().collect()
    }
    #[cfg(target_arch = "wasm32")]
    kernels.iter().map(|kernel| create(context, kernel)).collect()
}

fn create(context: &Context, kernel: &Kernel) -> Result<Pipeline, GpuError> {
    let entries: Vec<_> = (0_u32..).zip(types(kernel)).map(|(binding, ty)| entry(binding, ty)).collect();
    let device = &context.device;
    let label = Some(kernel.name.as_str());
    context.attempt((&format!("kernel {}", kernel.name), 0), || {
        let layout =
            device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let whole = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            ..wgpu::PipelineLayoutDescriptor::default()
        });
        let source = wgpu::ShaderSource::Wgsl(kernel.wgsl.as_str().into());
        let descriptor = wgpu::ShaderModuleDescriptor { label, source };
        // SAFETY: the kernel comes from our compiler, whose verifier proved indices, loops and divisors; `check` compared
        // bindings and counts with it.
        let module = unsafe {
            device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
        };
        let raw = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&whole),
            module: &module,
            entry_point: Some(ENTRY),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: None,
        });
        Pipeline { raw, layout }
    })
}

/// Types of the bindings: storage, then the parameters.
fn types(kernel: &Kernel) -> impl Iterator<Item = BufferBindingType> {
    let storage =
        |access: &BindingAccess| BufferBindingType::Storage { read_only: *access == BindingAccess::Read };
    let parameters = (kernel.parameter_words > 0).then_some(BufferBindingType::Uniform);
    kernel.bindings.iter().map(storage).chain(parameters)
}

fn entry(binding: u32, ty: BufferBindingType) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}

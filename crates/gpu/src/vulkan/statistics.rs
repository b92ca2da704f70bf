//! What the driver says about compiled kernels: registers, spills and whatever else it counts.
//!
//! Pipelines are made once more with a flag that lets the driver keep its statistics, so that those which run are as ever.
//! Source: `VK_KHR_pipeline_executable_properties`.

use super::context::Context;
use super::device::Shared;
use super::pipeline::{self, Pipeline};
use crate::device::KernelCost;
use crate::error::GpuError;
use ash::khr::pipeline_executable_properties as extension;
use ash::vk;
use griffinfly_compile::program::Kernel;
use std::ffi::CStr;
use std::sync::Arc;

/// The statistics of kernels, in their order; none where the driver does not tell.
pub(super) fn of_kernels(shared: &Arc<Shared>, kernels: &[Kernel]) -> Result<Vec<KernelCost>, GpuError> {
    let context = &shared.context;
    if !context.facts.statistics {
        return Ok(Vec::new());
    }
    let flags = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR;
    let pipelines = pipeline::create_all(context, &shared.cache, kernels, flags)?;
    let calls = extension::Device::new(&context.instance.raw, &context.raw);
    pipelines.iter().map(|pipeline| of(context, &calls, pipeline)).collect()
}

/// All statistics of all parts of a pipeline.
fn of(context: &Context, calls: &extension::Device, pipeline: &Pipeline) -> Result<KernelCost, GpuError> {
    let info = vk::PipelineInfoKHR::default().pipeline(pipeline.handle());
    // SAFETY: the extension and its feature are enabled, the pipeline is alive.
    let parts = unsafe { calls.get_pipeline_executable_properties(&info) }
        .map_err(|result| context.fail("vkGetPipelineExecutablePropertiesKHR", result))?;
    let mut cost = KernelCost::default();
    for (index, _) in (0_u32..).zip(&parts) {
        let info =
            vk::PipelineExecutableInfoKHR::default().pipeline(pipeline.handle()).executable_index(index);
        // SAFETY: as above; the pipeline was made with the flag, the index is below the number of parts.
        let statistics = unsafe { calls.get_pipeline_executable_statistics(&info) }
            .map_err(|result| context.fail("vkGetPipelineExecutableStatisticsKHR", result))?;
        cost.statistics.extend(statistics.iter().map(|s| (text(&s.name), number(s))));
    }
    Ok(cost)
}

/// A name of a fixed number of characters; bytes that are no text are replaced.
fn text(name: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = name.iter().map(|c| c.to_ne_bytes()[0]).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(|_| String::new(), |s| s.to_string_lossy().into_owned())
}

fn number(statistic: &vk::PipelineExecutableStatisticKHR<'_>) -> f64 {
    type Format = vk::PipelineExecutableStatisticFormatKHR;
    let value = statistic.value;
    // SAFETY: the format says which field the driver wrote.
    unsafe {
        match statistic.format {
            Format::BOOL32 => f64::from(value.b32),
            Format::INT64 => value.i64 as f64,
            Format::UINT64 => value.u64 as f64,
            _ => value.f64,
        }
    }
}

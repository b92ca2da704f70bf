//! Steps with timestamps: one behind every dispatch, or one before and one after several steps.
//!
//! Where every dispatch has one, dispatches run one after the other, also within a level, so each time is that of the dispatch alone; the total is from
//! the first to the last timestamp. The step is real: it changes parameters and state as any other, but has no ticket.

use super::command::{LEVEL, SECTION, barrier};
use super::context::{Context, Owned};
use super::executor::VulkanExecutor;
use super::record::Recorder;
use crate::device::{Sections, StepTiming};
use crate::error::GpuError;
use ash::vk;
use griffinfly_compile::program::DispatchId;
use std::sync::Arc;

/// Runs and times a step.
pub(super) fn run(executor: &mut VulkanExecutor, sections: Sections) -> Result<StepTiming, GpuError> {
    let (context, slot) = begin(executor)?;
    let order: Vec<DispatchId> = executor
        .program
        .sections
        .iter()
        .filter(|section| sections.includes(section.kind))
        .flat_map(|section| section.levels.iter().flatten().copied())
        .collect();
    let pool = query_pool(&context, order.len() + 1)?;
    let recorder = executor.recorder();
    executor
        .shared
        .transfer()
        .run(|device, command| record(&recorder, (device, command), (&order, slot, pool.get())))?;
    let ticks = results(&context, pool.get(), order.len() + 1)?;
    Ok(timing(&order, &ticks, &context))
}

/// Runs a step several times and gives the nanoseconds of one.
pub(super) fn repeat(executor: &mut VulkanExecutor, sections: Sections, times: u32) -> Result<f64, GpuError> {
    let (context, slot) = begin(executor)?;
    let pool = query_pool(&context, 2)?;
    let recorder = executor.recorder();
    let included = executor.program.sections.iter().filter(|section| sections.includes(section.kind));
    executor.shared.transfer().run(|device, command| {
        // SAFETY: the command buffer is being recorded.
        unsafe { device.cmd_reset_query_pool(command, pool.get(), 0, 2) };
        barrier(device, command, &SECTION);
        stamp((device, command), pool.get(), 0);
        for _ in 0..times {
            included.clone().try_for_each(|section| recorder.section(device, command, (section, slot)))?;
        }
        stamp((device, command), pool.get(), 1);
        Ok(())
    })?;
    let ticks = results(&context, pool.get(), 2)?;
    Ok(timing(&[], &ticks, &context).total_ns / f64::from(times))
}

/// The slot of a step that is timed, on a device that can.
fn begin(executor: &mut VulkanExecutor) -> Result<(Arc<Context>, usize), GpuError> {
    let context = executor.shared.context.clone();
    context.alive("profile")?;
    if context.facts.timestamp_bits == 0 {
        let detail = format!("{} has no timestamps", context.info.name);
        return Err(GpuError::Usage { what: "profiling".into(), detail });
    }
    let slot = executor.next_slot()?;
    Ok((context, slot))
}

/// Writes a timestamp behind all commands so far.
fn stamp((device, command): (&ash::Device, vk::CommandBuffer), pool: vk::QueryPool, query: u32) {
    // SAFETY: the command buffer is being recorded; callers made the pool with so many queries.
    unsafe { device.cmd_write_timestamp(command, vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, query) };
}

fn record(
    recorder: &Recorder<'_>,
    (device, command): (&ash::Device, vk::CommandBuffer),
    (order, slot, pool): (&[DispatchId], usize, vk::QueryPool),
) -> Result<(), GpuError> {
    let stamp = |query| stamp((device, command), pool, query);
    // SAFETY: the command buffer is being recorded; the pool has a query per dispatch and one more.
    unsafe { device.cmd_reset_query_pool(command, pool, 0, count(order.len() + 1)) };
    barrier(device, command, &SECTION);
    stamp(0);
    let mut bound = vk::Pipeline::null();
    for (query, dispatch) in (1_u32..).zip(order) {
        bound = recorder.dispatch(device, command, (*dispatch, slot, bound))?;
        stamp(query);
        barrier(device, command, &LEVEL);
    }
    Ok(())
}

fn query_pool(context: &Arc<Context>, queries: usize) -> Result<Owned<vk::QueryPool>, GpuError> {
    let info =
        vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(count(queries));
    // SAFETY: the queue has timestamps.
    let pool = unsafe { context.raw.create_query_pool(&info, None) }
        .map_err(|result| context.fail("vkCreateQueryPool", result))?;
    // SAFETY: called once by the owner, after the last use.
    Ok(Owned::new(context, pool, |device, pool| unsafe { device.destroy_query_pool(pool, None) }))
}

fn results(context: &Context, pool: vk::QueryPool, queries: usize) -> Result<Vec<u64>, GpuError> {
    let mut ticks = vec![0_u64; queries];
    let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
    // SAFETY: all queries of the pool were written by a run that is done.
    unsafe { context.raw.get_query_pool_results(pool, 0, &mut ticks, flags) }
        .map_err(|result| context.fail("vkGetQueryPoolResults", result))?;
    Ok(ticks)
}

fn timing(order: &[DispatchId], ticks: &[u64], context: &Context) -> StepTiming {
    let bits = context.facts.timestamp_bits;
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    let period = f64::from(context.facts.properties.limits.timestamp_period);
    let nanoseconds = |from: u64, to: u64| (to.wrapping_sub(from) & mask) as f64 * period;
    let dispatch_ns =
        order.iter().zip(ticks.windows(2)).map(|(id, pair)| (id.0, nanoseconds(pair[0], pair[1])));
    let total_ns = match (ticks.first(), ticks.last()) {
        (Some(first), Some(last)) => nanoseconds(*first, *last),
        _ => 0.0,
    };
    StepTiming { dispatch_ns: dispatch_ns.collect(), total_ns }
}

fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

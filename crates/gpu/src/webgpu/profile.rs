//! Steps with timestamps: a pass of its own for every dispatch, or one for several steps.
//!
//! Source: W3C WebGPU, section 20.4 (timestamp queries). The step is real: it changes parameters and state as any other, but has
//! no ticket. Browsers round timestamps to 100 us unless asked not to.

use super::executor::WebGpuExecutor;
use super::transfer;
use crate::device::{Sections, StepTiming};
use crate::error::GpuError;
use griffinfly_compile::program::DispatchId;
use wgpu::BufferUsages;

/// Passes that one set of queries serves.
const PASSES: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

/// Runs and times a step.
pub(super) fn run(executor: &mut WebGpuExecutor, sections: Sections) -> Result<StepTiming, GpuError> {
    begin(executor)?;
    let order: Vec<DispatchId> = executor.encoder().order(sections).collect();
    let mut ticks = Vec::with_capacity(2 * order.len());
    for part in order.chunks(PASSES) {
        ticks.extend(timed(executor, part.len(), |number, pass| {
            executor.encoder().dispatch(pass, part[number], &mut None)
        })?);
    }
    let period = f64::from(executor.context.queue.get_timestamp_period());
    let nanoseconds = |from: u64, to: u64| to.saturating_sub(from) as f64 * period;
    let times = order.iter().zip(ticks.chunks_exact(2));
    let dispatch_ns = times.map(|(id, pair)| (id.0, nanoseconds(pair[0], pair[1]))).collect();
    let total_ns = match (ticks.first(), ticks.last()) {
        (Some(first), Some(last)) => nanoseconds(*first, *last),
        _ => 0.0,
    };
    Ok(StepTiming { dispatch_ns, total_ns })
}

/// Runs a step several times and gives the nanoseconds of one.
pub(super) fn repeat(executor: &mut WebGpuExecutor, sections: Sections, times: u32) -> Result<f64, GpuError> {
    begin(executor)?;
    let ticks = timed(executor, 1, |_, pass| {
        (0..times).try_for_each(|_| executor.encoder().sections(pass, sections))
    })?;
    let period = f64::from(executor.context.queue.get_timestamp_period());
    let ticks = ticks.last().copied().unwrap_or(0).saturating_sub(ticks.first().copied().unwrap_or(0));
    Ok(ticks as f64 * period / f64::from(times))
}

/// A step that is timed, on a device that can.
fn begin(executor: &mut WebGpuExecutor) -> Result<(), GpuError> {
    executor.context.alive("profile")?;
    if !executor.context.has_timestamps {
        let detail = format!("{} has no timestamps", executor.context.info.name);
        return Err(GpuError::Usage { what: "profiling".into(), detail });
    }
    executor.bring_inputs()
}

/// Ticks at the beginning and the end of each of so many passes.
fn timed(
    executor: &WebGpuExecutor,
    passes: usize,
    encode: impl Fn(usize, &mut wgpu::ComputePass<'_>) -> Result<(), GpuError>,
) -> Result<Vec<u64>, GpuError> {
    let context = &executor.context;
    let count = u32::try_from(2 * passes).unwrap_or(u32::MAX);
    if count == 0 {
        return Ok(Vec::new());
    }
    let bytes = u64::from(count) * 8;
    let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
    let resolved = super::buffer::create(context, "timestamps", (bytes, usage))?;
    context.attempt(("a profiled step", 0), || {
        let queries = context.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let mut encoder = context.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for pass in 0..passes {
            let first = 2 * pass as u32;
            let mut begun = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: &queries,
                    beginning_of_pass_write_index: Some(first),
                    end_of_pass_write_index: Some(first + 1),
                }),
            });
            encode(pass, &mut begun)?;
        }
        encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
        context.queue.submit([encoder.finish()]);
        Ok(())
    })??;
    let mut bytes = vec![0_u8; 8 * count as usize];
    transfer::download(context, &resolved, 0, &mut bytes)?;
    let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
    Ok(words.map(u64::from_ne_bytes).collect())
}

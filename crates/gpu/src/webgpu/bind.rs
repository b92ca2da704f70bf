//! The memory of an instantiated program and what each dispatch binds of it.
//!
//! Parameters, mirrors and state are the caller's; everything else is made here. Inputs need no copy per step in flight: WebGPU
//! orders their writes with the steps. The parameter words of all dispatches lie in one uniform buffer.

use super::buffer::{self, STORAGE, create};
use super::context::Context;
use super::negotiate::PARAMETER_BYTES;
use super::pipeline::Pipeline;
use super::transfer;
use crate::device::Buffer;
use crate::error::GpuError;
use crate::stepping::bound::{self, Origin, arena_name};
use griffinfly_compile::program::{ArenaId, Dispatch, Program, Work};
use std::num::NonZeroU64;
use std::sync::Arc;
use wgpu::BufferUsages;

/// The buffers of all arenas.
pub(super) struct Arenas {
    buffers: Vec<wgpu::Buffer>,
    /// What the caller bound lives as long as the program.
    _bound: Vec<Arc<dyn Buffer>>,
}

impl Arenas {
    pub(super) fn new(
        context: &Arc<Context>,
        program: &Program,
        given: &[(ArenaId, Arc<dyn Buffer>)],
        fill: u32,
    ) -> Result<Self, GpuError> {
        let origins = bound::origins(program, given)?;
        let mut arenas = Arenas { buffers: Vec::new(), _bound: Vec::new() };
        for (arena, origin) in program.arenas.iter().zip(&origins) {
            let raw = match origin {
                Origin::Bound(buffer) => {
                    let raw = buffer::own(context, buffer.as_ref())?.raw.clone();
                    bound::check_size(arena, buffer.as_ref())?;
                    arenas._bound.push((*buffer).clone());
                    raw
                }
                Origin::Written | Origin::Made => {
                    let raw = create(context, &arena_name(arena), (arena.bytes, STORAGE))?;
                    if fill != 0 {
                        let words = vec![fill; arena.bytes as usize / 4];
                        transfer::upload(context, &raw, 0, &bytes_of(&words))?;
                    }
                    raw
                }
            };
            arenas.buffers.push(raw);
        }
        for constant in &program.constants {
            let place = constant.place;
            let is_made = origins.get(place.arena.index()).is_some_and(|o| !matches!(o, Origin::Bound(_)));
            if let Some(buffer) = arenas.get(place.arena).filter(|_| is_made) {
                transfer::upload(context, buffer, place.offset, &bytes_of(&constant.words))?;
            }
        }
        Ok(arenas)
    }

    /// The buffer of an arena.
    pub(super) fn get(&self, arena: ArenaId) -> Option<&wgpu::Buffer> {
        self.buffers.get(arena.index())
    }
}

/// What each dispatch binds, by its number.
pub(super) fn groups(
    context: &Arc<Context>,
    program: &Program,
    (pipelines, arenas): (&[Pipeline], &Arenas),
) -> Result<Vec<wgpu::BindGroup>, GpuError> {
    let parameters = parameters(context, program)?;
    let group = |(number, dispatch): (usize, &Dispatch)| {
        let Work::Kernel { kernel, parameters: words, .. } = &dispatch.work else {
            return Err(not_checked("a dispatch without a kernel"));
        };
        let pipeline = pipelines.get(kernel.index()).ok_or_else(|| not_checked("a kernel out of range"))?;
        let mut entries = Vec::with_capacity(dispatch.bindings.len() + 1);
        for binding in &dispatch.bindings {
            let buffer = arenas.get(binding.arena).ok_or_else(|| not_checked("an arena out of range"))?;
            entries.push((buffer, binding.offset, binding.bytes));
        }
        if !words.is_empty() {
            entries.push((&parameters, number as u64 * u64::from(PARAMETER_BYTES), words.len() as u64 * 4));
        }
        let entries: Vec<_> = (0_u32..).zip(entries).map(|(binding, range)| entry(binding, range)).collect();
        let descriptor = wgpu::BindGroupDescriptor {
            label: Some(&dispatch.instance),
            layout: &pipeline.layout,
            entries: &entries,
        };
        context.attempt((&dispatch.instance, 0), || context.device.create_bind_group(&descriptor))
    };
    program.dispatches.iter().enumerate().map(group).collect()
}

fn entry(binding: u32, (buffer, offset, bytes): (&wgpu::Buffer, u64, u64)) -> wgpu::BindGroupEntry<'_> {
    let size = NonZeroU64::new(bytes);
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size });
    wgpu::BindGroupEntry { binding, resource }
}

/// The parameter words of all dispatches, each at its number.
fn parameters(context: &Arc<Context>, program: &Program) -> Result<wgpu::Buffer, GpuError> {
    let stride = PARAMETER_BYTES as usize / 4;
    let mut words = vec![0_u32; stride * program.dispatches.len().max(1)];
    for (dispatch, place) in program.dispatches.iter().zip(words.chunks_mut(stride)) {
        if let Work::Kernel { parameters, .. } = &dispatch.work {
            place[..parameters.len()].copy_from_slice(parameters);
        }
    }
    let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST | BufferUsages::COPY_SRC;
    let buffer = create(context, "the parameters of kernels", (words.len() as u64 * 4, usage))?;
    transfer::upload(context, &buffer, 0, &bytes_of(&words))?;
    Ok(buffer)
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A fault that `check` excludes, kept an error so that nothing panics.
pub(super) fn not_checked(detail: &str) -> GpuError {
    GpuError::Usage { what: "the program".into(), detail: detail.into() }
}

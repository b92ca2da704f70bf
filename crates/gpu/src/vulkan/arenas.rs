//! The memory of an instantiated program: bound buffers, buffers of its own, and one copy per slot of what the host writes.
//!
//! Parameters, mirrors and state must be bound and are left as they are (whoever owns them initialises them); everything
//! else is made and filled here, and constants are written into it.

use super::device::Shared;
use super::memory::{self, Home, RawBuffer, Request};
use crate::device::Buffer;
use crate::error::GpuError;
use crate::stepping::bound::{self, Origin, arena_name};
use ash::vk;
use griffinfly_compile::program::{Arena, ArenaId, Program};
use std::sync::Arc;

/// The buffers of all arenas.
pub(super) struct Arenas(Vec<Store>);

enum Store {
    /// The caller's.
    Bound { handle: vk::Buffer, _buffer: Arc<dyn Buffer> },
    /// Made here, one for all slots.
    Made(RawBuffer),
    /// Made here, mapped, one per slot.
    Ring(Vec<RawBuffer>),
}

impl Arenas {
    pub(super) fn new(
        shared: &Shared,
        program: &Program,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Self, GpuError> {
        let origins = bound::origins(program, bound)?;
        let mut stores = Vec::with_capacity(program.arenas.len());
        for (arena, origin) in program.arenas.iter().zip(&origins) {
            stores.push(store(shared, arena, origin)?);
        }
        let arenas = Arenas(stores);
        arenas.initialise(shared, program)?;
        Ok(arenas)
    }

    /// The buffer of an arena as a slot sees it.
    pub(super) fn handle(&self, arena: ArenaId, slot: usize) -> Option<vk::Buffer> {
        match self.0.get(arena.index())? {
            Store::Bound { handle, .. } => Some(*handle),
            Store::Made(buffer) => Some(buffer.handle()),
            Store::Ring(buffers) => buffers.get(slot).map(RawBuffer::handle),
        }
    }

    /// Whether slots see different buffers.
    pub(super) fn is_ring(&self, arena: ArenaId) -> bool {
        matches!(self.0.get(arena.index()), Some(Store::Ring(_)))
    }

    /// The mapped buffer of a ring arena in a slot.
    pub(super) fn mapped(&mut self, arena: ArenaId, slot: usize) -> Option<&mut RawBuffer> {
        match self.0.get_mut(arena.index())? {
            Store::Ring(buffers) => buffers.get_mut(slot),
            Store::Bound { .. } | Store::Made(_) => None,
        }
    }

    fn initialise(&self, shared: &Shared, program: &Program) -> Result<(), GpuError> {
        let made: Vec<&RawBuffer> = self.0.iter().filter_map(Store::made).collect();
        let mut transfer = shared.transfer();
        if !made.is_empty() {
            transfer.fill(&made, shared.fill)?;
        }
        for constant in &program.constants {
            let Some(buffer) = self.0.get(constant.place.arena.index()).and_then(Store::made) else {
                continue;
            };
            let bytes: Vec<u8> = constant.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            transfer.upload(buffer, constant.place.offset, &bytes)?;
        }
        Ok(())
    }
}

impl Store {
    fn made(&self) -> Option<&RawBuffer> {
        match self {
            Store::Made(buffer) => Some(buffer),
            Store::Bound { .. } | Store::Ring(_) => None,
        }
    }
}

fn store(shared: &Shared, arena: &Arena, origin: &Origin<'_>) -> Result<Store, GpuError> {
    let what = arena_name(arena);
    match origin {
        Origin::Bound(buffer) => {
            let handle = memory::own(&shared.context, buffer.as_ref())?.handle();
            bound::check_size(arena, buffer.as_ref())?;
            Ok(Store::Bound { handle, _buffer: (*buffer).clone() })
        }
        Origin::Written => {
            let request = Request { what: &what, bytes: arena.bytes, home: Home::Upload };
            let mut buffers = Vec::with_capacity(shared.slots);
            for _ in 0..shared.slots {
                let mut buffer = RawBuffer::new(&shared.context, &request)?;
                buffer.fill_mapped(shared.fill)?;
                buffers.push(buffer);
            }
            Ok(Store::Ring(buffers))
        }
        Origin::Made => {
            let request = Request { what: &what, bytes: arena.bytes, home: Home::Device };
            Ok(Store::Made(RawBuffer::new(&shared.context, &request)?))
        }
    }
}

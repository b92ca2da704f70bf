//! The memory of an instantiated program: bound buffers, buffers of its own, and one copy per slot of what the host writes.
//!
//! Parameters, mirrors and state must be bound and are left as they are (whoever owns them initialises them); everything
//! else is made and filled here, and constants are written into it.

use super::device::Shared;
use super::memory::{self, Home, RawBuffer, Request};
use crate::device::Buffer;
use crate::error::GpuError;
use ash::vk;
use griffinfly_compile::program::{Arena, ArenaId, Program, Role};
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
        check_ids(program, bound)?;
        let mut stores = Vec::with_capacity(program.arenas.len());
        for (index, arena) in program.arenas.iter().enumerate() {
            let given = bound.iter().find(|(id, _)| id.index() == index).map(|(_, buffer)| buffer);
            stores.push(store(shared, arena, given)?);
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

fn store(shared: &Shared, arena: &Arena, given: Option<&Arc<dyn Buffer>>) -> Result<Store, GpuError> {
    let what = arena_name(arena);
    match (&arena.role, given) {
        (Role::Parameters | Role::Mirror(_) | Role::State, Some(buffer)) => {
            let handle = memory::own(&shared.context, buffer.as_ref())?.handle();
            if buffer.bytes() < arena.bytes {
                let detail = format!("bound to {} bytes, {} are needed", buffer.bytes(), arena.bytes);
                return Err(GpuError::Usage { what, detail });
            }
            Ok(Store::Bound { handle, _buffer: buffer.clone() })
        }
        (Role::Parameters | Role::Mirror(_) | Role::State, None) => Err(GpuError::Usage {
            what,
            detail: format!("no buffer of {} bytes is bound to it", arena.bytes),
        }),
        (_, Some(_)) => {
            Err(GpuError::Usage { what, detail: "it is made by the device and cannot be bound".into() })
        }
        (Role::Inputs | Role::Scalars, None) => {
            let request = Request { what: &what, bytes: arena.bytes, home: Home::Upload };
            let mut buffers = Vec::with_capacity(shared.slots);
            for _ in 0..shared.slots {
                let mut buffer = RawBuffer::new(&shared.context, &request)?;
                buffer.fill_mapped(shared.fill)?;
                buffers.push(buffer);
            }
            Ok(Store::Ring(buffers))
        }
        (Role::Outputs | Role::Constants | Role::Scratch | Role::Counters, None) => {
            let request = Request { what: &what, bytes: arena.bytes, home: Home::Device };
            Ok(Store::Made(RawBuffer::new(&shared.context, &request)?))
        }
    }
}

fn check_ids(program: &Program, bound: &[(ArenaId, Arc<dyn Buffer>)]) -> Result<(), GpuError> {
    for (position, (id, buffer)) in bound.iter().enumerate() {
        let what = || format!("bound arena {}", id.0);
        if id.index() >= program.arenas.len() {
            let detail = format!("the program has {} arenas", program.arenas.len());
            return Err(GpuError::Usage { what: what(), detail });
        }
        let same = |(other, given): &&(ArenaId, Arc<dyn Buffer>)| other == id || Arc::ptr_eq(given, buffer);
        if let Some((other, _)) = bound[..position].iter().find(same) {
            let detail = format!("bound twice (also for arena {})", other.0);
            return Err(GpuError::Usage { what: what(), detail });
        }
    }
    Ok(())
}

/// An arena in errors.
pub(super) fn arena_name(arena: &Arena) -> String {
    match &arena.role {
        Role::Mirror(name) => format!("the arena of {name} (chunk {})", arena.chunk),
        role => format!("the {} arena (chunk {})", format!("{role:?}").to_lowercase(), arena.chunk),
    }
}

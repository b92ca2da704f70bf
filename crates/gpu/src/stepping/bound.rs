//! Whose memory an arena is: the caller's or the executor's.

use crate::device::Buffer;
use crate::error::GpuError;
use griffinfly_compile::program::{Arena, ArenaId, Program, Role};
use std::sync::Arc;

/// Where the buffer of an arena comes from.
pub(crate) enum Origin<'a> {
    /// The caller's.
    Bound(&'a Arc<dyn Buffer>),
    /// The executor makes it; the host writes it before each step.
    Written,
    /// The executor makes it.
    Made,
}

/// Where the buffer of each arena comes from.
///
/// # Errors
/// Arenas bound twice or that do not exist, an arena of the caller's that is not bound, one bound that is not the caller's.
pub(crate) fn origins<'a>(
    program: &Program,
    bound: &'a [(ArenaId, Arc<dyn Buffer>)],
) -> Result<Vec<Origin<'a>>, GpuError> {
    check_ids(program, bound)?;
    let given = |index: usize| bound.iter().find(|(id, _)| id.index() == index).map(|(_, buffer)| buffer);
    program.arenas.iter().enumerate().map(|(index, arena)| origin(arena, given(index))).collect()
}

fn origin<'a>(arena: &Arena, given: Option<&'a Arc<dyn Buffer>>) -> Result<Origin<'a>, GpuError> {
    let what = arena_name(arena);
    match (&arena.role, given) {
        (Role::Parameters | Role::Mirror(_) | Role::State, Some(buffer)) => Ok(Origin::Bound(buffer)),
        (Role::Parameters | Role::Mirror(_) | Role::State, None) => Err(GpuError::Usage {
            what,
            detail: format!("no buffer of {} bytes is bound to it", arena.bytes),
        }),
        (_, Some(_)) => {
            Err(GpuError::Usage { what, detail: "it is made by the device and cannot be bound".into() })
        }
        (Role::Inputs | Role::Scalars, None) => Ok(Origin::Written),
        (Role::Outputs | Role::Constants | Role::Scratch | Role::Counters, None) => Ok(Origin::Made),
    }
}

/// That a bound buffer is as large as its arena.
pub(crate) fn check_size(arena: &Arena, buffer: &dyn Buffer) -> Result<(), GpuError> {
    if buffer.bytes() >= arena.bytes {
        return Ok(());
    }
    let detail = format!("bound to {} bytes, {} are needed", buffer.bytes(), arena.bytes);
    Err(GpuError::Usage { what: arena_name(arena), detail })
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
pub(crate) fn arena_name(arena: &Arena) -> String {
    match &arena.role {
        Role::Mirror(name) => format!("the arena of {name} (chunk {})", arena.chunk),
        role => format!("the {} arena (chunk {})", format!("{role:?}").to_lowercase(), arena.chunk),
    }
}

/// That a range lies in a buffer.
pub(crate) fn check_range(what: &str, offset: u64, length: u64, size: u64) -> Result<(), GpuError> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(range_error(what, offset, length, size)),
    }
}

/// A range that does not lie in a buffer.
pub(crate) fn range_error(what: &str, offset: u64, length: u64, size: u64) -> GpuError {
    let detail = format!("bytes {offset} to {} of {size}", u128::from(offset) + u128::from(length));
    GpuError::Usage { what: what.into(), detail }
}

//! Prefetches: dispatches that read what convolutions of the next level want from memory while a level runs.
//!
//! The weights of a large network do not stay in a device's cache from one step to the next. A convolution whose few workgroups
//! wait for memory at every tile is faster when its weights came into the cache before; the level before it has memory to itself
//! often enough. Input: dispatches in levels. Output: the same with prefetches, last in their levels. They read bindings of the
//! next level that were not touched lately, and write words that nobody reads.
//!
//! Invariants: a prefetch conflicts with nothing in its level; results stay the same. Only large hardware gets them: there what
//! this costs was measured.

use super::kernels::Kernels;
use super::levels::conflict;
use crate::error::CompileError;
use crate::program::{
    Arena, ArenaId, Binding, BindingAccess, Dispatch, DispatchId, KernelId, LoopId, Program, Role,
    SectionKind, Work,
};
use griffinfly_ir::layout::aligned;
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::target::{TENSOR_ALIGNMENT, Target};
use griffinfly_kernel::families::{Instance, prefetch};
use std::collections::{HashMap, HashSet};

/// Fewest and most bytes worth a prefetch.
const BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=16 << 20;
/// What was touched so many bytes ago is no longer in the cache.
const FAR: u64 = 24 << 20;
/// Fewest compute units of a device with a large cache.
const UNITS: u32 = 64;

/// Dispatches of sections by level.
pub(super) type Levels = Vec<(SectionKind, Vec<Vec<DispatchId>>)>;

/// Adds prefetches to a program without sections, and to its levels.
///
/// # Errors
/// A kernel that breaks a limit of the target.
pub(super) fn run(program: &mut Program, levels: &mut Levels) -> Result<(), CompileError> {
    let target = &program.target;
    let is_apart = !target.backend.overlaps_dispatches();
    if is_apart || !target.is_hardware || target.compute_units < UNITS {
        return Ok(());
    }
    let wanted: Vec<_> = levels.iter().map(|(_, levels)| wanted(program, levels)).collect();
    if wanted.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let mut own = Kernels::default();
    let any = instance(*BYTES.start(), &program.target)?;
    own.add(&any, &program.target)?;
    let kernel = KernelId(program.kernels.len() as u32);
    program.kernels.extend(own.compile()?);
    let sinks = ArenaId(program.arenas.len() as u32);
    let mut widest = 0;
    for ((_, levels), wanted) in levels.iter_mut().zip(wanted) {
        for (level, ranges) in wanted {
            let mut count = 0;
            for (source, range) in ranges {
                let sink = count * TENSOR_ALIGNMENT;
                let sink = Binding { arena: sinks, offset: sink, bytes: 4, access: BindingAccess::Write };
                let Instance { name, parameters, groups, .. } = instance(range.bytes, &program.target)?;
                let work = Work::Kernel { kernel, parameters, groups };
                let bindings = vec![range, sink];
                let prefetch = Dispatch { work, source, bindings, instance: name, provenance: Vec::new() };
                let mut others = levels[level].iter().map(|id| &program.dispatches[id.index()]);
                if !others.any(|other| conflict(other, &prefetch)) {
                    levels[level].push(DispatchId(program.dispatches.len() as u32));
                    program.dispatches.push(prefetch);
                    count += 1;
                }
            }
            widest = widest.max(count);
        }
    }
    if widest > 0 {
        let bytes = aligned(widest * TENSOR_ALIGNMENT);
        let chunk = program.arenas.iter().filter(|arena| arena.role == Role::Scratch).count() as u32;
        program.arenas.push(Arena { role: Role::Scratch, chunk, bytes });
        let memory = &mut program.memory;
        memory.physical_bytes += bytes;
        memory.logical_bytes += bytes;
        memory.scratch_bytes += bytes;
        memory.scratch_lower_bound += bytes;
    }
    Ok(())
}

/// By level, what is worth reading while it runs: for ranges of operands the loop that wants them.
fn wanted(program: &Program, levels: &[Vec<DispatchId>]) -> Vec<(usize, Vec<(LoopId, Binding)>)> {
    let of = |level: &[DispatchId]| -> Vec<&Dispatch> {
        level.iter().map(|id| &program.dispatches[id.index()]).collect()
    };
    let bindings = |level: &[DispatchId]| of(level).into_iter().flat_map(|d| &d.bindings).collect::<Vec<_>>();
    // How many bytes were touched when a range was last, of all that were.
    let (mut touched, mut clock) = (HashMap::new(), 0_u64);
    let all: u64 = levels.iter().flat_map(|level| bindings(level)).map(|b| b.bytes).sum();
    let mut out = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        let mut seen = HashSet::new();
        let mut ranges = Vec::new();
        for d in of(level).into_iter().filter(|d| is_convolution(program, d)) {
            for b in d.bindings.iter().filter(|b| b.access == BindingAccess::Read) {
                let place = (b.arena, b.offset);
                let is_cold = touched.get(&place).map_or(all > FAR, |then| clock - then > FAR);
                if is_cold && BYTES.contains(&b.bytes) && seen.insert(place) {
                    ranges.push((d.source, *b));
                }
            }
        }
        for b in bindings(level) {
            clock += b.bytes;
            touched.insert((b.arena, b.offset), clock);
        }
        if let Some(before) = number.checked_sub(1)
            && !ranges.is_empty()
        {
            out.push((before, ranges));
        }
    }
    out
}

/// Whether a dispatch sums over channels and taps.
fn is_convolution(program: &Program, d: &Dispatch) -> bool {
    let kind = program.loops.get(d.source.index()).map(|l| &l.kind);
    matches!(kind, Some(LoopKind::Contract(c)) if c.k.len() == 3)
}

/// The instance that reads so many bytes; all have the same code.
fn instance(bytes: u64, target: &Target) -> Result<Instance, CompileError> {
    let label = format!("{bytes} bytes");
    prefetch(bytes, target).map_err(|source| CompileError::Kernel {
        archetype: "prefetch".into(),
        label,
        source,
    })
}

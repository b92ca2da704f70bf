//! Prefetches: dispatches that read what convolutions of the next level want from memory while a level runs.
//!
//! The weights of a large network do not stay in a device's cache from one step to the next. A convolution whose few workgroups
//! wait for memory at every tile is faster when its weights came into the cache before; the level before it has memory to itself
//! often enough. Input: dispatches in levels. Output: the same with prefetches, last in their levels. They read bindings of the
//! next level that were not touched lately, and write words that nobody reads.
//!
//! Invariants: a prefetch conflicts with nothing in its level; results stay the same. Only large hardware gets them: there what
//! this costs was measured.

use super::dispatch::Kernels;
use super::levels::conflict;
use crate::error::CompileError;
use crate::program::{
    Arena, ArenaId, Binding, BindingAccess, Dispatch, DispatchId, Kernel, KernelId, LoopId, Program, Role,
    SectionKind, Work,
};
use griffinfly_ir::layout::aligned;
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::target::{TENSOR_ALIGNMENT, Target};
use griffinfly_kernel::families::prefetch;
use griffinfly_kernel::print::{self, PrintOptions};
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
    if !program.target.is_hardware || program.target.compute_units < UNITS {
        return Ok(());
    }
    let mut widest = 0;
    let mut kernel = None;
    for (_, levels) in levels {
        for (level, wanted) in wanted(program, levels) {
            let ranges = wanted.into_iter().enumerate();
            let mut own = Vec::new();
            for (number, (source, range)) in ranges {
                let sink = Binding {
                    arena: ArenaId(program.arenas.len() as u32),
                    offset: number as u64 * TENSOR_ALIGNMENT,
                    bytes: 4,
                    access: BindingAccess::Write,
                };
                let (instance, id) = kernel_for(range.bytes, &program.target, &mut program.kernels, kernel)?;
                kernel = Some(id);
                let work = Work::Kernel { kernel: id, parameters: instance.1, groups: instance.2 };
                let bindings = vec![range, sink];
                own.push(Dispatch { work, source, bindings, instance: instance.0, provenance: Vec::new() });
            }
            let members: Vec<&Dispatch> =
                levels[level].iter().map(|id| &program.dispatches[id.index()]).collect();
            own.retain(|prefetch| !members.iter().any(|other| conflict(other, prefetch)));
            widest = widest.max(own.len() as u64);
            for prefetch in own {
                levels[level].push(DispatchId(program.dispatches.len() as u32));
                program.dispatches.push(prefetch);
            }
        }
    }
    if widest > 0 {
        let bytes = aligned(widest * TENSOR_ALIGNMENT);
        let chunk = program.arenas.iter().filter(|arena| arena.role == Role::Scratch).count() as u32;
        program.arenas.push(Arena { role: Role::Scratch, chunk, bytes });
        program.memory.physical_bytes += bytes;
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

/// Name, parameters and workgroups of a prefetch of so many bytes, and its kernel, which all share.
fn kernel_for(
    bytes: u64,
    target: &Target,
    kernels: &mut Vec<Kernel>,
    known: Option<KernelId>,
) -> Result<((String, Vec<u32>, [u32; 3]), KernelId), CompileError> {
    let refused = |source| CompileError::Kernel {
        archetype: "prefetch".into(),
        label: format!("{bytes} bytes"),
        source,
    };
    let instance = prefetch(bytes, target).map_err(refused)?;
    let id = match known {
        Some(id) => id,
        None => {
            let mut own = Kernels::default();
            own.add((&instance, &print::wgsl(&instance.kernel, &PrintOptions::default())), target)?;
            kernels.extend(own.compile()?);
            KernelId(kernels.len() as u32 - 1)
        }
    };
    Ok(((instance.name, instance.parameters, instance.groups), id))
}

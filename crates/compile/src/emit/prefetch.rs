//! Prefetches: dispatches that read what the next level wants from memory while this level runs.

use super::dispatch::Kernels;
use super::levels::conflict;
use crate::error::CompileError;
use crate::program::{
    Arena, ArenaId, Binding, BindingAccess, Dispatch, DispatchId, Kernel, KernelId, Role, SectionKind, Work,
};
use griffinfly_ir::layout::aligned;
use griffinfly_ir::target::Target;
use std::collections::{HashMap, HashSet};

fn knob(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

type Levels = Vec<(SectionKind, Vec<Vec<DispatchId>>)>;

pub(super) fn run(
    dispatches: &mut Vec<Dispatch>,
    sections: &mut Levels,
    kernels: &mut Vec<Kernel>,
    arenas: &mut Vec<Arena>,
    target: &Target,
) -> Result<(), CompileError> {
    let mode = knob("GF_PF", 1);
    if !target.is_hardware || mode == 0 {
        return Ok(());
    }
    let (least, most, far) = (knob("GF_PF_MIN", 64 << 10), knob("GF_PF_MAX", 16 << 20), knob("GF_PF_FAR", 24 << 20));
    let ahead = knob("GF_PF_AHEAD", 1) as usize;
    let mut made: Vec<(usize, usize, Binding, usize)> = Vec::new();
    for (s, (_, levels)) in sections.iter().enumerate() {
        let mut seen: HashMap<(ArenaId, u64), u64> = HashMap::new();
        let total: u64 = levels.iter().flatten().flat_map(|d| &dispatches[d.index()].bindings).map(|b| b.bytes).sum();
        if total < far {
            continue;
        }
        let mut clock = 0_u64;
        for (l, level) in levels.iter().enumerate() {
            let mut wanted: HashSet<(ArenaId, u64)> = HashSet::new();
            for d in level {
                let d = &dispatches[d.index()];
                for b in &d.bindings {
                    let key = (b.arena, b.offset);
                    let is_cold = seen.get(&key).is_none_or(|at| clock - at > far);
                    if l >= ahead
                        && b.access == BindingAccess::Read
                        && is_cold
                        && (least..=most).contains(&b.bytes)
                        && wanted.insert(key)
                    {
                        made.push((s, l - ahead, *b, d.source.index()));
                    }
                }
            }
            for b in level.iter().flat_map(|d| &dispatches[d.index()].bindings) {
                clock += b.bytes;
                seen.insert((b.arena, b.offset), clock);
            }
        }
    }
    if made.is_empty() {
        return Ok(());
    }
    let instance = griffinfly_kernel::families::prefetch(4, target).map_err(|source| CompileError::Kernel {
        archetype: "prefetch".into(),
        label: String::new(),
        source,
    })?;
    let code = griffinfly_kernel::print::wgsl(&instance.kernel, &griffinfly_kernel::print::PrintOptions::default());
    let mut own = Kernels::default();
    own.add((&instance, &code), target)?;
    let kernel = KernelId(kernels.len() as u32);
    kernels.extend(own.compile()?);
    let sink = ArenaId(arenas.len() as u32);
    let mut count: HashMap<(usize, usize), u64> = HashMap::new();
    let mut widest = 0;
    for (s, l, b, source) in made {
        let n = count.entry((s, l)).or_default();
        let out = Binding { arena: sink, offset: *n * 256, bytes: 4, access: BindingAccess::Write };
        let instance = griffinfly_kernel::families::prefetch(b.bytes, target).map_err(|source| CompileError::Kernel {
            archetype: "prefetch".into(),
            label: String::new(),
            source,
        })?;
        let d = Dispatch {
            work: Work::Kernel { kernel, parameters: instance.parameters, groups: instance.groups },
            source: crate::program::LoopId(source as u32),
            bindings: vec![b, out],
            instance: instance.name,
            provenance: Vec::new(),
        };
        if sections[s].1[l].iter().any(|o| conflict(&dispatches[o.index()], &d)) {
            continue;
        }
        *n += 1;
        widest = widest.max(*n);
        let id = DispatchId(dispatches.len() as u32);
        dispatches.push(d);
        if mode == 1 { sections[s].1[l].insert(0, id) } else { sections[s].1[l].push(id) }
    }
    arenas.push(Arena { role: Role::Scratch, chunk: 0, bytes: aligned(widest.max(1) * 256) });
    Ok(())
}

//! Places: which bytes of which arena each tensor has.
//!
//! Parameters and what mirrors them follow the canonical layout; inputs, scalars, outputs, constants and other state are laid
//! one after the other in chunks; temporaries and kernel scratch go through the memory planner. A pointwise result may take
//! the bytes of an operand that dies with it.

use super::dispatch::Piece;
use crate::error::CompileError;
use crate::fuse::update::Lane;
use crate::lower::{LoopGraph, Phase, Source, TensorId};
use crate::memory::{self, Interval, Mode};
use crate::program::{Arena, ArenaId, ConstantData, Place, Role, SectionKind};
use crate::schedule::Schedule;
use griffinfly_ir::graph::{ConstantData as Data, LeafKind};
use griffinfly_ir::layout::{ParameterLayout, ParameterSpec, aligned};
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::target::Target;
use std::collections::HashMap;

/// Places of all tensors and of the pieces' scratch.
#[derive(Clone, Debug, Default)]
pub(super) struct Placement {
    /// Arenas.
    pub(super) arenas: Vec<Arena>,
    /// Place of each tensor; `None` for those never in memory.
    pub(super) places: Vec<Option<Place>>,
    /// Place of each piece's scratch buffers.
    pub(super) scratch: Vec<Vec<Place>>,
    /// Bytes of temporaries without sharing.
    pub(super) logical_scratch: u64,
    /// Lower bound of the temporaries.
    pub(super) lower_bound: u64,
    /// Holders of the peak.
    pub(super) peak_holders: Vec<(String, u64)>,
}

/// Places everything.
pub(super) fn run(
    schedule: &Schedule,
    pieces: &[Piece],
    target: &Target,
    mode: Mode,
) -> Result<Placement, CompileError> {
    let graph = &schedule.graph;
    check_sizes(graph, target)?;
    let mut out = Placement { places: vec![None; graph.tensors.len()], ..Placement::default() };
    let layout = place_parameters(graph, target, &mut out)?;
    place_mirrors(schedule, &layout, &mut out);
    place_rest(graph, target, &mut out);
    place_temporaries(schedule, pieces, target, mode, &mut out);
    for (t, leaf) in &schedule.in_place {
        out.places[t.index()] = out.places[leaf.index()];
    }
    Ok(out)
}

fn check_sizes(graph: &LoopGraph, target: &Target) -> Result<(), CompileError> {
    let limit = target.chunk_bytes();
    for t in &graph.tensors {
        let bytes = t.ty.bytes() as u64;
        if bytes > limit && t.splat().is_none() {
            let (label, device) = (t.label.clone(), target.name.clone());
            return Err(CompileError::TensorTooLarge { label, bytes, limit, device });
        }
    }
    Ok(())
}

impl Placement {
    fn arena(&mut self, role: Role, chunk: u32, bytes: u64) -> ArenaId {
        let found = self.arenas.iter().position(|a| a.role == role && a.chunk == chunk);
        let at = found.unwrap_or_else(|| {
            self.arenas.push(Arena { role, chunk, bytes: 0 });
            self.arenas.len() - 1
        });
        self.arenas[at].bytes = self.arenas[at].bytes.max(bytes);
        ArenaId(at as u32)
    }

    /// Appends `bytes` to the last chunk of a role, or starts another.
    fn append(&mut self, role: &Role, bytes: u64, limit: u64) -> Place {
        let last = self.arenas.iter().filter(|a| a.role == *role).map(|a| (a.chunk, a.bytes)).max();
        let (chunk, offset) = match last {
            Some((chunk, used)) if used + aligned(bytes) <= limit => (chunk, used),
            Some((chunk, _)) => (chunk + 1, 0),
            None => (0, 0),
        };
        let arena = self.arena(role.clone(), chunk, offset + aligned(bytes));
        Place { arena, offset }
    }
}

/// The layout of the parameters by tensor.
struct Layout {
    slots: HashMap<String, griffinfly_ir::layout::Slot>,
    chunks: Vec<u64>,
}

fn place_parameters(graph: &LoopGraph, target: &Target, out: &mut Placement) -> Result<Layout, CompileError> {
    let mut specs = Vec::new();
    for t in &graph.tensors {
        if let Source::Parameter(name, LeafKind::Parameter { group, .. }) = &t.source {
            specs.push(ParameterSpec { name: name.clone(), ty: t.ty.clone(), group: group.clone() });
        }
    }
    let layout = ParameterLayout::of(&specs, target.chunk_bytes())?;
    let slots: HashMap<_, _> =
        specs.iter().map(|s| s.name.clone()).zip(layout.slots.iter().copied()).collect();
    let layout = Layout { slots, chunks: layout.chunks };
    for (i, t) in graph.tensors.iter().enumerate() {
        if let Source::Parameter(name, _) = &t.source {
            out.places[i] = mirror_place(&Role::Parameters, name, &layout, out);
        }
    }
    Ok(layout)
}

fn mirror_place(role: &Role, parameter: &str, layout: &Layout, out: &mut Placement) -> Option<Place> {
    let slot = layout.slots.get(parameter)?;
    let arena = out.arena(role.clone(), slot.chunk, layout.chunks[slot.chunk as usize]);
    Some(Place { arena, offset: slot.offset })
}

/// State that mirrors parameters, and the gradients that update groups read.
fn place_mirrors(schedule: &Schedule, layout: &Layout, out: &mut Placement) {
    let graph = &schedule.graph;
    for (i, t) in graph.tensors.iter().enumerate() {
        if let Source::State { mirrors: Some((kind, parameter)), .. } = &t.source {
            out.places[i] = mirror_place(&Role::Mirror(kind.clone()), parameter, layout, out);
        }
    }
    for group in &schedule.groups {
        for (member, parameter) in &group.members {
            let Source::Parameter(name, _) = &graph.tensor(*parameter).source else { continue };
            for (t, lane) in graph.loops[*member].inputs.iter().zip(&group.operands) {
                if *lane == Lane::Gradient && !is_output(graph, *t) {
                    out.places[t.index()] = mirror_place(&Role::Mirror("gradient".into()), name, layout, out);
                }
            }
        }
    }
}

fn is_output(graph: &LoopGraph, t: TensorId) -> bool {
    graph.outputs.iter().any(|(_, o)| *o == t)
}

fn place_rest(graph: &LoopGraph, target: &Target, out: &mut Placement) {
    let limit = target.chunk_bytes();
    place_scalars(graph, limit, out);
    for (i, t) in graph.tensors.iter().enumerate() {
        let role = match &t.source {
            Source::Input { .. } => Role::Inputs,
            Source::StepScalar(_) if out.places[i].is_none() => Role::Scalars,
            Source::State { mirrors: None, .. } => Role::State,
            Source::Constant(_) if t.splat().is_none() => Role::Constants,
            _ => continue,
        };
        out.places[i] = Some(out.append(&role, t.ty.bytes() as u64, limit));
    }
    for (_, t) in &graph.outputs {
        if out.places[t.index()].is_none() {
            let bytes = graph.tensor(*t).ty.bytes() as u64;
            out.places[t.index()] = Some(out.append(&Role::Outputs, bytes, limit));
        }
    }
}

/// The slot of the step scalars, and in it the scalars themselves.
fn place_scalars(graph: &LoopGraph, limit: u64, out: &mut Placement) {
    for (i, t) in graph.tensors.iter().enumerate() {
        let Source::StepSlot(members) = &t.source else { continue };
        let slot = out.append(&Role::Scalars, t.ty.bytes() as u64, limit);
        out.places[i] = Some(slot);
        for (k, member) in members.iter().enumerate() {
            out.places[member.index()] = Some(Place { offset: slot.offset + 4 * k as u64, ..slot });
        }
    }
}

/// Temporaries, by the levels between which they are alive, and the pieces' scratch at their own level.
fn place_temporaries(
    schedule: &Schedule,
    pieces: &[Piece],
    target: &Target,
    mode: Mode,
    out: &mut Placement,
) {
    let lives = Lives::of(schedule, out);
    let mut intervals: Vec<Interval> = lives.intervals.clone();
    let mut labels: Vec<String> = lives.labels.clone();
    let temporaries = intervals.len();
    for p in pieces {
        for bytes in &p.realisation.scratch {
            intervals.push(Interval { bytes: *bytes, first: p.level, last: p.level });
            labels.push(format!("scratch of {}", p.labels.join(" ")));
        }
    }
    let plan = memory::plan(&intervals, target.chunk_bytes(), mode);
    let (bound, peak) = memory::lower_bound(&intervals);
    out.lower_bound = bound;
    out.logical_scratch =
        lives.logical + pieces.iter().flat_map(|p| &p.realisation.scratch).map(|b| aligned(*b)).sum::<u64>();
    let mut holders: Vec<(String, u64)> = intervals
        .iter()
        .zip(&labels)
        .filter(|(i, _)| i.first <= peak && peak <= i.last)
        .map(|(i, l)| (l.clone(), i.bytes))
        .collect();
    holders.sort_by_key(|(l, b)| (u64::MAX - b, l.clone()));
    holders.truncate(8);
    out.peak_holders = holders;
    let mut place = |i: usize| {
        let spot = plan.spots[i];
        let arena = out.arena(Role::Scratch, spot.chunk, plan.chunks[spot.chunk as usize]);
        Place { arena, offset: spot.offset }
    };
    let spots: Vec<Place> = (0..intervals.len()).map(&mut place).collect();
    for (t, i) in &lives.of_tensor {
        out.places[t.index()] = Some(spots[*i]);
    }
    let mut next = temporaries;
    for p in pieces {
        let n = p.realisation.scratch.len();
        out.scratch.push(spots[next..next + n].to_vec());
        next += n;
    }
}

/// Lives of temporaries; tensors that share memory in place share a life.
struct Lives {
    intervals: Vec<Interval>,
    labels: Vec<String>,
    of_tensor: Vec<(TensorId, usize)>,
    logical: u64,
}

impl Lives {
    fn of(schedule: &Schedule, out: &Placement) -> Lives {
        let graph = &schedule.graph;
        let consumers = graph.consumers();
        let mut lives =
            Lives { intervals: Vec::new(), labels: Vec::new(), of_tensor: Vec::new(), logical: 0 };
        let mut life: HashMap<TensorId, usize> = HashMap::new();
        let last_use = |t: TensorId, own: usize| {
            consumers[t.index()].iter().map(|&c| schedule.place[c].1).max().unwrap_or(own).max(own)
        };
        for (i, node) in graph.loops.iter().enumerate() {
            let (section, level) = schedule.place[i];
            for (r, &t) in node.outputs.iter().enumerate() {
                if out.places[t.index()].is_some() || schedule.in_place.contains_key(&t) {
                    continue;
                }
                let bytes = graph.tensor(t).ty.bytes() as u64;
                lives.logical += aligned(bytes);
                let last = if section == SectionKind::Prepare { schedule.levels } else { last_use(t, level) };
                let first = if section == SectionKind::Prepare { 0 } else { level };
                let donor = node.inputs.iter().find_map(|d| {
                    let l = *life.get(d)?;
                    let free = lives.intervals[l].last == level
                        && consumers[d.index()].iter().all(|&c| c == i || schedule.place[c].1 < level)
                        && lives.intervals[l].bytes == bytes
                        && can_share(schedule, i, *d, r);
                    free.then_some(l)
                });
                let l = match donor {
                    Some(l) if section != SectionKind::Prepare => {
                        lives.intervals[l].last = last.max(level + usize::from(last == level));
                        l
                    }
                    _ => {
                        lives.intervals.push(Interval { bytes, first, last });
                        lives.labels.push(graph.tensor(t).label.clone());
                        lives.intervals.len() - 1
                    }
                };
                life.insert(t, l);
                lives.of_tensor.push((t, l));
            }
        }
        lives
    }
}

/// Whether result `r` of a pointwise loop may take the memory of operand `d`: both are touched in place only.
fn can_share(schedule: &Schedule, i: usize, d: TensorId, r: usize) -> bool {
    let node = &schedule.graph.loops[i];
    let LoopKind::Map(map) = &node.l.kind else { return false };
    let dims = &node.l.results[r].dims;
    let in_place = map
        .body
        .loads
        .iter()
        .filter(|l| node.inputs[l.operand] == d)
        .all(|l| l.access.is_identity(&node.l.operands[l.operand].dims, &map.domain));
    let stored = map
        .stores
        .iter()
        .filter(|s| s.result == r)
        .all(|s| s.coords.iter().enumerate().all(|(a, c)| c.as_axis() == Some(a)));
    in_place && stored && *dims == map.domain && node.phase == Phase::Compute
}

/// Initial contents of constant and state arenas.
pub(super) fn constants(graph: &LoopGraph, placement: &Placement) -> Vec<ConstantData> {
    let mut out = Vec::new();
    for (i, t) in graph.tensors.iter().enumerate() {
        let Some(place) = placement.places[i] else { continue };
        match &t.source {
            Source::Constant(Data::Words(words)) => out.push(ConstantData { place, words: words.to_vec() }),
            Source::Constant(Data::Splat(s)) => {
                out.push(ConstantData { place, words: vec![s.bits(); t.ty.elements()] });
            }
            Source::State { init, .. } if init.get() != 0.0 => {
                out.push(ConstantData { place, words: vec![init.get().to_bits(); t.ty.elements()] });
            }
            _ => {}
        }
    }
    out
}

//! Places: which bytes of which arena each tensor has.
//!
//! Parameters and what mirrors them follow the canonical layout; inputs, scalars, outputs, constants and other state are laid
//! one after the other in chunks. Temporaries and kernel scratch get numbers here; where they lie is known when the dispatches
//! are (`temporaries`).

use super::dispatch::Piece;
use super::temporaries::{self, Temporary};
use crate::error::CompileError;
use crate::fuse::update::Lane;
use crate::lower::{LoopGraph, Source, TensorId};
use crate::program::{Arena, ArenaId, ConstantData, Place, Role, SectionKind};
use crate::schedule::Schedule;
use griffinfly_ir::graph::{ConstantData as Data, LeafKind};
use griffinfly_ir::layout::{ParameterLayout, ParameterSpec, aligned};
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
    /// Place of each piece's counters.
    pub(super) counters: Vec<Option<Place>>,
    /// What has no bytes yet, by number.
    pub(super) temporaries: Vec<Temporary>,
}

/// Places everything.
pub(super) fn run(schedule: &Schedule, pieces: &[Piece], target: &Target) -> Result<Placement, CompileError> {
    let graph = &schedule.graph;
    check_sizes(graph, target)?;
    let mut out = Placement { places: vec![None; graph.tensors.len()], ..Placement::default() };
    let layout = place_parameters(graph, target, &mut out)?;
    place_mirrors(schedule, &layout, &mut out);
    place_rest(graph, target, &mut out);
    number_temporaries(schedule, pieces, &mut out);
    for p in pieces {
        let bytes = p.realised.realisation.counters;
        let place = (bytes > 0).then(|| out.append(&Role::Counters, bytes, target.chunk_bytes()));
        out.counters.push(place);
    }
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

    fn temporary(&mut self, t: Temporary) -> Place {
        self.temporaries.push(t);
        temporaries::nowhere(self.temporaries.len() - 1)
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

/// A number for every temporary, kernel scratch included, in place of bytes: see `temporaries`.
fn number_temporaries(schedule: &Schedule, pieces: &[Piece], out: &mut Placement) {
    for (i, node) in schedule.graph.loops.iter().enumerate() {
        let lasts = schedule.place[i].0 == SectionKind::Prepare;
        for t in &node.outputs {
            if out.places[t.index()].is_none() && !schedule.in_place.contains_key(t) {
                let tensor = schedule.graph.tensor(*t);
                let (bytes, label) = (tensor.ty.bytes() as u64, tensor.label.clone());
                out.places[t.index()] = Some(out.temporary(Temporary { bytes, label, lasts }));
            }
        }
    }
    for p in pieces {
        let label = format!("scratch of {}", p.labels.join(" "));
        let one = |bytes: &u64| Temporary { bytes: *bytes, label: label.clone(), lasts: false };
        let places = p.realised.realisation.scratch.iter().map(|bytes| out.temporary(one(bytes))).collect();
        out.scratch.push(places);
    }
}

/// Initial contents of constant and state arenas and of counters.
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
    for (id, arena) in (0_u32..).zip(&placement.arenas).filter(|(_, arena)| arena.role == Role::Counters) {
        let place = Place { arena: ArenaId(id), offset: 0 };
        out.push(ConstantData { place, words: vec![0; usize::try_from(arena.bytes / 4).unwrap_or(0)] });
    }
    out
}

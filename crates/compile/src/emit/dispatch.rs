//! Dispatches: loops become kernels with bindings and geometry, or host loops.

use super::kernels::Kernels;
use super::place::Placement;
use super::shares::{self, Share};
use super::temporaries::Steps;
use crate::Options;
use crate::error::CompileError;
use crate::fuse::update::{self, Lane, UpdateGroup};
use crate::lower::{LoopNode, Phase, TensorId};
use crate::parallel;
use crate::program::{ArenaId, Binding, BindingAccess, Dispatch, LoopId, Place, SectionKind, Work};
use crate::schedule::Schedule;
use griffinfly_ir::layout::aligned;
use griffinfly_ir::loops::{Loop, LoopKind};
use griffinfly_ir::target::{Backend, NumericClass, Target};
use griffinfly_kernel::families::contract::{self, Neighbours};
use griffinfly_kernel::families::tuned::{self, Choices};
use griffinfly_kernel::families::{Instance, Realisation, Slot};
use griffinfly_kernel::{KernelError, print};
use std::collections::HashMap;
use std::sync::Arc;

/// A loop to be dispatched: one of the graph's, or an update group (whose loop depends on the layout).
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// What it runs.
    pub(super) what: What,
    /// Section.
    pub(super) section: SectionKind,
    /// Level in the schedule.
    pub(super) level: usize,
    /// Provenance.
    pub(super) labels: Vec<String>,
    /// Kernels, on targets that have them (made later for groups).
    pub(super) realised: Arc<Realised>,
}

/// The kernels of a loop, as text too. Equal loops in equal circumstances share them.
#[derive(Debug, Default)]
pub(super) struct Realised {
    pub(super) realisation: Realisation,
    /// The code of each dispatch.
    codes: Vec<String>,
}

/// What a piece runs.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Loop i of the graph.
    Single(usize),
    /// Group i of the schedule.
    Group(usize),
}

/// Everything emission makes.
pub(super) struct Emitted {
    /// Distinct kernels.
    pub(super) kernels: Kernels,
    /// Loops.
    pub(super) loops: Vec<Loop>,
    /// Dispatches in a valid sequential order.
    pub(super) steps: Steps,
}

/// The pieces of a schedule in a valid sequential order, realised where they are loops of the graph.
pub(super) fn pieces(
    schedule: &Schedule,
    target: &Target,
    options: &Options,
) -> Result<Vec<Piece>, CompileError> {
    let mut grouped = vec![false; schedule.graph.loops.len()];
    let mut out = Vec::new();
    for (g, group) in schedule.groups.iter().enumerate() {
        let members: Vec<usize> = group.members.iter().map(|m| m.0).collect();
        members.iter().for_each(|&m| grouped[m] = true);
        let level = members.iter().map(|&m| schedule.place[m].1).max().unwrap_or(0);
        let mut labels: Vec<String> =
            members.iter().flat_map(|&m| schedule.graph.loops[m].labels.iter().cloned()).collect();
        labels.sort();
        labels.dedup();
        let realised = Arc::default();
        out.push(Piece { what: What::Group(g), section: SectionKind::Update, level, labels, realised });
    }
    let shares = shares::run(schedule, target);
    let mut cases = Cases::default();
    for (i, node) in schedule.graph.loops.iter().enumerate().filter(|(i, _)| !grouped[*i]) {
        let (section, level) = schedule.place[i];
        let classes = options.contract.classes(node.phase != Phase::Forward);
        let labels: Vec<String> = node.labels.iter().cloned().collect();
        cases.add(Case { l: &node.l, classes, share: shares[i] }, &labels);
        out.push(Piece { what: What::Single(i), section, level, labels, realised: Arc::default() });
    }
    let singles = out.iter_mut().filter(|piece| matches!(piece.what, What::Single(_)));
    for (piece, realised) in singles.zip(cases.realise(target, &options.choices)?) {
        piece.realised = realised;
    }
    out.sort_by_key(|p| p.level);
    Ok(out)
}

/// As [`realise`] for a contraction beside others; what has no entry among the choices gets a tiling that leaves room.
fn beside(
    l: &Loop,
    (target, classes, choices): (&Target, &[NumericClass], &Choices),
    labels: &[String],
) -> Result<Realisation, CompileError> {
    let has_entry = tuned::entry(l, target, classes, choices).is_some();
    match &l.kind {
        LoopKind::Contract(c) if !has_entry => {
            let choice = contract::choose_for(c, target, (classes, Neighbours::Many));
            contract::realise_with(l, target, &choice).map_err(|source| refused(l, labels, source))
        }
        _ => realise(l, (target, classes, choices), labels),
    }
}

/// What the kernels of a loop depend on, besides the target.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Case<'a> {
    l: &'a Loop,
    classes: &'static [NumericClass],
    share: Share,
}

/// Loops to be realised, equal ones once.
#[derive(Default)]
struct Cases<'a> {
    /// Number of each distinct case.
    numbers: HashMap<Case<'a>, usize>,
    /// The distinct cases, each with the labels of its first loop.
    distinct: Vec<(Case<'a>, Vec<String>)>,
    /// The case of each loop.
    order: Vec<usize>,
}

impl<'a> Cases<'a> {
    fn add(&mut self, case: Case<'a>, labels: &[String]) {
        let number = *self.numbers.entry(case).or_insert_with(|| {
            self.distinct.push((case, labels.to_vec()));
            self.distinct.len() - 1
        });
        self.order.push(number);
    }

    /// The kernels of each loop, in the order in which they were added; made on several threads.
    fn realise(self, target: &Target, choices: &Choices) -> Result<Vec<Arc<Realised>>, CompileError> {
        let made = parallel::all(&self.distinct, |(case, labels)| case.realise(target, choices, labels))?;
        Ok(self.order.into_iter().map(|number| made[number].clone()).collect())
    }
}

impl Case<'_> {
    fn realise(
        &self,
        target: &Target,
        choices: &Choices,
        labels: &[String],
    ) -> Result<Arc<Realised>, CompileError> {
        let classes = self.classes;
        let realisation = match self.share {
            Share::Alone => realise(self.l, (target, classes, choices), labels)?,
            // What was measured alone says little about a part of the device.
            Share::Units(compute_units) => {
                let target = Target { compute_units, ..target.clone() };
                realise(self.l, (&target, classes, &Choices::new()), labels)?
            }
            Share::Beside => beside(self.l, (target, classes, choices), labels)?,
        };
        Ok(Realised::new(realisation))
    }
}

impl Realised {
    fn new(realisation: Realisation) -> Arc<Realised> {
        let code = |instance: &Instance| print::wgsl(&instance.kernel, &print::PrintOptions::default());
        let codes = realisation.dispatches.iter().map(code).collect();
        Arc::new(Realised { realisation, codes })
    }
}

/// Kernels of a loop, whose contractions may use the given numeric classes, as the choices say.
fn realise(
    l: &Loop,
    (target, classes, choices): (&Target, &[NumericClass], &Choices),
    labels: &[String],
) -> Result<Realisation, CompileError> {
    if target.backend == Backend::Host {
        return Ok(Realisation::default());
    }
    tuned::realise_by(l, target, classes, choices).map_err(|source| refused(l, labels, source))
}

fn refused(l: &Loop, labels: &[String], source: KernelError) -> CompileError {
    CompileError::Kernel { archetype: format!("{:?}", l.archetype()), label: labels.join(", "), source }
}

/// Emits all pieces.
pub(super) fn emit(
    schedule: &Schedule,
    pieces: Vec<Piece>,
    placement: &Placement,
    target: &Target,
) -> Result<Emitted, CompileError> {
    let mut e = Emitter { schedule, placement, target, kernels: Kernels::default(), steps: Steps::default() };
    let mut loops = Vec::new();
    for (p, piece) in pieces.iter().enumerate() {
        match &piece.what {
            What::Single(i) => {
                let node = &schedule.graph.loops[*i];
                let source = LoopId(loops.len() as u32);
                loops.push(node.l.clone());
                let places = e.places(node);
                e.dispatch(
                    piece,
                    source,
                    &node.l,
                    &Memory { places, scratch: &placement.scratch[p], counters: placement.counters[p] },
                )?;
            }
            What::Group(g) => {
                for (l, memory) in windows(&schedule.groups[*g], schedule, placement) {
                    let source = LoopId(loops.len() as u32);
                    let realisation =
                        realise(&l, (target, &[NumericClass::F32], &Choices::new()), &piece.labels)?;
                    let piece = Piece { realised: Realised::new(realisation), ..piece.clone() };
                    e.dispatch(&piece, source, &l, &Memory { places: memory, scratch: &[], counters: None })?;
                    loops.push(l);
                }
            }
        }
    }
    Ok(Emitted { kernels: e.kernels, loops, steps: e.steps })
}

/// The place of counters that no piece asked for: no arena, so the verifier would name it.
const UNPLACED: Place = Place { arena: ArenaId(u32::MAX), offset: 0 };

/// Where operands, results and scratch lie.
struct Memory<'a> {
    places: (Vec<Place>, Vec<Place>),
    scratch: &'a [Place],
    counters: Option<Place>,
}

struct Emitter<'a> {
    schedule: &'a Schedule,
    placement: &'a Placement,
    target: &'a Target,
    kernels: Kernels,
    steps: Steps,
}

impl Emitter<'_> {
    fn places(&self, node: &LoopNode) -> (Vec<Place>, Vec<Place>) {
        let of = |ts: &[TensorId]| -> Vec<Place> {
            ts.iter().filter_map(|t| self.placement.places[t.index()]).collect()
        };
        debug_assert!(self.schedule.graph.tensors.len() == self.placement.places.len());
        (of(&node.inputs), of(&node.outputs))
    }

    fn dispatch(
        &mut self,
        piece: &Piece,
        source: LoopId,
        l: &Loop,
        memory: &Memory<'_>,
    ) -> Result<(), CompileError> {
        let (operands, results) = &memory.places;
        if operands.len() != l.operands.len() || results.len() != l.results.len() {
            let faults = vec![format!("{}: a tensor has no place", piece.labels.join(", "))];
            return Err(CompileError::Faults { stage: "placement", faults });
        }
        let Realised { realisation, codes } = &*piece.realised;
        let bind = |slot: Slot, access: BindingAccess| {
            let (place, bytes) = match slot {
                Slot::Operand(i) => (operands[i], l.operands[i].bytes() as u64),
                Slot::Result(i) => (results[i], l.results[i].bytes() as u64),
                Slot::Scratch(i) => (memory.scratch[i], realisation.scratch[i]),
                Slot::Counters => (memory.counters.unwrap_or(UNPLACED), realisation.counters),
            };
            Binding { arena: place.arena, offset: place.offset, bytes, access }
        };
        if self.target.backend == Backend::Host {
            let reads = (0..operands.len()).map(|i| bind(Slot::Operand(i), BindingAccess::Read));
            let writes = (0..results.len()).map(|i| bind(Slot::Result(i), BindingAccess::Write));
            let bindings = reads.chain(writes).collect();
            let instance = format!("host {:?}", l.archetype());
            let d =
                Dispatch { work: Work::Loop, source, bindings, instance, provenance: piece.labels.clone() };
            self.steps.push(d, piece);
            return Ok(());
        }
        for (instance, code) in realisation.dispatches.iter().zip(codes) {
            let kernel = self.kernels.add_printed((instance, code), self.target)?;
            let accesses = self.kernels.accesses(kernel).to_vec();
            let bindings = instance.bindings.iter().zip(accesses).map(|(s, a)| bind(*s, a)).collect();
            let (parameters, groups) = (instance.parameters.clone(), instance.groups);
            let work = Work::Kernel { kernel, parameters, groups };
            let (instance, provenance) = (instance.name.clone(), piece.labels.clone());
            self.steps.push(Dispatch { work, source, bindings, instance, provenance }, piece);
        }
        Ok(())
    }
}

/// A flat loop with the places of its operands and results.
type Window = (Loop, (Vec<Place>, Vec<Place>));

/// The windows of an update group: runs of parameters that lie next to each other in every lane.
fn windows(group: &UpdateGroup, schedule: &Schedule, placement: &Placement) -> Vec<Window> {
    let graph = &schedule.graph;
    let place = |t: TensorId| placement.places[t.index()];
    let mut members: Vec<(Vec<Place>, usize, usize)> = group
        .members
        .iter()
        .map(|(m, p)| {
            let node = &graph.loops[*m];
            let all = node.inputs.iter().chain(&node.outputs).filter_map(|t| place(*t)).collect();
            (all, *m, graph.tensor(*p).ty.elements())
        })
        .collect();
    members.sort_by_key(|(places, ..)| places.iter().map(|p| (p.arena.0, p.offset)).collect::<Vec<_>>());
    let lanes: Vec<&Lane> = group.operands.iter().chain(&group.results).collect();
    let follows = |a: &(Vec<Place>, usize, usize), b: &(Vec<Place>, usize, usize)| {
        let step = aligned(a.2 as u64 * 4);
        a.0.len() == b.0.len()
            && a.0.iter().zip(&b.0).zip(&lanes).all(|((x, y), lane)| match lane {
                Lane::Shared(_) => x == y,
                _ => x.arena == y.arena && x.offset + step == y.offset,
            })
    };
    let mut out = Vec::new();
    let mut start = 0;
    for i in 0..members.len() {
        if i + 1 < members.len() && follows(&members[i], &members[i + 1]) {
            continue;
        }
        let before: u64 = members[start..i].iter().map(|m| aligned(m.2 as u64 * 4) / 4).sum();
        let elements = before as usize + members[i].2;
        let (first, node) = (&members[start].0, &graph.loops[members[start].1]);
        let (operands, results) = first.split_at(group.operands.len().min(first.len()));
        out.push((update::window(group, node, elements), (operands.to_vec(), results.to_vec())));
        start = i + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use griffinfly_ir::index::{Access, Store};
    use griffinfly_ir::loops::{Body, Map};
    use griffinfly_ir::types::TensorType;

    fn copy(n: usize) -> Loop {
        let ty = TensorType::f32([n]);
        let body = Body::of_load(0, &ty, Access::identity(1));
        let map = Map { domain: vec![n], body, stores: vec![Store::identity(0, 1)] };
        Loop { operands: vec![ty.clone()], results: vec![ty], kind: LoopKind::Map(map) }
    }

    fn cases(loops: &[Loop]) -> Cases<'_> {
        let mut cases = Cases::default();
        for l in loops {
            let case = Case { l, classes: &[NumericClass::F32], share: Share::Alone };
            cases.add(case, &[format!("copy of {}", l.operands[0].elements())]);
        }
        cases
    }

    #[test]
    fn equal_loops_are_realised_once_and_in_order() {
        let loops: Vec<Loop> = [8, 12, 8, 70, 12, 8].map(copy).to_vec();
        let made = cases(&loops).realise(&Target::minimal_vulkan(), &Choices::new()).unwrap();
        assert_eq!(made.len(), loops.len());
        for (i, j) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
            assert_eq!(Arc::ptr_eq(&made[i], &made[j]), loops[i] == loops[j], "{i} and {j}");
        }
        let alone = Realised::new(
            realise(&loops[3], (&Target::minimal_vulkan(), &[], &Choices::new()), &[]).unwrap(),
        );
        assert_eq!((&made[3].realisation, &made[3].codes), (&alone.realisation, &alone.codes));
    }

    #[test]
    fn the_first_refusal_is_told_whatever_thread_met_it() {
        let loops: Vec<Loop> = (1..40).map(|n| copy(4 * n)).collect();
        let target = Target { max_bindings: 1, ..Target::minimal_vulkan() };
        for _ in 0..20 {
            let refusal = cases(&loops).realise(&target, &Choices::new()).unwrap_err();
            assert!(refusal.to_string().contains("copy of 4"), "{refusal}");
        }
    }
}

//! Temporaries: when each is alive, whether a pointwise result takes the bytes of an operand, and where they lie.
//!
//! Input: dispatches in a valid order, in which every temporary has bytes of its own in an arena that does not exist. Their
//! dependencies are therefore those of the data alone. A *timetable* says when each dispatch runs; a temporary is alive from
//! the first time that touches it to the last, and the planner packs these lives. Output: the dispatches in order of time,
//! over real places.
//!
//! The timetable is what trades bytes for speed. Where every dispatch runs as early as data allows, no reuse of bytes makes a
//! dispatch wait: the levels are those of a program that shares nothing. Where fewer run at the same time, lives are shorter,
//! and reuse may serialise what data would not. One at a time is the memory-first end.

use super::dispatch::{Piece, What};
use super::order::{Timetable, Work, dependencies};
use super::place::Placement;
use crate::Options;
use crate::error::CompileError;
use crate::lower::{LoopNode, Phase, TensorId};
use crate::memory::{self, Interval, Mode, Plan};
use crate::program::{Arena, ArenaId, Dispatch, MemoryReport, Place, Role, SectionKind};
use crate::schedule::Schedule;
use griffinfly_ir::layout::aligned;
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::target::Target;

/// Most temporaries that are named as holders of the peak.
const HOLDERS: usize = 8;

/// The arena of temporaries that have no place yet.
const NOWHERE: ArenaId = ArenaId(u32::MAX);

/// A temporary: what a loop or a kernel writes for others of the same step.
#[derive(Clone, Debug)]
pub(super) struct Temporary {
    /// Bytes.
    pub(super) bytes: u64,
    /// Where it comes from.
    pub(super) label: String,
    /// Made in the prepare section, which does not run in every step: it must last.
    pub(super) lasts: bool,
}

/// The place of a temporary before memory is planned.
pub(super) fn nowhere(number: usize) -> Place {
    Place { arena: NOWHERE, offset: (number as u64) << 32 }
}

fn number(place: Place) -> Option<usize> {
    (place.arena == NOWHERE).then_some((place.offset >> 32) as usize)
}

/// Dispatches with their sections and the loop of the graph that each runs (none for a window of an update group).
#[derive(Default)]
pub(super) struct Steps {
    pub(super) dispatches: Vec<Dispatch>,
    pub(super) sections: Vec<SectionKind>,
    pub(super) loops: Vec<Option<usize>>,
}

impl Steps {
    /// Adds a dispatch of a piece.
    pub(super) fn push(&mut self, d: Dispatch, piece: &Piece) {
        self.dispatches.push(d);
        self.sections.push(piece.section);
        self.loops.push(if let What::Single(l) = piece.what { Some(l) } else { None });
    }
}

/// Gives every temporary its place, adds their arenas, and puts the dispatches in order.
///
/// # Errors
/// A byte budget below the smallest plan.
pub(super) fn run(
    schedule: &Schedule,
    placement: &mut Placement,
    mut steps: Steps,
    target: &Target,
    options: &Options,
) -> Result<(Steps, MemoryReport), CompileError> {
    let fixed = placement.arenas.iter().map(|a| a.bytes).sum();
    let (places, temporaries) = (&placement.places, &placement.temporaries);
    let after = dependencies(&steps.dispatches, &steps.sections);
    let touched: Vec<Vec<usize>> = steps.dispatches.iter().map(touched).collect();
    let bytes: Vec<u64> = temporaries.iter().map(|t| aligned(t.bytes)).collect();
    let work = Work { sections: &steps.sections, after: &after, touched: &touched, bytes: &bytes };
    let problem = Problem { schedule, places, temporaries, steps: &steps, work };
    let chosen = problem.choose(fixed, target.chunk_bytes(), options)?;
    let report = chosen.report(&problem, fixed, options.memory);
    let first = placement.arenas.len() as u32;
    for (chunk, bytes) in chosen.plan.chunks.iter().enumerate() {
        placement.arenas.push(Arena { role: Role::Scratch, chunk: chunk as u32, bytes: *bytes });
    }
    for b in steps.dispatches.iter_mut().flat_map(|d| &mut d.bindings) {
        if let Some(n) = number(Place { arena: b.arena, offset: b.offset }) {
            let spot = chosen.plan.spots[chosen.lives.of_temporary[n]];
            (b.arena, b.offset) = (ArenaId(first + spot.chunk), spot.offset);
        }
    }
    Ok((in_order(&steps, &chosen.timetable.order()), report))
}

fn in_order(steps: &Steps, order: &[usize]) -> Steps {
    Steps {
        dispatches: order.iter().map(|i| steps.dispatches[*i].clone()).collect(),
        sections: order.iter().map(|i| steps.sections[*i]).collect(),
        loops: order.iter().map(|i| steps.loops[*i]).collect(),
    }
}

/// What is to be planned.
struct Problem<'a> {
    schedule: &'a Schedule,
    places: &'a [Option<Place>],
    temporaries: &'a [Temporary],
    steps: &'a Steps,
    work: Work<'a>,
}

/// A plan with the timetable it belongs to.
struct Choice {
    timetable: Timetable,
    lives: Lives,
    plan: Plan,
    /// Whether as many dispatches as data allows may run at the same time.
    is_wide: bool,
}

impl Problem<'_> {
    /// Pairs of temporaries of which the second, a result of dispatch `i`, may take the bytes of the first, an operand.
    fn pairs(&self, i: usize) -> Vec<(usize, usize)> {
        let (Some(l), true) = (self.steps.loops[i], self.steps.sections[i] != SectionKind::Prepare) else {
            return Vec::new();
        };
        let node = &self.schedule.graph.loops[l];
        let number_of = |t: &TensorId| self.places[t.index()].and_then(number);
        let mut out = Vec::new();
        for (r, result) in node.outputs.iter().enumerate().filter_map(|(r, t)| Some((r, number_of(t)?))) {
            for (o, operand) in node.inputs.iter().enumerate().filter_map(|(o, t)| Some((o, number_of(t)?))) {
                if can_share(node, o, r) {
                    out.push((operand, result));
                }
            }
        }
        out
    }

    /// The smaller plan of two timetables with at most `width` dispatches at one time.
    fn at_width(&self, width: usize, chunk_bytes: u64, mode: Mode) -> Choice {
        let is_wide = width == usize::MAX;
        let plan = |timetable: Timetable| {
            let lives = Lives::new(self, &timetable, mode != Mode::Separate);
            let plan = memory::plan(&lives.intervals, chunk_bytes, mode);
            Choice { timetable, lives, plan, is_wide }
        };
        let early = plan(Timetable::early(&self.work, width));
        if is_wide {
            return early;
        }
        let frugal = plan(Timetable::frugal(&self.work, width));
        if frugal.plan.bytes() < early.plan.bytes() { frugal } else { early }
    }

    /// The first plan that fits the budget: from the widest on, in speed-first mode, or the narrowest.
    fn choose(&self, fixed: u64, chunk_bytes: u64, options: &Options) -> Result<Choice, CompileError> {
        let widest = if options.memory == Mode::Memory { 1 } else { usize::MAX };
        let mut next = self.at_width(widest, chunk_bytes, options.memory);
        let Some(budget) = options.budget else { return Ok(next) };
        let mut least = next.plan.bytes();
        let mut smallest: Option<Choice> = None;
        loop {
            if fixed + next.plan.bytes() <= budget {
                return Ok(next);
            }
            let width = next.timetable.width;
            if smallest.is_none() || next.plan.bytes() < least {
                least = next.plan.bytes();
                smallest = Some(next);
            }
            if width <= 1 || options.memory == Mode::Separate {
                break;
            }
            next = self.at_width(width / 2, chunk_bytes, options.memory);
        }
        let holders = smallest.map(|c| c.lives.peak().1).unwrap_or_default();
        Err(CompileError::Budget { needed: fixed + least, budget, fixed, holders })
    }
}

impl Choice {
    fn report(&self, problem: &Problem<'_>, fixed: u64, mode: Mode) -> MemoryReport {
        let logical: u64 = problem.work.bytes.iter().sum();
        let (bound, peak_holders) = self.lives.peak();
        MemoryReport {
            physical_bytes: fixed + self.plan.bytes(),
            logical_bytes: fixed + logical,
            scratch_bytes: self.plan.bytes(),
            scratch_lower_bound: bound,
            peak_holders,
            mode,
            width: if self.is_wide { None } else { Some(self.timetable.width as u32) },
        }
    }
}

/// When temporaries are alive; those that share memory in place share a life.
struct Lives {
    intervals: Vec<Interval>,
    /// Label of the first temporary of each life.
    labels: Vec<String>,
    of_temporary: Vec<usize>,
}

impl Lives {
    fn new(problem: &Problem<'_>, timetable: &Timetable, in_place: bool) -> Lives {
        let uses = Uses::new(problem, timetable);
        let mut life: Vec<Interval> = uses.intervals.clone();
        let mut owner: Vec<usize> = (0..life.len()).collect();
        if in_place {
            let mut given = vec![false; life.len()];
            for i in timetable.order() {
                for (donor, result) in problem.pairs(i) {
                    let is_last = uses.last_users[donor] == LastUsers { one: i, count: 1 };
                    let taken = given[donor] || owner[result] != result;
                    if is_last && !taken && life[donor].bytes == life[result].bytes {
                        (owner[result], given[donor]) = (owner[donor], true);
                        let last = life[result].last;
                        life[owner[donor]].last = life[owner[donor]].last.max(last);
                    }
                }
            }
        }
        let kept: Vec<usize> = (0..life.len()).filter(|n| owner[*n] == *n).collect();
        let mut place = vec![0; life.len()];
        kept.iter().enumerate().for_each(|(at, n)| place[*n] = at);
        Lives {
            intervals: kept.iter().map(|n| life[*n].clone()).collect(),
            labels: kept.iter().map(|n| problem.temporaries[*n].label.clone()).collect(),
            of_temporary: owner.iter().map(|n| place[*n]).collect(),
        }
    }

    /// The most bytes alive at one time, and whose they are, the largest first.
    fn peak(&self) -> (u64, Vec<(String, u64)>) {
        let (bound, peak) = memory::lower_bound(&self.intervals);
        let all = self.intervals.iter().zip(&self.labels);
        let mut holders: Vec<(String, u64)> = all
            .filter(|(i, _)| i.first <= peak && peak <= i.last)
            .map(|(i, label)| (label.clone(), i.bytes))
            .collect();
        holders.sort_by_key(|(label, bytes)| (u64::MAX - bytes, label.clone()));
        holders.truncate(HOLDERS);
        (bound, holders)
    }
}

/// The dispatches that touch a temporary at the last time: one of them, and how many.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LastUsers {
    one: usize,
    count: usize,
}

/// From when to when each temporary is used.
struct Uses {
    intervals: Vec<Interval>,
    last_users: Vec<LastUsers>,
}

impl Uses {
    fn new(problem: &Problem<'_>, timetable: &Timetable) -> Uses {
        let all = problem.temporaries;
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; all.len()];
        let mut last_users = vec![LastUsers { one: 0, count: 0 }; all.len()];
        for i in timetable.order() {
            let time = timetable.times[i];
            for &n in &problem.work.touched[i] {
                let (first, last) = spans[n].unwrap_or((time, time));
                let count = if last == time { last_users[n].count + 1 } else { 1 };
                (spans[n], last_users[n]) = (Some((first, time)), LastUsers { one: i, count });
            }
        }
        for (n, _) in all.iter().enumerate().filter(|(_, t)| t.lasts) {
            (spans[n], last_users[n].count) = (Some((0, timetable.end)), 0);
        }
        let interval = |(t, span): (&Temporary, &Option<(usize, usize)>)| {
            let (first, last) = span.unwrap_or_default();
            Interval { bytes: t.bytes, first, last }
        };
        Uses { intervals: all.iter().zip(&spans).map(interval).collect(), last_users }
    }
}

/// The temporaries a dispatch touches.
fn touched(d: &Dispatch) -> Vec<usize> {
    let mut all: Vec<usize> =
        d.bindings.iter().filter_map(|b| number(Place { arena: b.arena, offset: b.offset })).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether result `r` of a pointwise loop may take the memory of operand `o`: both are touched in place only.
fn can_share(node: &LoopNode, o: usize, r: usize) -> bool {
    let LoopKind::Map(map) = &node.l.kind else { return false };
    let dims = &node.l.results[r].dims;
    let in_place = map
        .body
        .loads
        .iter()
        .filter(|l| node.inputs[l.operand] == node.inputs[o])
        .all(|l| l.access.is_identity(&node.l.operands[l.operand].dims, &map.domain));
    let stored = map
        .stores
        .iter()
        .filter(|s| s.result == r)
        .all(|s| s.coords.iter().enumerate().all(|(a, c)| c.as_axis() == Some(a)));
    // WebGPU binds both as one, with one kind of elements.
    let alike = node.l.operands[o].dtype == node.l.results[r].dtype;
    in_place && stored && alike && *dims == map.domain && node.phase != Phase::Update
}

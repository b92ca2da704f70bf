//! Which dispatches come after which, from byte ranges, and when each runs.
//!
//! Dispatches come in a valid sequential order. A dispatch must come after every earlier one of its section with which it
//! shares bytes that either writes (read after write, write after read, write after write). The ranges touched so far are
//! kept as disjoint segments with their last writer and its readers, so the work grows with the ranges and not with their
//! pairs: a dispatch depends directly on the last writer, and through it on those before.

use crate::program::{ArenaId, Binding, BindingAccess, Dispatch, SectionKind};
use std::collections::{BTreeMap, HashMap};

/// The sections in the order in which they run.
pub(super) const SECTIONS: [SectionKind; 3] =
    [SectionKind::Prepare, SectionKind::ForwardBackward, SectionKind::Update];

/// For each dispatch, earlier ones of its section that it must come after: those that follow from others may be left out.
pub(super) fn dependencies(dispatches: &[Dispatch], sections: &[SectionKind]) -> Vec<Vec<usize>> {
    let mut after = vec![Vec::new(); dispatches.len()];
    for kind in SECTIONS {
        let mut arenas: HashMap<ArenaId, Touched> = HashMap::new();
        for (i, d) in dispatches.iter().enumerate().filter(|(i, _)| sections[*i] == kind) {
            for b in &d.bindings {
                arenas.entry(b.arena).or_default().touch(i, b, &mut after[i]);
            }
            after[i].sort_unstable();
            after[i].dedup();
        }
    }
    after
}

/// The bytes of an arena that dispatches touched, as disjoint segments by their start.
#[derive(Default)]
struct Touched(BTreeMap<u64, Segment>);

#[derive(Clone)]
struct Segment {
    end: u64,
    writer: Option<usize>,
    /// Those that read it since.
    readers: Vec<usize>,
}

impl Touched {
    /// Notes an access of dispatch `i` and whom it must come after.
    fn touch(&mut self, i: usize, b: &Binding, after: &mut Vec<usize>) {
        let (start, end) = (b.offset, b.offset + b.bytes);
        self.cut(start);
        self.cut(end);
        self.fill(start, end);
        for segment in self.0.range_mut(start..end).map(|(_, segment)| segment) {
            let others = |d: &usize| *d != i;
            after.extend(segment.writer.filter(others));
            if b.access == BindingAccess::Write {
                after.extend(segment.readers.drain(..).filter(others));
                segment.writer = Some(i);
            } else if segment.readers.last() != Some(&i) {
                segment.readers.push(i);
            }
        }
    }

    /// Makes a segment boundary at `at`.
    fn cut(&mut self, at: u64) {
        if let Some((_, segment)) = self.0.range_mut(..at).next_back()
            && segment.end > at
        {
            let tail = segment.clone();
            segment.end = at;
            self.0.insert(at, tail);
        }
    }

    /// Makes untouched segments of the gaps between `start` and `end`, which are boundaries.
    fn fill(&mut self, start: u64, end: u64) {
        let mut gaps = Vec::new();
        let mut at = start;
        for (from, segment) in self.0.range(start..end) {
            if *from > at {
                gaps.push((at, *from));
            }
            at = segment.end;
        }
        if at < end {
            gaps.push((at, end));
        }
        let untouched = |end| Segment { end, writer: None, readers: Vec::new() };
        self.0.extend(gaps.into_iter().map(|(from, to)| (from, untouched(to))));
    }
}

/// When each dispatch runs. Times count through the sections; dispatches of one time run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timetable {
    /// Time of each dispatch.
    pub(super) times: Vec<usize>,
    /// Number of times.
    pub(super) end: usize,
    /// Most dispatches of one time.
    pub(super) width: usize,
}

/// What timetables are made of.
pub(super) struct Work<'a> {
    /// Section of each dispatch.
    pub(super) sections: &'a [SectionKind],
    /// What each dispatch must come after.
    pub(super) after: &'a [Vec<usize>],
    /// The temporaries that each dispatch touches.
    pub(super) touched: &'a [Vec<usize>],
    /// Bytes of each temporary.
    pub(super) bytes: &'a [u64],
}

impl Timetable {
    /// Every dispatch as early as what it must come after allows, with at most `width` at one time; where not all fit, those
    /// that could run earliest come first.
    pub(super) fn early(work: &Work<'_>, width: usize) -> Timetable {
        let mut times = vec![0; work.after.len()];
        let mut count: Vec<usize> = Vec::new();
        for kind in SECTIONS {
            // No time before `open` has room.
            let first = count.len();
            let mut open = first;
            for i in work.by_level(kind) {
                let earliest = work.after[i].iter().map(|d| times[*d] + 1).max().unwrap_or(first);
                let is_full = |time: usize| count.get(time).is_some_and(|n| *n >= width);
                while is_full(open) {
                    open += 1;
                }
                let mut time = earliest.max(open);
                while is_full(time) {
                    time += 1;
                }
                if count.len() <= time {
                    count.resize(time + 1, 0);
                }
                count[time] += 1;
                times[i] = time;
            }
        }
        let (end, width) = (count.len(), count.iter().copied().max().unwrap_or(0));
        Timetable { times, end, width }
    }

    /// At most `width` dispatches at one time: of those that can run, the ones that leave the fewest bytes alive.
    pub(super) fn frugal(work: &Work<'_>, width: usize) -> Timetable {
        let n = work.after.len();
        let mut state = Frugal::new(work);
        let mut table = Timetable { times: vec![0; n], end: 0, width: 0 };
        for kind in SECTIONS {
            let mut ready: Vec<usize> =
                (0..n).filter(|i| work.sections[*i] == kind && work.after[*i].is_empty()).collect();
            while !ready.is_empty() {
                let mut now = Vec::new();
                while now.len() < width && !ready.is_empty() {
                    let costs = ready.iter().enumerate().map(|(at, i)| (state.growth(*i), *i, at));
                    let Some((_, i, at)) = costs.min() else { break };
                    ready.swap_remove(at);
                    state.start(i);
                    now.push(i);
                }
                now.iter().for_each(|i| table.times[*i] = table.end);
                table.width = table.width.max(now.len());
                table.end += 1;
                ready.extend(now.into_iter().flat_map(|i| state.finish(i)));
            }
        }
        table
    }

    /// The dispatches in order of time.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        order.sort_by_key(|i| self.times[*i]);
        order
    }
}

impl Work<'_> {
    /// The dispatches of a section, those that can run earliest first.
    fn by_level(&self, kind: SectionKind) -> Vec<usize> {
        let mut level = vec![0; self.after.len()];
        let mut own: Vec<usize> = (0..self.after.len()).filter(|i| self.sections[*i] == kind).collect();
        for &i in &own {
            level[i] = self.after[i].iter().map(|d| level[*d] + 1).max().unwrap_or(0);
        }
        own.sort_by_key(|i| level[*i]);
        own
    }
}

/// What is alive while dispatches are chosen one after the other.
struct Frugal<'a> {
    work: &'a Work<'a>,
    dependents: Vec<Vec<usize>>,
    /// How many dispatches each still waits for.
    waits: Vec<usize>,
    /// How many dispatches that have not started touch each temporary.
    users: Vec<usize>,
    is_alive: Vec<bool>,
}

impl<'a> Frugal<'a> {
    fn new(work: &'a Work<'a>) -> Self {
        let mut dependents = vec![Vec::new(); work.after.len()];
        for (i, after) in work.after.iter().enumerate() {
            after.iter().for_each(|d| dependents[*d].push(i));
        }
        let mut users = vec![0; work.bytes.len()];
        work.touched.iter().flatten().for_each(|n| users[*n] += 1);
        let waits = work.after.iter().map(Vec::len).collect();
        Frugal { work, dependents, waits, users, is_alive: vec![false; work.bytes.len()] }
    }

    /// Bytes that are alive after a dispatch and were not before it, less those that it is the last to touch.
    fn growth(&self, i: usize) -> i64 {
        let of = |n: &usize| {
            let born = if self.is_alive[*n] { 0 } else { self.work.bytes[*n] as i64 };
            let dead = if self.users[*n] == 1 { self.work.bytes[*n] as i64 } else { 0 };
            born - dead
        };
        self.work.touched[i].iter().map(of).sum()
    }

    fn start(&mut self, i: usize) {
        for &n in &self.work.touched[i] {
            self.users[n] -= 1;
            self.is_alive[n] = true;
        }
    }

    /// The dispatches that waited only for this one.
    fn finish(&mut self, i: usize) -> Vec<usize> {
        let mut free = Vec::new();
        for &d in &self.dependents[i] {
            self.waits[d] -= 1;
            if self.waits[d] == 0 {
                free.push(d);
            }
        }
        free
    }
}

#[cfg(test)]
mod tests;

//! The memory planner: where temporaries lie.
//!
//! Input: temporaries with sizes and the levels between which they are alive. Output: a chunk and an offset for each, such
//! that temporaries alive at the same level never overlap. Several packing orders are tried and the smallest plan is kept;
//! the report says how far it is from the lower bound, the largest sum of bytes alive at one level.

use griffinfly_ir::layout::aligned;

/// How temporaries share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// As few bytes as possible.
    #[default]
    Memory,
    /// Nothing is shared: for comparison and debugging.
    Separate,
}

/// A temporary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Bytes.
    pub bytes: u64,
    /// First level it is alive at.
    pub first: usize,
    /// Last level it is alive at.
    pub last: usize,
}

/// Where a temporary lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Spot {
    /// Chunk number.
    pub chunk: u32,
    /// Byte offset.
    pub offset: u64,
}

/// A plan for all temporaries.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Plan {
    /// Where each lies.
    pub spots: Vec<Spot>,
    /// Bytes of each chunk.
    pub chunks: Vec<u64>,
}

impl Plan {
    /// Bytes of all chunks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().sum()
    }
}

/// The largest sum of bytes alive at one level, and that level.
#[must_use]
pub fn lower_bound(intervals: &[Interval]) -> (u64, usize) {
    let levels = intervals.iter().map(|i| i.last + 1).max().unwrap_or(0);
    let alive = |l: usize| -> u64 {
        intervals.iter().filter(|i| i.first <= l && l <= i.last).map(|i| aligned(i.bytes)).sum()
    };
    (0..levels).map(|l| (alive(l), l)).max_by_key(|(b, l)| (*b, usize::MAX - l)).unwrap_or((0, 0))
}

/// Packs temporaries into chunks of at most `chunk_bytes`. Every temporary must fit in a chunk.
#[must_use]
pub fn plan(intervals: &[Interval], chunk_bytes: u64, mode: Mode) -> Plan {
    if mode == Mode::Separate {
        let apart: Vec<Interval> =
            intervals.iter().map(|i| Interval { bytes: i.bytes, first: 0, last: usize::MAX - 1 }).collect();
        return pack(&apart, &(0..apart.len()).collect::<Vec<_>>(), chunk_bytes);
    }
    let (bound, peak) = lower_bound(intervals);
    let mut best: Option<Plan> = None;
    for order in orders(intervals, peak) {
        let p = pack(intervals, &order, chunk_bytes);
        if best.as_ref().is_none_or(|b| p.bytes() < b.bytes()) {
            best = Some(p);
        }
        if best.as_ref().is_some_and(|b| b.bytes() <= bound) {
            break;
        }
    }
    best.unwrap_or_default()
}

/// Packing orders worth trying.
fn orders(intervals: &[Interval], peak: usize) -> Vec<Vec<usize>> {
    let key = |f: &dyn Fn(&Interval) -> (u64, u64)| {
        let mut order: Vec<usize> = (0..intervals.len()).collect();
        order.sort_by_key(|&i| (f(&intervals[i]), i));
        order
    };
    let length = |i: &Interval| (i.last - i.first) as u64;
    let down = |x: u64| u64::MAX - x;
    let at_peak = move |i: &Interval| u64::from(!(i.first <= peak && peak <= i.last));
    let away = move |i: &Interval| {
        if i.last < peak { (peak - i.last) as u64 } else { i.first.saturating_sub(peak) as u64 }
    };
    vec![
        key(&|i| (down(i.bytes), i.first as u64)),
        key(&|i| (at_peak(i), down(i.bytes))),
        key(&|i| (down(i.bytes * (length(i) + 1)), i.first as u64)),
        key(&|i| (i.first as u64, down(i.bytes))),
        key(&|i| (down(i.last as u64), down(i.bytes))),
        key(&|i| (away(i), down(length(i)))),
        key(&|i| (away(i), down(i.bytes))),
        key(&|i| (down(length(i)), down(i.bytes))),
    ]
}

/// Puts each temporary, in this order, at the lowest place free during its life (best fit among gaps).
fn pack(intervals: &[Interval], order: &[usize], chunk_bytes: u64) -> Plan {
    let mut plan = Plan { spots: vec![Spot::default(); intervals.len()], chunks: Vec::new() };
    let mut placed: Vec<usize> = Vec::new();
    for &i in order {
        let me = &intervals[i];
        let size = aligned(me.bytes);
        let overlaps = |j: &usize| intervals[*j].first <= me.last && me.first <= intervals[*j].last;
        let mut chunk = 0u32;
        let spot = loop {
            if chunk as usize == plan.chunks.len() {
                plan.chunks.push(0);
            }
            let mut busy: Vec<(u64, u64)> = placed
                .iter()
                .filter(|j| plan.spots[**j].chunk == chunk && overlaps(j))
                .map(|&j| (plan.spots[j].offset, plan.spots[j].offset + aligned(intervals[j].bytes)))
                .collect();
            busy.sort_unstable();
            match gap(&busy, size, chunk_bytes) {
                Some(offset) => break Spot { chunk, offset },
                None => chunk += 1,
            }
        };
        plan.chunks[spot.chunk as usize] = plan.chunks[spot.chunk as usize].max(spot.offset + size);
        plan.spots[i] = spot;
        placed.push(i);
    }
    plan
}

/// The smallest gap that holds `size`, else the end if it fits below `limit`.
fn gap(busy: &[(u64, u64)], size: u64, limit: u64) -> Option<u64> {
    let mut best: Option<(u64, u64)> = None;
    let mut end = 0;
    for &(from, to) in busy {
        if from > end && from - end >= size && best.is_none_or(|(room, _)| from - end < room) {
            best = Some((from - end, end));
        }
        end = end.max(to);
    }
    match best {
        Some((_, offset)) => Some(offset),
        None if busy.is_empty() || end + size <= limit => Some(end),
        None => None,
    }
}

#[cfg(test)]
mod tests;

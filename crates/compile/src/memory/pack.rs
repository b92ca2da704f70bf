//! Packing in a given order.
//!
//! Input: intervals and an [`Arrangement`], the order in which they are placed and the side of the free space each prefers.
//! Output: a plan, and the first interval that did not fit below the lower bound.

use super::{Interval, Plan, Spot};
use griffinfly_ir::layout::aligned;

/// Which free place a temporary takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The lowest.
    Lowest,
    /// The highest below the ceiling.
    Highest,
    /// The smallest gap.
    Tightest,
}

/// What a greedy packing is determined by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// Intervals in the order in which they are placed.
    pub(super) order: Vec<usize>,
    /// The preference of each interval.
    pub(super) sides: Vec<Side>,
}

/// A plan and what stands in its way.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    pub(super) plan: Plan,
    /// The first interval that was placed above the ceiling.
    pub(super) offender: Option<usize>,
}

/// Intervals prepared for packing many times.
pub(super) struct Packer {
    sizes: Vec<u64>,
    /// For each interval those alive at some level of its life.
    pub(super) overlaps: Vec<Vec<usize>>,
    /// Nothing lies above this unless it does not fit below.
    ceiling: u64,
    /// Bytes of a chunk.
    limit: u64,
}

impl Packer {
    pub(super) fn new(intervals: &[Interval], bound: u64, limit: u64) -> Self {
        let meet = |a: &Interval, b: &Interval| a.first <= b.last && b.first <= a.last;
        let overlaps = |i: usize| {
            let others = (0..intervals.len()).filter(|&j| j != i && meet(&intervals[i], &intervals[j]));
            others.collect()
        };
        Packer {
            sizes: intervals.iter().map(|i| aligned(i.bytes)).collect(),
            overlaps: (0..intervals.len()).map(overlaps).collect(),
            ceiling: bound.min(limit / 256 * 256),
            limit,
        }
    }

    /// Steps that one packing takes, about.
    pub(super) fn work(&self) -> usize {
        self.sizes.len() + self.overlaps.iter().map(Vec::len).sum::<usize>()
    }

    /// Places every interval in order.
    pub(super) fn pack(&self, arrangement: &Arrangement) -> Packed {
        let n = self.sizes.len();
        let mut plan = Plan { spots: vec![Spot::default(); n], chunks: Vec::new() };
        let (mut placed, mut offender) = (vec![false; n], None);
        let mut busy = Vec::new();
        for &i in &arrangement.order {
            let mut chunk = 0;
            let offset = loop {
                busy.clear();
                let here = |j: &&usize| placed[**j] && plan.spots[**j].chunk == chunk;
                let range = |j: &usize| (plan.spots[*j].offset, plan.spots[*j].offset + self.sizes[*j]);
                busy.extend(self.overlaps[i].iter().filter(here).map(range));
                busy.sort_unstable();
                match self.place(&busy, self.sizes[i], arrangement.sides[i]) {
                    Some(offset) => break offset,
                    None => chunk += 1,
                }
            };
            let end = offset + self.sizes[i];
            if plan.chunks.len() <= chunk as usize {
                plan.chunks.resize(chunk as usize + 1, 0);
            }
            plan.chunks[chunk as usize] = plan.chunks[chunk as usize].max(end);
            plan.spots[i] = Spot { chunk, offset };
            placed[i] = true;
            if (end > self.ceiling || chunk > 0) && offender.is_none() {
                offender = Some(i);
            }
        }
        Packed { plan, offender }
    }

    /// A free place below the ceiling, else above everything if the chunk has room.
    fn place(&self, busy: &[(u64, u64)], size: u64, side: Side) -> Option<u64> {
        let (mut end, mut lowest, mut highest) = (0, None, None);
        let mut tightest: Option<(u64, u64)> = None;
        for &(from, to) in busy.iter().chain([&(self.ceiling, 0)]) {
            let below = from.min(self.ceiling).saturating_sub(end);
            let room = if below >= size { below } else { from.saturating_sub(end) };
            if room >= size {
                lowest = lowest.or(Some(end));
                if below >= size || highest.is_none() {
                    highest = Some(end + room - size);
                }
                if tightest.is_none_or(|(least, _)| room < least) {
                    tightest = Some((room, end));
                }
            }
            end = to.max(end);
        }
        let found = match side {
            Side::Lowest => lowest,
            Side::Highest => highest,
            Side::Tightest => tightest.map(|(_, at)| at),
        };
        let above = (busy.is_empty() || end + size <= self.limit).then_some(end);
        found.or(above)
    }
}

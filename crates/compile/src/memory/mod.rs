//! The memory planner: where temporaries lie.
//!
//! Input: temporaries with sizes and the levels between which they are alive. Output: a chunk and an offset for each, such
//! that temporaries alive at the same level never overlap. What counts as a level, and so how much can be shared, is the
//! caller's choice: see [`Mode`].
//!
//! This is dynamic storage allocation, which is NP-hard (Garey and Johnson 1979, problem SR2). The lower bound, the largest
//! sum of bytes alive at one level, is not always reachable: there are sets of intervals whose best plan is larger. So the
//! planner packs greedily in several orders, growing from both ends of the bound, and improves the best of these plans by a
//! local search of bounded work that stops close to the bound. On intervals shaped like a network's (activations saved for
//! a mirrored backward pass, gradients and scratch between) it is within 5 % of the bound; on arbitrary sets, or where a
//! plan needs several chunks, it can be further away, and the report says how far.

mod pack;
mod search;

use griffinfly_ir::layout::aligned;
use pack::{Arrangement, Packer, Side};
use serde::{Deserialize, Serialize};

/// How temporaries share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As few bytes as leave the levels as they would be if nothing were shared: bytes are reused only where no dispatch has
    /// to wait for it. With a byte budget, as wide levels as the budget allows.
    #[default]
    Speed,
    /// As few bytes as possible: dispatches are placed as if they ran one after the other.
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
    let (mut born, mut dead) = (vec![0; levels + 1], vec![0; levels + 1]);
    for i in intervals {
        born[i.first] += aligned(i.bytes);
        dead[i.last + 1] += aligned(i.bytes);
    }
    let (mut alive, mut most) = (0, (0, 0));
    for level in 0..levels {
        alive = alive + born[level] - dead[level];
        if alive > most.0 {
            most = (alive, level);
        }
    }
    most
}

/// Packs temporaries into chunks of at most `chunk_bytes`. Every temporary must fit in a chunk.
#[must_use]
pub fn plan(intervals: &[Interval], chunk_bytes: u64, mode: Mode) -> Plan {
    match mode {
        Mode::Separate => separate(intervals, chunk_bytes),
        Mode::Speed | Mode::Memory => {
            let (bound, peak) = lower_bound(intervals);
            let packer = Packer::new(intervals, bound, chunk_bytes);
            search::run(&packer, &starts(intervals, peak), bound)
        }
    }
}

/// One after the other.
fn separate(intervals: &[Interval], chunk_bytes: u64) -> Plan {
    let mut plan = Plan::default();
    for i in intervals {
        let size = aligned(i.bytes);
        if plan.chunks.last().is_none_or(|used| *used > 0 && used + size > chunk_bytes) {
            plan.chunks.push(0);
        }
        let chunk = plan.chunks.len() - 1;
        plan.spots.push(Spot { chunk: chunk as u32, offset: plan.chunks[chunk] });
        plan.chunks[chunk] += size;
    }
    plan
}

/// Arrangements worth trying: each order with the tightest gap for all, with alternating ends, and with short lives on top.
fn starts(intervals: &[Interval], peak: usize) -> Vec<Arrangement> {
    let n = intervals.len();
    let tight = vec![Side::Tightest; n];
    let ends = |low: bool| if low { Side::Lowest } else { Side::Highest };
    let alternating: Vec<Side> = (0..n).map(|i| ends(i % 2 == 0)).collect();
    let by_life: Vec<Side> = intervals.iter().map(|i| ends(i.last - i.first > 1)).collect();
    let with = |order: Vec<usize>| {
        [&tight, &alternating, &by_life].map(|s| Arrangement { order: order.clone(), sides: s.clone() })
    };
    orders(intervals, peak).into_iter().flat_map(with).collect()
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
    let area = |i: &Interval| i.bytes.saturating_mul(length(i) + 1);
    vec![
        key(&|i| (down(i.bytes), i.first as u64)),
        key(&|i| (at_peak(i), down(i.bytes))),
        key(&|i| (down(area(i)), i.first as u64)),
        key(&|i| (i.first as u64, down(i.bytes))),
        key(&|i| (down(i.last as u64), down(i.bytes))),
        key(&|i| (away(i), down(length(i)))),
        key(&|i| (away(i), down(i.bytes))),
        key(&|i| (down(length(i)), down(i.bytes))),
    ]
}

#[cfg(test)]
mod tests;

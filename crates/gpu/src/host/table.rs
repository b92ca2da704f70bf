//! Tables of offsets: for loads whose runs are short, guarded or not affine.
//!
//! Axes are divided into a *suffix* (all points of it stand in the table in order) and the axes before it. Of those, an
//! axis that no bound uses and that the offset is affine in only shifts the offsets; each value of any other has a table
//! of its own. So the table of an image patch read over (channel, i, j, image, row, column) covers (i, j) x (row, column),
//! whatever the number of channels and images.

use super::code::LoadPlan;
use super::memory::View;
use super::points::{LANES, Points};
use griffinfly_ir::index::IndexExpr;

/// Entries of a table at most.
const MAX_ENTRIES: usize = 1 << 16;

/// The same where offsets are expensive to compute.
const MAX_COSTLY_ENTRIES: usize = 1 << 18;

/// A suffix of this many points is long enough.
const LONG_SUFFIX: usize = 256;

/// A suffix shorter than this does not pay.
const SHORT_SUFFIX: usize = 16;

/// Runs at least this long are not read through a table.
const LONG_RUN: usize = 12;

/// The same for runs with bounds.
const LONG_GUARDED_RUN: usize = 48;

/// An axis before the suffix.
#[derive(Debug)]
struct Leading {
    extent: usize,
    /// Change of the offset per step, 0 for axes with tables of their own.
    shift: i64,
    /// Change of the table number per step.
    table: usize,
}

/// Precomputed offsets.
#[derive(Debug)]
pub(super) struct Table {
    /// Offsets by table and suffix point; -1 where the load does not happen.
    offsets: Vec<i32>,
    suffix: usize,
    /// Axes before the suffix, innermost first.
    leading: Vec<Leading>,
}

impl Table {
    /// The table of a load with this offset and these bound expressions, if it pays.
    pub(super) fn new(
        plan: &LoadPlan,
        offset: &IndexExpr,
        bounds: &[IndexExpr],
        extents: &[usize],
    ) -> Option<Table> {
        let run = extents.last().copied().unwrap_or(1);
        let long = run >= if bounds.is_empty() { LONG_RUN } else { LONG_GUARDED_RUN };
        let points: usize = extents.iter().product();
        if plan.id.is_some() || (plan.by_runs && (long || points <= LANES)) {
            return None;
        }
        let shift = |a: usize| offset.coefficient(a).filter(|_| !bounds.iter().any(|b| b.uses(a)));
        let limit = if plan.by_runs { MAX_ENTRIES } else { MAX_COSTLY_ENTRIES };
        // Entries with a suffix from each axis on.
        let entries = |from: usize| {
            let tables = (0..from).filter(|a| shift(*a).is_none()).map(|a| extents[a]).product::<usize>();
            tables.saturating_mul(extents[from..].iter().product())
        };
        let mut from = extents.len() - 1;
        while from > 0
            && extents[from..].iter().product::<usize>() < LONG_SUFFIX
            && entries(from - 1) <= limit
        {
            from -= 1;
        }
        let suffix: usize = extents[from..].iter().product();
        if entries(from) > limit || (from > 0 && suffix < SHORT_SUFFIX) {
            return None;
        }
        let (mut leading, mut tables) = (Vec::new(), 1);
        for a in (0..from).rev() {
            let table = if shift(a).is_some() { 0 } else { tables };
            tables *= if table == 0 { 1 } else { extents[a] };
            leading.push(Leading { extent: extents[a], shift: shift(a).unwrap_or(0), table });
        }
        let mut table = Table { offsets: Vec::with_capacity(entries(from)), suffix, leading };
        (0..tables).for_each(|t| table.fill(plan, extents, t));
        Some(table)
    }

    /// Appends table number `t`: the suffix with its axes at their values and the shifting ones at 0.
    fn fill(&mut self, plan: &LoadPlan, extents: &[usize], t: usize) {
        let (mut first, mut stride) = (0, self.suffix);
        for l in &self.leading {
            first += t.checked_div(l.table).map_or(0, |t| t % l.extent * stride);
            stride *= l.extent;
        }
        let (mut block, mut offsets) = (Points::default(), [0; LANES]);
        for at in (0..self.suffix).step_by(LANES) {
            block.set(first + at, LANES.min(self.suffix - at));
            block.find_runs(extents);
            plan.offsets(&block, None, &mut offsets);
            self.offsets.extend_from_slice(&offsets[..block.count()]);
        }
    }

    /// Reads the points from flat index `start`.
    pub(super) fn read(&self, view: &View, start: usize, fill: u32, out: &mut [u32]) {
        let mut at = start;
        let mut out = out;
        while !out.is_empty() {
            let (mut rest, from) = (at / self.suffix, at % self.suffix);
            let n = out.len().min(self.suffix - from);
            let (mut base, mut table) = (0, 0);
            for l in &self.leading {
                let c = rest % l.extent;
                rest /= l.extent;
                base += l.shift * c as i64;
                table += l.table * c;
            }
            let (now, later) = std::mem::take(&mut out).split_at_mut(n);
            let first = table * self.suffix + from;
            view.gather(base, &self.offsets[first..first + n], fill, now);
            (out, at) = (later, at + n);
        }
    }
}

//! Loads and conditions over blocks.

use super::code::{Id, LoadPlan};
use super::evaluate::Scratch;
use super::forms::Guard;
use super::memory::View;
use super::points::{LANES, Points};

/// Evaluates a load.
pub(super) fn load(plan: &LoadPlan, operands: &[View], scratch: &Scratch, out: &mut [u32]) {
    let view = &operands[plan.operand];
    let ids = plan.id.as_ref().map(|id| (id, scratch.registers[id.register].as_slice()));
    if let Some(table) = &plan.table {
        table.read(view, scratch.points.start(), plan.fill, out);
    } else if plan.by_runs && ids.is_none_or(|(id, _)| id.uniform) {
        load_runs(plan, view, &scratch.points, ids, out);
    } else {
        let mut offsets = [0; LANES];
        plan.offsets(&scratch.points, ids, &mut offsets);
        view.gather(0, &offsets[..out.len()], plan.fill, out);
    }
    if plan.is_bool {
        out.iter_mut().for_each(|w| *w = u32::from(*w != 0));
    }
}

impl Id {
    fn shift(&self, id: u32) -> i64 {
        i64::from((id as i32).clamp(0, self.last)) * self.stride
    }
}

/// Runs with constant stride, their guards intervals.
fn load_runs(plan: &LoadPlan, view: &View, points: &Points, ids: Option<(&Id, &[u32])>, out: &mut [u32]) {
    let stride = plan.offset.stride().unwrap_or(0);
    if let (Some(at), true) = (points.only_run(), plan.guards.is_empty()) {
        let shift = ids.map_or(0, |(id, ids)| id.shift(ids[0]));
        view.read_run(plan.offset.base(at) + shift, stride, out);
        return;
    }
    let mut bases = [0; LANES];
    plan.offset.bases(points, &mut bases);
    if let Some((id, ids)) = ids {
        for ((run, _), base) in points.runs().zip(&mut bases) {
            *base += id.shift(ids[run.at]);
        }
    }
    if plan.guards.is_empty() {
        for ((run, _), base) in points.runs().zip(bases) {
            view.read_run(base, stride, &mut out[run.at..run.at + run.len]);
        }
        return;
    }
    let ranges = valid(&plan.guards, points);
    for (((run, _), base), (from, to)) in points.runs().zip(bases).zip(ranges) {
        let out = &mut out[run.at..run.at + run.len];
        out[..from].fill(plan.fill);
        view.read_run(base + stride * from as i64, stride, &mut out[from..to]);
        out[to..].fill(plan.fill);
    }
}

/// The lanes of each run where bounds that are affine along runs hold.
fn valid(guards: &[Guard], points: &Points) -> [(usize, usize); LANES] {
    let mut ranges = [(0, 0); LANES];
    points.runs().zip(&mut ranges).for_each(|((run, _), range)| range.1 = run.len);
    guards.iter().for_each(|g| g.narrow(points, &mut ranges));
    ranges
}

impl LoadPlan {
    /// The offset of every lane; -1 where the load does not happen.
    pub(super) fn offsets(&self, points: &Points, ids: Option<(&Id, &[u32])>, out: &mut [i32; LANES]) {
        let mut mask = [true; LANES];
        for (run, at) in points.runs() {
            self.offset.along(at, &mut out[run.at..run.at + run.len]);
            self.guards.iter().for_each(|g| g.mask(at, &mut mask[run.at..run.at + run.len]));
        }
        if let Some((id, ids)) = ids {
            for (o, i) in out.iter_mut().zip(ids) {
                *o = o.wrapping_add(id.shift(*i) as i32);
            }
        }
        if !self.guards.is_empty() {
            out.iter_mut().zip(mask).for_each(|(o, m)| *o = if m { *o } else { -1 });
        }
    }
}

/// Whether bounds hold, as words.
pub(super) fn within(guards: &[Guard], points: &Points, out: &mut [u32]) {
    if guards.iter().all(|g| g.stride().is_some()) {
        let ranges = valid(guards, points);
        out.fill(0);
        for ((run, _), (from, to)) in points.runs().zip(ranges) {
            out[run.at + from..run.at + to].fill(1);
        }
        return;
    }
    let mut mask = [true; LANES];
    for (run, at) in points.runs() {
        guards.iter().for_each(|g| g.mask(at, &mut mask[run.at..run.at + run.len]));
    }
    out.iter_mut().zip(mask).for_each(|(o, m)| *o = u32::from(m));
}

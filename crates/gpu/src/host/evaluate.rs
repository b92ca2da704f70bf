//! Evaluation of compiled bodies, a block of points at a time.

use super::arithmetic;
use super::code::{Code, Id, LoadPlan, Step};
use super::memory::View;
use super::points::{Column, Guard, LANES, Points, column};

/// What one thread works with. Made once; a step allocates nothing.
#[derive(Default)]
pub(super) struct Scratch {
    /// The block being evaluated.
    pub(super) points: Points,
    /// Values of instructions.
    pub(super) registers: Vec<Column>,
    /// Carried values, one per lane.
    pub(super) carries: Vec<Column>,
    /// Running values of reductions.
    pub(super) accumulators: Vec<Column>,
    /// Packed factors of a contraction, and its product.
    pub(super) panels: [Vec<f32>; 3],
    spare: Option<Column>,
}

/// How much scratch a plan needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Need {
    /// Axes.
    pub(super) rank: usize,
    /// Registers.
    pub(super) registers: usize,
    /// Carries.
    pub(super) carries: usize,
    /// Accumulators.
    pub(super) accumulators: usize,
    /// Elements of the panels.
    pub(super) panels: [usize; 3],
}

impl Need {
    /// Enough for both.
    pub(super) fn or(self, other: Need) -> Need {
        let [a, b, c] = self.panels;
        let [x, y, z] = other.panels;
        Need {
            rank: self.rank.max(other.rank),
            registers: self.registers.max(other.registers),
            carries: self.carries.max(other.carries),
            accumulators: self.accumulators.max(other.accumulators),
            panels: [a.max(x), b.max(y), c.max(z)],
        }
    }

    /// Registers and axes of a body.
    pub(super) fn of(code: &Code) -> Need {
        Need { rank: code.extents.len(), registers: code.end_register, ..Need::default() }
    }

    /// Bytes one thread takes, roughly.
    pub(super) fn bytes(&self) -> u64 {
        let columns = self.registers + self.carries + self.accumulators;
        4 * (columns * LANES + self.panels.iter().sum::<usize>()) as u64
    }
}

impl Scratch {
    /// Grows to what a plan needs.
    pub(super) fn reserve(&mut self, need: &Need) {
        let grow = |columns: &mut Vec<Column>, n: usize| {
            if columns.len() < n {
                columns.resize_with(n, column);
            }
        };
        grow(&mut self.registers, need.registers);
        grow(&mut self.carries, need.carries);
        grow(&mut self.accumulators, need.accumulators);
        for (p, n) in self.panels.iter_mut().zip(need.panels) {
            if p.len() < n {
                p.resize(n, 0.0);
            }
        }
        self.points.reserve(need.rank);
        self.spare.get_or_insert_with(column);
    }
}

impl Code {
    /// Writes the constants. Once per task, before the first block.
    pub(super) fn begin(&self, scratch: &mut Scratch) {
        for (r, bits) in &self.constants {
            scratch.registers[*r].fill(*bits);
        }
    }

    /// Evaluates `count` points from flat index `start`.
    pub(super) fn evaluate(&self, scratch: &mut Scratch, operands: &[View], start: usize, count: usize) {
        scratch.points.set(&self.extents, start, count);
        let n = scratch.points.count();
        let mut out = scratch.spare.take().unwrap_or_else(column);
        for i in &self.steps {
            let registers = &scratch.registers;
            let to = &mut out[..n];
            match &i.step {
                Step::Load(plan) => load(plan, operands, scratch, to),
                Step::Carry(k) => to.copy_from_slice(&scratch.carries[*k][..n]),
                Step::Index(form) => {
                    let mut values = [0; LANES];
                    for (run, at) in scratch.points.runs() {
                        form.along(at, &mut values[run.at..run.at + run.len]);
                    }
                    to.iter_mut().zip(values).for_each(|(o, v)| *o = v as u32);
                }
                Step::Within(guards) => within(guards, &scratch.points, to),
                Step::Unary(f, d, x) => arithmetic::unary(*f, *d, to, &registers[*x][..n]),
                Step::Binary(f, d, a, b) => {
                    arithmetic::binary(*f, *d, to, &registers[*a][..n], &registers[*b][..n]);
                }
                Step::Select(c, a, b) => {
                    arithmetic::select(to, &registers[*c][..n], &registers[*a][..n], &registers[*b][..n]);
                }
                Step::Cast(d, s, x) => arithmetic::cast(*d, *s, to, &registers[*x][..n]),
            }
            std::mem::swap(&mut out, &mut scratch.registers[i.target]);
        }
        scratch.spare = Some(out);
    }

    /// Stores the outputs of the block just evaluated.
    pub(super) fn store(&self, scratch: &Scratch, results: &[View]) {
        for s in &self.stores {
            let (values, view) = (&scratch.registers[s.register], &results[s.result]);
            for (run, at) in scratch.points.runs() {
                let values = &values[run.at..run.at + run.len];
                if let Some(stride) = s.offset.stride() {
                    view.write_run(s.offset.base(at), stride, values);
                } else {
                    let mut offsets = [0; LANES];
                    s.offset.along(at, &mut offsets[..run.len]);
                    view.scatter(&offsets[..run.len], values);
                }
            }
        }
    }
}

fn load(plan: &LoadPlan, operands: &[View], scratch: &Scratch, out: &mut [u32]) {
    let view = &operands[plan.operand];
    for (run, at) in scratch.points.runs() {
        let to = &mut out[run.at..run.at + run.len];
        let ids = plan.id.as_ref().map(|id| (id, &scratch.registers[id.register][run.at..run.at + run.len]));
        match (plan.by_runs, ids) {
            (true, None) => load_run(plan, view, at, 0, to),
            (true, Some((id, ids))) if id.uniform => load_run(plan, view, at, id.shift(ids[0]), to),
            (_, ids) => load_each(plan, view, at, ids, to),
        }
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

/// A run with constant stride, its guards an interval.
fn load_run(plan: &LoadPlan, view: &View, at: &[usize], shift: i64, out: &mut [u32]) {
    let stride = plan.offset.stride().unwrap_or(0);
    let base = plan.offset.base(at) + shift;
    if plan.guards.is_empty() {
        view.read_run(base, stride, out);
        return;
    }
    let (from, to) = plan.guards.iter().fold((0, out.len()), |range, g| g.narrow(at, range));
    out[..from].fill(plan.fill);
    view.read_run(base + stride * from as i64, stride, &mut out[from..to]);
    out[to..].fill(plan.fill);
}

/// The general case: an offset and a condition per point.
fn load_each(plan: &LoadPlan, view: &View, at: &[usize], ids: Option<(&Id, &[u32])>, out: &mut [u32]) {
    let mut offsets = [0; LANES];
    let offsets = &mut offsets[..out.len()];
    plan.offset.along(at, offsets);
    if let Some((id, ids)) = ids {
        for (o, i) in offsets.iter_mut().zip(ids) {
            *o = o.wrapping_add(id.shift(*i) as i32);
        }
    }
    if plan.guards.is_empty() {
        view.gather(offsets, out);
        return;
    }
    let mut mask = [true; LANES];
    let mask = &mut mask[..out.len()];
    plan.guards.iter().for_each(|g| g.mask(at, mask));
    // Offsets outside the guards may be anything: read element 0 there and drop it.
    offsets.iter_mut().zip(mask.iter()).for_each(|(o, m)| *o = if *m { *o } else { 0 });
    view.gather(offsets, out);
    out.iter_mut().zip(mask.iter()).for_each(|(o, m)| *o = if *m { *o } else { plan.fill });
}

fn within(guards: &[Guard], points: &Points, out: &mut [u32]) {
    for (run, at) in points.runs() {
        let mut mask = [true; LANES];
        let mask = &mut mask[..run.len];
        guards.iter().for_each(|g| g.mask(at, mask));
        let to = &mut out[run.at..run.at + run.len];
        to.iter_mut().zip(mask.iter()).for_each(|(o, m)| *o = u32::from(*m));
    }
}

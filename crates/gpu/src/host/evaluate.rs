//! Evaluation of compiled bodies, a block of points at a time.

use super::code::{Code, Step};
use super::load::{load, within};
use super::memory::View;
use super::points::{Column, LANES, Points, column};
use super::simd;

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
        scratch.points.set(start, count);
        if self.needs_runs {
            scratch.points.find_runs(&self.extents);
        }
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
                Step::Compute(operation, inputs) => {
                    simd::compute(*operation, to, inputs.map(|r| &registers[r][..n]));
                }
            }
            std::mem::swap(&mut out, &mut scratch.registers[i.target]);
        }
        scratch.spare = Some(out);
    }

    /// Stores the outputs of the block just evaluated.
    pub(super) fn store(&self, scratch: &Scratch, results: &[View]) {
        for s in &self.stores {
            let (values, view) = (&scratch.registers[s.register], &results[s.result]);
            if let (Some(stride), Some(at)) = (s.offset.stride(), scratch.points.only_run()) {
                view.write_run(s.offset.base(at), stride, &values[..scratch.points.count()]);
                continue;
            }
            if let Some(stride) = s.offset.stride() {
                let mut bases = [0; LANES];
                s.offset.bases(&scratch.points, &mut bases);
                for ((run, _), base) in scratch.points.runs().zip(bases) {
                    view.write_run(base, stride, &values[run.at..run.at + run.len]);
                }
                continue;
            }
            let mut offsets = [0; LANES];
            for (run, at) in scratch.points.runs() {
                s.offset.along(at, &mut offsets[run.at..run.at + run.len]);
            }
            view.scatter(&offsets[..scratch.points.count()], values.as_slice());
        }
    }
}

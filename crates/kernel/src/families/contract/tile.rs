//! The product kernel of the staged tilings.

use super::finish::{Accumulators, Finish};
use super::point::{Buffers, Sight};
use super::problem::{Position, Problem, ROWS, Words};
use super::stage::{self, Plan, Stage};
use super::tiling::{Staging, Tiling};
use crate::KernelError;
use crate::families::Instance;
use crate::families::emit::{Draft, decompose, fold_groups};
use crate::kir::{Builder, Expr, Var};

/// Products between two turns of the inner loop on hardware, where straight code schedules best.
const UNROLL_HARDWARE: u32 = 16;
/// The same on software drivers, where code size costs compilation.
const UNROLL_SOFTWARE: u32 = 4;

/// The instance that computes all products (or the partial sums of every part).
pub(super) fn instance(problem: &Problem<'_>, name: String) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = factors(problem);
    let b = Builder::new(name.clone(), [tiling.invocations(), 1, 1]);
    let words = Words::declare(&b, problem.is_split());
    let finish = Finish::new(problem, tiling.tn);
    let mut buffers = Buffers::new(&b, problem.l, &finish.sights(&factors));
    let finish = finish.bind(&mut buffers);
    let id = b.flat_workgroup_id().named("id");
    let mut result = Ok(());
    b.if_uniform(id.lt(words.total), || {
        let kernel = Tile { b: &b, problem, tiling, words: &words, position: words.position(id) };
        result = kernel.build(factors, &buffers, &finish);
    });
    result?;
    let draft = Draft {
        name,
        bindings: buffers.slots(),
        parameters: problem.words()?,
        groups: fold_groups(problem.tiles().2, problem.target)?,
    };
    draft.finish(b, problem.target)
}

/// Iterations per staged tile (or per product without staging): the outer loop's, and those of the loop inside it.
pub(super) fn turns(tiling: &Tiling, is_hardware: bool) -> u32 {
    let unroll = unroll(tiling, is_hardware);
    if tiling.buffers() == 0 || unroll == tiling.bk { 1 } else { 2 + tiling.bk.div_ceil(unroll) }
}

/// Products written out in the inner loop.
fn unroll(tiling: &Tiling, is_hardware: bool) -> u32 {
    tiling.bk.min(if is_hardware { UNROLL_HARDWARE } else { UNROLL_SOFTWARE })
}

/// The factors as this kernel reads them.
pub(super) fn factors<'a>(problem: &'a Problem<'_>) -> [Sight<'a>; 2] {
    [&problem.a, &problem.b].map(|view| (view, view.allows_quads(ROWS).then_some(ROWS)))
}

struct Tile<'a, 'b> {
    b: &'b Builder,
    problem: &'a Problem<'a>,
    tiling: Tiling,
    words: &'a Words<'b>,
    position: Position<'b>,
}

/// Where the register tile of an invocation lies in the workgroup's tile, in quadruples.
struct Place<'b> {
    row: Expr<'b>,
    column: Expr<'b>,
}

impl<'b> Tile<'_, 'b> {
    fn build(
        &self,
        factors: [Sight<'_>; 2],
        buffers: &Buffers<'b>,
        finish: &Finish<'_, 'b>,
    ) -> Result<(), KernelError> {
        let place = self.place();
        let stages = self.stages(factors, buffers);
        let sums = Accumulators::new(self.b, self.tiling.tm, self.tiling.tn);
        match self.tiling.staging {
            Staging::Double => self.double(&stages, &place, &sums)?,
            Staging::Single | Staging::Direct | Staging::Lanes => self.single(&stages, &place, &sums)?,
        }
        let (rows, columns) = self.outputs(&place);
        finish.emit(buffers, (self.words, &self.position), (&rows, &columns), &sums)
    }

    /// Invocations of 32 in a row form 4 x 8 register tiles where that divides, else they go row by row.
    fn place(&self) -> Place<'b> {
        let (b, t) = (self.b, &self.tiling);
        let (high, wide) = (t.bm / t.tm, t.bn / t.tn);
        let lane = b.local_index();
        if !high.is_multiple_of(4) || !wide.is_multiple_of(8) {
            return Place { row: (lane / wide).named("ty"), column: (lane % wide).named("tx") };
        }
        let (group, lane) = (lane / 32, lane % 32);
        let row = (group / (wide / 8)) * 4 + lane / 8;
        let column = (group % (wide / 8)) * 8 + lane % 8;
        Place { row: row.named("ty"), column: column.named("tx") }
    }

    fn stages<'a>(&'a self, factors: [Sight<'a>; 2], buffers: &'a Buffers<'b>) -> [Stage<'a, 'b>; 2] {
        let (b, t, at) = (self.b, self.tiling, &self.position);
        let counts = [stage::chunk_count(t.bm, &t), stage::chunk_count(t.bn, &t)];
        let lane = b.local_index();
        // Small tiles: the second factor goes to the invocations the first one leaves idle.
        let other = if counts[0] + counts[1] <= t.invocations() { lane - counts[0] } else { lane };
        let plan = |side: usize| {
            let (name, rows, tile, size, lane) = if side == 0 {
                ("left", t.bm, at.tile_m, self.words.m, lane)
            } else {
                ("right", t.bn, at.tile_n, self.words.n, other)
            };
            let sight = factors[side];
            let batch = decompose(b, at.batch, &sight.0.groups[0]);
            let range = ((tile * rows).named(format!("{name}_first")), size);
            Plan { b, buffers, sight, name, rows, tiling: t, batch, range, lane }
        };
        [Stage::new(plan(0)), Stage::new(plan(1))]
    }

    fn single(
        &self,
        stages: &[Stage<'_, 'b>; 2],
        place: &Place<'b>,
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let (b, at) = (self.b, &self.position);
        let base = b.constant(0_u32);
        let mut result = Ok(());
        b.for_("from", (at.start, at.end), self.tiling.bk, |from| {
            result = stages.iter().try_for_each(|stage| stage.fill(from, at.end, base));
            b.barrier();
            self.multiply(stages, place, base, sums);
            b.barrier();
        });
        result
    }

    fn double(
        &self,
        stages: &[Stage<'_, 'b>; 2],
        place: &Place<'b>,
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let (b, at, bk) = (self.b, &self.position, self.tiling.bk);
        let registers = stages.each_ref().map(Stage::registers);
        let mut result =
            stages.iter().zip(&registers).try_for_each(|(s, r)| s.fetch_into(r, at.start, at.end));
        let current: Var<'b> = b.var("current", 0_u32);
        stages.iter().zip(&registers).for_each(|(s, r)| s.put(r, b.constant(0_u32)));
        b.barrier();
        b.for_("from", (at.start, at.end), bk, |from| {
            let next = from + bk;
            // Past the end this reads the last product again, which is cheaper than a branch around the loads.
            let fetched = stages.iter().zip(&registers).try_for_each(|(s, r)| s.fetch_into(r, next, at.end));
            result = result.clone().and(fetched);
            let base = current.get().named("base");
            self.multiply(stages, place, base, sums);
            let other = (bk - base).named("other");
            stages.iter().zip(&registers).for_each(|(s, r)| s.put(r, other));
            current.set(other);
            b.barrier();
        });
        result
    }

    /// Adds the products of one staged tile to the sums.
    fn multiply(
        &self,
        stages: &[Stage<'_, 'b>; 2],
        place: &Place<'b>,
        base: Expr<'b>,
        sums: &Accumulators<'b>,
    ) {
        let (b, t) = (self.b, &self.tiling);
        let hardware = self.problem.target.is_hardware;
        let unroll = unroll(t, hardware);
        let [left, right] = [Tiling::stride(t.bm), Tiling::stride(t.bn)];
        let turn = |from: Expr<'b>| {
            let (row, column) =
                ((from * left + place.row).named("l"), (from * right + place.column).named("r"));
            for k in 0..unroll {
                let fragment =
                    |stage: &Stage<'_, 'b>, at: Expr<'b>, (stride, step): (u32, u32), count: u32| {
                        (0..count / 4)
                            .map(|q| stage.shared.load(at + (k * stride + q * step)))
                            .collect::<Vec<_>>()
                    };
                let a = fragment(&stages[0], row, (left, t.bm / t.tm), t.tm);
                let c = fragment(&stages[1], column, (right, t.bn / t.tn), t.tn);
                sums.add(&a, &c, hardware);
            }
        };
        if unroll == t.bk {
            turn(base);
        } else {
            b.for_("step", (b.constant(0_u32), b.constant(t.bk)), unroll, |step| turn(base + step));
        }
    }

    /// Rows of the register tile, and first columns of its quadruples.
    fn outputs(&self, place: &Place<'b>) -> (Vec<Expr<'b>>, Vec<Expr<'b>>) {
        let (t, at) = (&self.tiling, &self.position);
        let row = at.tile_m * t.bm + place.row * 4;
        let column = at.tile_n * t.bn + place.column * 4;
        let step = |high: u32, tile: u32| 4 * (high / tile);
        let rows = (0..t.tm).map(|i| row + ((i / 4) * step(t.bm, t.tm) + i % 4)).collect();
        let columns = (0..t.tn / 4).map(|q| column + q * step(t.bn, t.tn)).collect();
        (rows, columns)
    }
}

//! The product kernel of the staged tilings.

use super::finish::{Accumulators, Finish};
use super::point::{Buffers, Sight};
use super::problem::{LAST, Position, Problem, ROWS, Words};
use super::slices;
use super::stage::{self, Plan, SAME_SHIFT, Stage};
use super::tiling::{Staging, Tiling};
use super::view::View;
use crate::KernelError;
use crate::families::Instance;
use crate::families::emit::{Draft, decompose, fold_groups};
use crate::kir::{Builder, Expr, Var};

/// Fewest products per tile that are read four at a time.
const DEEP: u32 = 32;
/// Products between two turns of the inner loop on hardware, where straight code schedules best.
const UNROLL_HARDWARE: u32 = 16;
/// The same on software drivers, where code size costs compilation.
const UNROLL_SOFTWARE: u32 = 4;

/// The instance that computes all products (or the partial sums of every part).
pub(super) fn instance(problem: &Problem<'_>, name: String) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = factors(problem);
    let b = Builder::new(name.clone(), [tiling.invocations(), 1, 1]);
    let words = Words::declare(&b, problem);
    let finish = Finish::new(problem, tiling.finished().1);
    let mut buffers = Buffers::new((&b, problem.target), problem.l, &finish.sights(&factors));
    let finish = finish.bind(&b, &mut buffers);
    let id = b.flat_workgroup_id().named("id");
    let mut result = Ok(());
    b.if_uniform(id.lt(words.total), || {
        let kernel = Tile { b: &b, problem, tiling, words: &words, position: words.position(id) };
        result = kernel.build(&factors, &buffers, &finish);
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
    if matches!(tiling.staging, Staging::Matrix(_)) {
        // Where matrices are multiplied by ordinary arithmetic; the last one is for the flush.
        return 3 + tiling.bk;
    }
    let (unroll, products) = (unroll(tiling, is_hardware), tiling.slice_products());
    if tiling.buffers() == 0 || unroll == products { 1 } else { 2 + products.div_ceil(unroll) }
}

/// Products written out in the inner loop.
fn unroll(tiling: &Tiling, is_hardware: bool) -> u32 {
    tiling.slice_products().min(if is_hardware { UNROLL_HARDWARE } else { UNROLL_SOFTWARE })
}

/// The factors of all terms as this kernel reads them.
pub(super) fn factors<'a>(problem: &'a Problem<'_>) -> Vec<[Sight<'a>; 2]> {
    // Quadruples of products pay where a row of the tile has many of them.
    let groups: &[usize] = if problem.choice.tiling.bk >= DEEP { &[ROWS, LAST] } else { &[ROWS] };
    let sight = |view: &'a View| (view, groups.iter().copied().find(|group| view.allows_quads(*group)));
    problem.terms.iter().map(|term| [sight(&term.a), sight(&term.b)]).collect()
}

struct Tile<'a, 'b> {
    b: &'b Builder,
    problem: &'a Problem<'a>,
    tiling: Tiling,
    words: &'a Words<'b>,
    position: Position<'b>,
}

/// Where the register tile of an invocation lies in the workgroup's tile, in quadruples.
pub(super) struct Place<'b> {
    pub(super) row: Expr<'b>,
    pub(super) column: Expr<'b>,
    /// Number of the register tile, and of the slice of its products.
    pub(super) number: Expr<'b>,
    pub(super) slice: Expr<'b>,
}

/// Terms with one left factor, whose tiles are staged together.
struct Group<'a, 'b> {
    left: Stage<'a, 'b>,
    /// Right factors, each with the sum it adds to.
    rights: Vec<(usize, Stage<'a, 'b>)>,
    /// First product, and the first one no longer summed.
    range: (Expr<'b>, Expr<'b>),
}

impl<'a, 'b> Group<'a, 'b> {
    fn stages(&self) -> impl Iterator<Item = &Stage<'a, 'b>> {
        std::iter::once(&self.left).chain(self.rights.iter().map(|(_, stage)| stage))
    }
}

impl<'b> Tile<'_, 'b> {
    fn build(
        &self,
        factors: &[[Sight<'_>; 2]],
        buffers: &Buffers<'b>,
        finish: &Finish<'_, 'b>,
    ) -> Result<(), KernelError> {
        let place = self.place();
        let sums = Accumulators::new(self.b, self.problem.sums, (self.tiling.tm, self.tiling.tn));
        let groups = self.groups(factors, buffers);
        for group in &groups {
            match self.tiling.staging {
                Staging::Double | Staging::Sliced(_) => self.double(group, &place, &sums)?,
                Staging::Single | Staging::Direct | Staging::Lanes | Staging::Matrix(_) => {
                    self.single(group, &place, &sums)?;
                }
            }
        }
        if self.tiling.slices() > 1 {
            let Some(first) = groups.first() else { return Ok(()) };
            let (b, t, at) = (self.b, &self.tiling, &self.position);
            let ((rows, column), sums) = slices::add_up((b, t), &place, &first.left, &sums);
            let rows: Vec<_> = rows.into_iter().map(|row| at.tile_m * t.bm + row).collect();
            let columns = [at.tile_n * t.bn + column];
            return finish.emit(buffers, (self.words, &self.position), (&rows, &columns), &sums);
        }
        let quads = (0..self.tiling.tm / 4).map(|q| place.row + q * (self.tiling.bm / self.tiling.tm));
        let quads: Vec<Expr<'b>> = quads.collect();
        let sums = sums.with_rows(groups.first().map_or(Vec::new(), |group| group.left.row_sums(&quads)));
        let (rows, columns) = self.outputs(&place);
        finish.emit(buffers, (self.words, &self.position), (&rows, &columns), &sums)
    }

    /// Invocations of 16 in a row form 4 x 4 register tiles, and of 32 in a row 4 x 8, where that divides, else they go row by
    /// row. Of the lanes that differ in bit 0 all read the same rows, of those that differ in bit 1 the same columns: then
    /// hardware serves half of the lanes of a 128-bit read of workgroup memory at once, not a quarter of them.
    fn place(&self) -> Place<'b> {
        let (b, t) = (self.b, &self.tiling);
        let (high, wide) = (t.bm / t.tm, t.bn / t.tn);
        let (number, slice) = match t.slices() {
            1 => (b.local_index(), b.constant(0_u32)),
            _ => (b.local_index() % (high * wide), (b.local_index() / (high * wide)).named("slice")),
        };
        let (row, column) = if high.is_multiple_of(4) && wide.is_multiple_of(4) {
            let width = if wide.is_multiple_of(8) { 8 } else { 4 };
            let (group, lane) = (number / (4 * width), number % (4 * width));
            let (row, column) = (lane / 2 % 4, lane % 2 + lane / 8 * 2);
            (group / (wide / width) * 4 + row, group % (wide / width) * width + column)
        } else {
            (number / wide, number % wide)
        };
        Place { row: row.named("ty"), column: column.named("tx"), number, slice }
    }

    /// The terms, those with one left factor together; all groups use the same arrays, one after the other.
    fn groups<'a>(&'a self, factors: &[[Sight<'a>; 2]], buffers: &'a Buffers<'b>) -> Vec<Group<'a, 'b>> {
        let (b, t, at) = (self.b, &self.tiling, &self.position);
        let left_array = stage::array(b, "left", t.bm, t);
        let mut right_arrays = Vec::new();
        let mut groups: Vec<Group<'a, 'b>> = Vec::new();
        for (n, term) in self.problem.terms.iter().enumerate() {
            if !term.is_joint {
                let left = Stage::new(self.plan(0, factors[n][0], buffers, 0), left_array);
                groups.push(Group { left, rights: Vec::new(), range: at.ranges[n] });
            }
            let Some(group) = groups.last_mut() else { continue };
            let number = group.rights.len();
            if right_arrays.len() == number {
                right_arrays.push(stage::array(b, "right", t.bn, t));
            }
            let plan = self.plan(1, factors[n][1], buffers, number as u32);
            group.rights.push((term.sum, Stage::new(plan, right_arrays[number])));
        }
        groups
    }

    /// What the left (0) or a right (1) factor's stage needs to know.
    fn plan<'a>(
        &'a self,
        side: usize,
        sight: Sight<'a>,
        buffers: &'a Buffers<'b>,
        number: u32,
    ) -> Plan<'a, 'b> {
        let (b, t, at) = (self.b, self.tiling, &self.position);
        let counts = [stage::chunk_count(t.bm, &t), stage::chunk_count(t.bn, &t)];
        let lane = b.local_index();
        let (name, rows, tile, size) = if side == 0 {
            ("left", t.bm, at.tile_m, self.words.m)
        } else {
            ("right", t.bn, at.tile_n, self.words.n)
        };
        // Small tiles: a further factor goes to the invocations that the ones before leave idle.
        let before = counts[0] + number * counts[1];
        let fits = side == 1 && before + counts[1] <= t.invocations();
        let lane = if fits { lane - before } else { lane };
        let batch = decompose(b, at.batch, &sight.0.groups[0]);
        let range = ((tile * rows).named(format!("{name}_first")), size);
        Plan { b, buffers, sight, name, rows, tiling: t, batch, range, lane }
    }

    fn single(
        &self,
        group: &Group<'_, 'b>,
        place: &Place<'b>,
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let (b, (start, end)) = (self.b, group.range);
        let base = b.constant(0_u32);
        let mut result = Ok(());
        b.for_("from", (start, end), self.tiling.bk, |from| {
            result = group.stages().try_for_each(|stage| stage.fill(from, end, base));
            b.barrier();
            self.multiply(group, place, base, sums);
            b.barrier();
        });
        result
    }

    fn double(
        &self,
        group: &Group<'_, 'b>,
        place: &Place<'b>,
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let (b, (start, end), bk) = (self.b, group.range, self.tiling.bk);
        let registers: Vec<_> = group.stages().map(Stage::registers).collect();
        let all = || group.stages().zip(&registers);
        let mut result = all().try_for_each(|(s, r)| s.fetch_into(r, start, end));
        let current: Var<'b> = b.var("current", 0_u32);
        all().for_each(|(s, r)| s.put(r, b.constant(0_u32)));
        b.barrier();
        b.for_("from", (start, end), bk, |from| {
            let next = from + bk;
            // Past the end this reads the last product again, which is cheaper than a branch around the loads.
            let fetched = all().try_for_each(|(s, r)| s.fetch_into(r, next, end));
            result = result.clone().and(fetched);
            let base = current.get().named("base");
            self.multiply(group, place, base, sums);
            let other = (bk - base).named("other");
            all().for_each(|(s, r)| s.put(r, other));
            current.set(other);
            b.barrier();
        });
        result
    }

    /// Adds the products of one staged tile to the sums.
    fn multiply(&self, group: &Group<'_, 'b>, place: &Place<'b>, base: Expr<'b>, sums: &Accumulators<'b>) {
        let (b, t) = (self.b, &self.tiling);
        let hardware = self.problem.target.is_hardware;
        let unroll = unroll(t, hardware);
        let products = t.slice_products();
        let first = if t.slices() > 1 { place.slice * products } else { b.constant(0_u32) };
        // `at` is where `from` lies in the tile.
        let turn = |from: Expr<'b>, at: Expr<'b>| {
            for k in 0..unroll {
                let fragment = |stage: &Stage<'_, 'b>, place: Expr<'b>, (rows, thread): (u32, u32)| {
                    let stride = Tiling::stride(rows);
                    let line = from * stride + stage.moved(place, at + k / SAME_SHIFT * SAME_SHIFT);
                    (0..thread / 4)
                        .map(|q| stage.shared.load(line + (k * stride + q * (rows / thread))))
                        .collect::<Vec<_>>()
                };
                let a = fragment(&group.left, place.row, (t.bm, t.tm));
                for (sum, stage) in &group.rights {
                    let c = fragment(stage, place.column, (t.bn, t.tn));
                    sums.add(*sum, (&a, &c), hardware);
                }
            }
        };
        let base = if t.slices() > 1 { base + first } else { base };
        if unroll == products {
            turn(base, first);
        } else {
            let steps = (b.constant(0_u32), b.constant(products));
            b.for_("step", steps, unroll, |step| turn(base + step, first + step));
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

//! From sums in registers to memory: the epilogue, or the partial sums of a part.

use super::point::{self, Buffers, Sight};
use super::problem::{Position, Problem, Words};
use crate::KernelError;
use crate::families::emit::decompose;
use crate::kir::{Access, Buffer, Builder, Expr, Lanes, Shared, Type, Var};
use griffinfly_ir::loops::Loop;

/// Quadruples of partial sums that an invocation reads at once.
const IN_FLIGHT: u32 = 16;

/// The register tile of every sum: per row, variables of one or four columns.
pub(super) struct Accumulators<'b> {
    pub(super) b: &'b Builder,
    pub(super) sums: Vec<Vec<Vec<Var<'b>>>>,
    /// What is summed for each row besides, one row or four to a variable; empty if nothing is.
    rows: Vec<Var<'b>>,
}

impl<'b> Accumulators<'b> {
    /// Zeros for so many sums of `rows` by `columns` outputs.
    pub(super) fn new(b: &'b Builder, sums: usize, (rows, columns): (u32, u32)) -> Self {
        let (count, ty) =
            if columns.is_multiple_of(4) { (columns / 4, Type::F32X4) } else { (columns, Type::F32) };
        let var = |i: u32, j: u32| b.var(format!("sum_{i}_{j}"), b.zero(ty));
        let one = |_| (0..rows).map(|i| (0..count).map(|j| var(i, j)).collect()).collect();
        Self { b, sums: (0..sums).map(one).collect(), rows: Vec::new() }
    }

    /// The same with what is summed for each row.
    pub(super) fn with_rows(self, rows: Vec<Var<'b>>) -> Self {
        Self { rows, ..self }
    }

    /// Adds values to what is summed for each row, if anything is.
    pub(super) fn add_rows(&self, values: &[Expr<'b>]) {
        self.rows.iter().zip(values).for_each(|(var, value)| var.set(var.get() + *value));
    }

    /// What is summed for each row so far.
    pub(super) fn row_scalars(&self) -> Vec<Expr<'b>> {
        self.rows.iter().map(|var| var.get()).collect()
    }

    /// The carries of the epilogue at a row and variable of columns.
    fn carries(&self, row: usize, variable: usize) -> Vec<Expr<'b>> {
        let lanes = Lanes::from_count(self.lanes() as usize).unwrap_or(Lanes::One);
        let besides = match self.rows.first().map(|var| var.ty().lanes) {
            Some(Lanes::Four) => Some(self.rows[row / 4].get().lane((row % 4) as u8)),
            Some(_) => Some(self.rows[row].get()),
            None => None,
        };
        let sums = self.sums.iter().map(|sum| sum[row][variable].get());
        sums.chain(besides.map(|value| value.splat(lanes))).collect()
    }

    /// Number of carries.
    fn count(&self) -> u32 {
        self.sums.len() as u32 + u32::from(!self.rows.is_empty())
    }

    /// Those of one output whose sums are done.
    pub(super) fn of(b: &'b Builder, sums: &[Var<'b>]) -> Self {
        Self { b, sums: sums.iter().map(|sum| vec![vec![*sum]]).collect(), rows: Vec::new() }
    }

    /// Adds what other accumulators of the same shape hold, and clears those.
    pub(super) fn take(&self, other: &Accumulators<'b>) {
        let all = |sums: &Accumulators<'b>| sums.sums.concat().concat();
        for (var, other) in all(self).into_iter().zip(all(other)) {
            var.set(var.get() + other.get());
            other.set(self.b.zero(other.ty()));
        }
    }

    /// The outputs of a sum by rows.
    pub(super) fn scalars(&self, sum: usize) -> Vec<Expr<'b>> {
        let values: Vec<Expr<'b>> = self.sums[sum].iter().flatten().map(|var| var.get()).collect();
        let lanes = |value: &Expr<'b>| {
            let value = *value;
            (0..value.ty().lanes.count()).map(move |lane| value.lane(lane as u8))
        };
        values.iter().flat_map(lanes).collect()
    }

    /// Adds products to a sum: for each, the elements of all rows and of all columns.
    pub(super) fn add_all(
        &self,
        sum: usize,
        (left, right): (&[Vec<Expr<'b>>], &[Vec<Expr<'b>>]),
        fused: bool,
    ) {
        for (a, c) in left.iter().zip(right) {
            if c.len().is_multiple_of(4) {
                let quads: Vec<_> = c.chunks(4).map(|quad| self.b.vector(quad)).collect();
                self.add(sum, (a, &quads), fused);
            } else {
                self.add(sum, (a, c), fused);
            }
        }
    }

    /// Columns per variable.
    fn lanes(&self) -> u32 {
        self.sums.iter().flatten().flatten().next().map_or(1, |var| var.ty().lanes.count())
    }

    /// Adds the outer product of quadruples of rows and the columns of each variable to a sum.
    pub(super) fn add(&self, sum: usize, (left, right): (&[Expr<'b>], &[Expr<'b>]), fused: bool) {
        for (i, vars) in self.sums[sum].iter().enumerate() {
            let a = match left.get(i / 4) {
                Some(quad) if quad.ty().lanes == Lanes::Four => quad.lane((i % 4) as u8),
                _ => left[i],
            };
            for (var, c) in vars.iter().zip(right) {
                let sum = if fused { self.b.fma(*c, a, var.get()) } else { var.get() + *c * a };
                var.set(sum);
            }
        }
    }
}

impl<'b> Accumulators<'b> {
    /// Leaves the sums of a part for the workgroup that is the last of its tile; that one adds all parts in order and runs
    /// `finish`. Nobody waits for anybody, so this needs no progress of one workgroup beside another.
    ///
    /// `id` is the number of tile and part, parts slowest; then the numbers of tiles and parts.
    fn join(
        &self,
        (partials, (counters, counted)): (Buffer<'b>, (Buffer<'b>, Shared<'b>)),
        (id, (tiles, parts)): (Expr<'b>, (Expr<'b>, Expr<'b>)),
        finish: impl FnOnce(),
    ) {
        let b = self.b;
        let vars: Vec<Var<'b>> = [self.sums.concat().concat(), self.rows.clone()].concat();
        let (count, lane, size) = (vars.len() as u32, b.local_index(), b.invocations());
        let place = |id: Expr<'b>, v: usize| id * (count * size) + (lane + v as u32 * size);
        vars.iter().enumerate().for_each(|(v, var)| partials.store(place(id, v), var.get()));
        b.fence();
        let tile = (id % tiles).named("tile");
        b.if_(lane.equals(0_u32), || counted.store(0_u32, b.atomic_add(counters, tile, 1_u32)));
        b.barrier();
        b.if_uniform((counted.load(0_u32) + 1).equals(parts), || {
            b.fence();
            // For the next run.
            b.if_(lane.equals(0_u32), || {
                b.atomic_add(counters, tile, 0_u32 - parts);
            });
            vars.iter().for_each(|var| var.set(b.zero(var.ty())));
            // Several parts are on their way together: a read takes long, and nothing else is left to do.
            let together = (IN_FLIGHT / count).max(1);
            b.for_("part", (0_u32, parts), together, |first| {
                let load = |j: u32| {
                    let id = (first + j).native_min(parts - 1) * tiles + tile;
                    (0..vars.len()).map(|v| partials.load(place(id, v))).collect::<Vec<_>>()
                };
                let loaded: Vec<Vec<Expr<'b>>> = (0..together).map(load).collect();
                for (j, values) in (0..).zip(loaded) {
                    let exists = (first + j).lt(parts);
                    for (var, value) in vars.iter().zip(values) {
                        let sum = var.get() + value;
                        var.set(if j == 0 { sum } else { exists.select(sum, var.get()) });
                    }
                }
            });
            finish();
        });
    }
}

/// What happens to finished sums.
pub(super) struct Finish<'a, 'b> {
    l: &'a Loop,
    /// The epilogue and whether it runs on quadruples; `None` for partial sums.
    epilogue: Option<Sight<'a>>,
    /// Whether partial sums are written as quadruples.
    wide: bool,
    is_joined: bool,
    partials: Option<Buffer<'b>>,
    /// Counters and a place to share what was counted, where the last workgroup of a tile adds its parts.
    counters: Option<(Buffer<'b>, Shared<'b>)>,
}

impl<'a, 'b> Finish<'a, 'b> {
    /// What the problem asks for, for register tiles of `columns` columns.
    pub(super) fn new(problem: &'a Problem<'a>, columns: u32) -> Self {
        let quads = columns.is_multiple_of(4);
        let (view, along) = problem.outputs();
        let ends = !problem.is_split() || problem.is_joined();
        let epilogue = ends.then_some((view, along.filter(|_| quads)));
        let wide = quads && problem.has_quad_columns();
        Self { l: problem.l, epilogue, wide, is_joined: problem.is_joined(), partials: None, counters: None }
    }

    /// Everything the kernel reads, given the factors.
    pub(super) fn sights(&self, factors: &[[Sight<'a>; 2]]) -> Vec<Sight<'a>> {
        factors.concat().into_iter().chain(self.epilogue).collect()
    }

    /// Binds what is written.
    pub(super) fn bind(mut self, b: &'b Builder, buffers: &mut Buffers<'b>) -> Self {
        if self.is_joined {
            self.partials = Some(buffers.partials(true, Access::Exchange));
            self.counters = Some((buffers.counters(), b.shared("counted", Type::U32, 1)));
        }
        match self.epilogue {
            Some((_, quads)) => buffers.results(self.l, quads.is_some()),
            None => self.partials = Some(buffers.partials(self.wide, Access::ReadWrite)),
        }
        self
    }

    /// Writes the register tile with these rows and first columns, as far as it lies inside the output: at once,
    /// or when the last part of the tile is there.
    pub(super) fn emit(
        &self,
        buffers: &Buffers<'b>,
        (words, at): (&Words<'b>, &Position<'b>),
        members: (&[Expr<'b>], &[Expr<'b>]),
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let (Some(partials), Some(counters), Some(joined)) = (self.partials, self.counters, words.joined)
        else {
            return self.write(buffers, (words, at), members, sums);
        };
        let mut result = Ok(());
        sums.join((partials, counters), (at.id, joined), || {
            result = self.write(buffers, (words, at), members, sums);
        });
        result
    }

    fn write(
        &self,
        buffers: &Buffers<'b>,
        (words, at): (&Words<'b>, &Position<'b>),
        (rows, columns): (&[Expr<'b>], &[Expr<'b>]),
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let b = sums.b;
        let columns = self.columns(b, columns, sums);
        let batch = self.decomposed(b, 0, at.batch);
        let mut result = Ok(());
        let count = sums.count();
        for (i, row) in rows.iter().enumerate() {
            b.if_(row.lt(words.m), || {
                let axes = self.decomposed(b, 1, *row);
                // Parts, batches, sums, rows, columns.
                let line = |sum: u32| ((at.z * count + sum) * words.m + *row) * words.n;
                let lines: Vec<Expr<'b>> = (0..count).map(line).collect();
                for (v, columns) in columns.iter().enumerate() {
                    let values = sums.carries(i, v);
                    for (j, column) in columns.iter().enumerate() {
                        let value = |value: &Expr<'b>| {
                            if columns.len() == 1 { *value } else { value.lane(j as u8) }
                        };
                        b.if_(column.number.lt(words.n), || {
                            let axes = [batch.as_slice(), &axes, &column.axes].concat();
                            let values: Vec<Expr<'b>> = values.iter().map(value).collect();
                            let offsets: Vec<_> = lines.iter().map(|line| *line + column.number).collect();
                            let done = self.cell(b, buffers, (&axes, &offsets), &values);
                            result = result.clone().and(done);
                        });
                    }
                }
            });
        }
        result
    }

    /// The columns of each variable: one entry where they are written together.
    fn columns(&self, b: &'b Builder, firsts: &[Expr<'b>], sums: &Accumulators<'b>) -> Vec<Vec<Column<'b>>> {
        let together = self.epilogue.map_or(self.wide, |(_, quads)| quads.is_some());
        let lanes = if together { 1 } else { sums.lanes() };
        let column = |first: &Expr<'b>, j: u32| {
            let number = *first + j;
            Column { number, axes: self.decomposed(b, 2, number) }
        };
        firsts.iter().map(|first| (0..lanes).map(|j| column(first, j)).collect()).collect()
    }

    /// Axes of one group of the epilogue.
    fn decomposed(&self, b: &'b Builder, group: usize, number: Expr<'b>) -> Vec<Expr<'b>> {
        self.epilogue.map_or(Vec::new(), |(view, _)| decompose(b, number, &view.groups[group]))
    }

    fn cell(
        &self,
        b: &'b Builder,
        buffers: &Buffers<'b>,
        (axes, offsets): (&[Expr<'b>], &[Expr<'b>]),
        sums: &[Expr<'b>],
    ) -> Result<(), KernelError> {
        match (self.epilogue, self.partials) {
            (Some(sight), _) => write_at(b, buffers, sight, axes, sums),
            (None, Some(partials)) => {
                for (offset, sum) in offsets.iter().zip(sums) {
                    partials.store(*offset / sum.ty().lanes.count(), *sum);
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }
}

/// A column of the output, or the first of four.
struct Column<'b> {
    number: Expr<'b>,
    axes: Vec<Expr<'b>>,
}

/// Runs the epilogue at a point (or the four from there on) and stores its outputs.
pub(super) fn write<'b>(
    b: &'b Builder,
    buffers: &Buffers<'b>,
    sight: Sight<'_>,
    point: [Expr<'b>; 3],
    sums: &[Expr<'b>],
) -> Result<(), KernelError> {
    let groups = &sight.0.groups;
    let [batch, row, column] = [0, 1, 2].map(|g| decompose(b, point[g], &groups[g]));
    write_at(b, buffers, sight, &[batch, row, column].concat(), sums)
}

fn write_at<'b>(
    b: &'b Builder,
    buffers: &Buffers<'b>,
    sight: Sight<'_>,
    axes: &[Expr<'b>],
    sums: &[Expr<'b>],
) -> Result<(), KernelError> {
    let values = point::outputs(b, buffers, sight, axes, sums)?;
    point::store(b, buffers, sight, axes, &values)
}

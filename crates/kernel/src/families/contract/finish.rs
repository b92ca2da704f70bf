//! From sums in registers to memory: the epilogue, or the partial sums of a part.

use super::point::{self, Buffers, Sight};
use super::problem::{Position, Problem, Words};
use crate::KernelError;
use crate::families::emit::decompose;
use crate::kir::{Access, Buffer, Builder, Expr, Lanes, Type, Var};
use griffinfly_ir::loops::Loop;

/// The register tile: per row, variables of one or four columns.
pub(super) struct Accumulators<'b> {
    b: &'b Builder,
    vars: Vec<Vec<Var<'b>>>,
}

impl<'b> Accumulators<'b> {
    /// Zero for `rows` by `columns` outputs.
    pub(super) fn new(b: &'b Builder, rows: u32, columns: u32) -> Self {
        let (count, ty) =
            if columns.is_multiple_of(4) { (columns / 4, Type::F32X4) } else { (columns, Type::F32) };
        let var = |i: u32, j: u32| b.var(format!("sum_{i}_{j}"), b.zero(ty));
        let vars = (0..rows).map(|i| (0..count).map(|j| var(i, j)).collect()).collect();
        Self { b, vars }
    }

    /// The one of an output whose sum is done.
    pub(super) fn of(b: &'b Builder, sum: Var<'b>) -> Self {
        Self { b, vars: vec![vec![sum]] }
    }

    /// The sums by rows.
    pub(super) fn scalars(&self) -> Vec<Expr<'b>> {
        let values: Vec<Expr<'b>> = self.vars.iter().flatten().map(|var| var.get()).collect();
        let lanes = |value: &Expr<'b>| {
            let value = *value;
            (0..value.ty().lanes.count()).map(move |lane| value.lane(lane as u8))
        };
        values.iter().flat_map(lanes).collect()
    }

    /// Adds products: for each, the elements of all rows and of all columns.
    pub(super) fn add_all(&self, left: &[Vec<Expr<'b>>], right: &[Vec<Expr<'b>>], fused: bool) {
        for (a, c) in left.iter().zip(right) {
            if c.len().is_multiple_of(4) {
                let quads: Vec<_> = c.chunks(4).map(|quad| self.b.vector(quad)).collect();
                self.add(a, &quads, fused);
            } else {
                self.add(a, c, fused);
            }
        }
    }

    /// Columns per variable.
    fn lanes(&self) -> u32 {
        self.vars.first().and_then(|row| row.first()).map_or(1, |var| var.ty().lanes.count())
    }

    /// Adds the outer product of quadruples of rows and the columns of each variable.
    pub(super) fn add(&self, left: &[Expr<'b>], right: &[Expr<'b>], fused: bool) {
        for (i, vars) in self.vars.iter().enumerate() {
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

/// What happens to finished sums.
pub(super) struct Finish<'a, 'b> {
    l: &'a Loop,
    /// The epilogue and whether it runs on quadruples; `None` for partial sums.
    epilogue: Option<Sight<'a>>,
    /// Whether partial sums are written as quadruples.
    wide: bool,
    partials: Option<Buffer<'b>>,
}

impl<'a, 'b> Finish<'a, 'b> {
    /// What the problem asks for, for register tiles of `columns` columns.
    pub(super) fn new(problem: &'a Problem<'a>, columns: u32) -> Self {
        let quads = columns.is_multiple_of(4);
        let (view, along) = problem.outputs();
        let epilogue = (!problem.is_split()).then_some((view, along.filter(|_| quads)));
        Self { l: problem.l, epilogue, wide: quads && problem.has_quad_columns(), partials: None }
    }

    /// Everything the kernel reads, given the factors.
    pub(super) fn sights(&self, factors: &[Sight<'a>; 2]) -> Vec<Sight<'a>> {
        factors.iter().copied().chain(self.epilogue).collect()
    }

    /// Binds what is written.
    pub(super) fn bind(mut self, buffers: &mut Buffers<'b>) -> Self {
        match self.epilogue {
            Some((_, quads)) => buffers.results(self.l, quads.is_some()),
            None => self.partials = Some(buffers.partials(self.wide, Access::ReadWrite)),
        }
        self
    }

    /// Writes the register tile with these rows and first columns, as far as it lies inside the output.
    pub(super) fn emit(
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
        for (row, vars) in rows.iter().zip(&sums.vars) {
            b.if_(row.lt(words.m), || {
                let axes = self.decomposed(b, 1, *row);
                let line = (at.z * words.m + *row) * words.n;
                for (var, columns) in vars.iter().zip(&columns) {
                    let sum = var.get();
                    for (j, column) in columns.iter().enumerate() {
                        let value = if columns.len() == 1 { sum } else { sum.lane(j as u8) };
                        b.if_(column.number.lt(words.n), || {
                            let axes = [batch.as_slice(), &axes, &column.axes].concat();
                            let done = self.cell(b, buffers, (&axes, line + column.number), value);
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
        (axes, offset): (&[Expr<'b>], Expr<'b>),
        sum: Expr<'b>,
    ) -> Result<(), KernelError> {
        match (self.epilogue, self.partials) {
            (Some(sight), _) => write_at(b, buffers, sight, axes, sum),
            (None, Some(partials)) => {
                partials.store(offset / sum.ty().lanes.count(), sum);
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
    sum: Expr<'b>,
) -> Result<(), KernelError> {
    let groups = &sight.0.groups;
    let [batch, row, column] = [0, 1, 2].map(|g| decompose(b, point[g], &groups[g]));
    write_at(b, buffers, sight, &[batch, row, column].concat(), sum)
}

fn write_at<'b>(
    b: &'b Builder,
    buffers: &Buffers<'b>,
    sight: Sight<'_>,
    axes: &[Expr<'b>],
    sum: Expr<'b>,
) -> Result<(), KernelError> {
    let values = point::outputs(b, buffers, sight, axes, &[sum])?;
    point::store(b, buffers, sight, axes, &values)
}

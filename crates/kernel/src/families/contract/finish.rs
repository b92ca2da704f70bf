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
        let (count, ty) = if columns.is_multiple_of(4) { (columns / 4, Type::F32X4) } else { (columns, Type::F32) };
        let var = |i: u32, j: u32| b.var(format!("sum_{i}_{j}"), b.zero(ty));
        let vars = (0..rows).map(|i| (0..count).map(|j| var(i, j)).collect()).collect();
        Self { b, vars }
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
        b: &'b Builder,
        buffers: &Buffers<'b>,
        (words, at): (&Words<'b>, &Position<'b>),
        (rows, columns): (&[Expr<'b>], &[Expr<'b>]),
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let cells = Cells { b, buffers, words, at, finish: self };
        let mut result = Ok(());
        for (row, vars) in rows.iter().zip(&sums.vars) {
            b.if_(row.lt(words.m), || {
                for (column, var) in columns.iter().zip(vars) {
                    let cell = cells.quadruple(*row, *column, var.get());
                    result = result.clone().and(cell);
                }
            });
        }
        result
    }
}

struct Cells<'c, 'a, 'b> {
    b: &'b Builder,
    buffers: &'c Buffers<'b>,
    words: &'c Words<'b>,
    at: &'c Position<'b>,
    finish: &'c Finish<'a, 'b>,
}

impl<'b> Cells<'_, '_, 'b> {
    /// Writes the one or four columns of a variable.
    fn quadruple(&self, row: Expr<'b>, column: Expr<'b>, sum: Expr<'b>) -> Result<(), KernelError> {
        let together = match self.finish.epilogue {
            Some((_, quads)) => quads.is_some(),
            None => self.finish.wide,
        };
        if together {
            return self.cell(row, column, sum);
        }
        (0..sum.ty().lanes.count()).try_for_each(|j| self.cell(row, column + j, sum.lane(j as u8)))
    }

    fn cell(&self, row: Expr<'b>, column: Expr<'b>, sum: Expr<'b>) -> Result<(), KernelError> {
        let mut result = Ok(());
        self.b.if_(column.lt(self.words.n), || match (self.finish.epilogue, self.finish.partials) {
            (Some(sight), _) => {
                let point = [self.at.batch, row, column];
                result = write(self.b, self.buffers, sight, point, sum);
            }
            (None, Some(partials)) => {
                let offset = (self.at.z * self.words.m + row) * self.words.n + column;
                partials.store(offset / sum.ty().lanes.count(), sum);
            }
            (None, None) => {}
        });
        result
    }
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
    let axes = point::axes([&batch, &row, &column]);
    let values = point::outputs(b, buffers, sight, &axes, &[sum])?;
    point::store(b, buffers, sight, &axes, &values)
}

//! What the kernels are made of: filling tiles, products of tiles, sums of rows, stores.
//!
//! A tile lies in workgroup memory row by row in quadruples of elements; elements past the width of a head are zero. An
//! invocation (y, x) has the rows `y + high i` and the columns `x + wide j` of the scores, and the quadruples `x + wide j` of
//! the sums of its rows.

use super::geometry::{quads, stride};
use super::{Frame, WIDTH, sight};
use crate::KernelError;
use crate::families::contract::point;
use crate::families::contract::view::View;
use crate::kir::{Expr, Shared, Type, Var};

/// Most turns of a loop that are written out on hardware, where straight code schedules best.
const WRITTEN_OUT_HARDWARE: u32 = 8;
/// The same on software drivers, where code size costs compilation.
const WRITTEN_OUT_SOFTWARE: u32 = 2;

/// Rows of a head: which head, first row, number of rows there are.
#[derive(Clone, Copy)]
pub(super) struct Rows<'b> {
    pub(super) head: Expr<'b>,
    pub(super) first: Expr<'b>,
    pub(super) end: Expr<'b>,
}

/// Sums of the rows of an invocation, in quadruples.
pub(super) type Sums<'b> = Vec<Vec<Var<'b>>>;

impl<'b> Frame<'_, 'b> {
    pub(super) fn width(&self) -> u32 {
        self.a.shape.width as u32
    }

    fn written_out(&self) -> u32 {
        if self.is_hardware { WRITTEN_OUT_HARDWARE } else { WRITTEN_OUT_SOFTWARE }
    }

    /// Place of the invocation: (y, x).
    pub(super) fn place(&self) -> (Expr<'b>, Expr<'b>) {
        let lane = self.b.local_index();
        (lane / self.geometry.wide, lane % self.geometry.wide)
    }

    /// Rows of the invocation in the block.
    pub(super) fn rows(&self) -> Vec<Expr<'b>> {
        let g = self.geometry;
        (0..g.row_count()).map(|i| self.place().0 + i * g.high).collect()
    }

    /// Columns of the invocation in a tile.
    pub(super) fn columns(&self) -> Vec<Expr<'b>> {
        let g = self.geometry;
        (0..g.column_count()).map(|j| self.place().1 + j * g.wide).collect()
    }

    /// An array for a tile of so many rows.
    pub(super) fn tile(&self, name: &str, rows: u32) -> Shared<'b> {
        self.b.shared(name, Type::F32X4, rows * stride(self.width()))
    }

    /// An array for the scores of a tile.
    pub(super) fn scores(&self, name: &str) -> Shared<'b> {
        self.b.shared(name, Type::F32, self.geometry.rows * self.geometry.columns)
    }

    /// Fills a tile with `count` rows, times a factor; rows past the end are zero.
    pub(super) fn fill(
        &self,
        (tile, count): (Shared<'b>, u32),
        view: &View,
        rows: Rows<'b>,
        factor: Option<f32>,
    ) -> Result<(), KernelError> {
        let (b, per_row, step) = (self.b, quads(self.width()), self.geometry.invocations());
        let total = count * per_row;
        let mut outcome = Ok(());
        let mut one = |number: Expr<'b>| {
            let (row, quad) = (number / per_row, number % per_row);
            let at = rows.first + row;
            let value = self.quad(view, (rows.head, at.native_min(rows.end - 1)), quad);
            outcome = outcome.clone().and(value.map(|value| {
                let value = factor.map_or(value, |factor| value * factor);
                let value = at.lt(rows.end).select(value, b.zero(Type::F32X4));
                tile.store(row * stride(self.width()) + quad, value);
            }));
        };
        let lane = b.local_index();
        if total.div_ceil(step) > self.written_out() {
            b.for_("s", (lane, total), step, one);
            return outcome;
        }
        for turn in 0..total.div_ceil(step) {
            let number = lane + turn * step;
            if (turn + 1) * step <= total {
                one(number);
            } else {
                b.if_(number.lt(total), || one(number));
            }
        }
        outcome
    }

    /// Four elements of a row; zeros past the width.
    fn quad(
        &self,
        view: &View,
        (head, row): (Expr<'b>, Expr<'b>),
        quad: Expr<'b>,
    ) -> Result<Expr<'b>, KernelError> {
        let (b, width) = (self.b, self.width());
        let axes = self.axes(view, head, row);
        let sight = sight(view);
        let at = |d: Expr<'b>| -> Result<Expr<'b>, KernelError> {
            let axes = [axes.as_slice(), &[d]].concat();
            Ok(point::outputs(b, self.buffers, sight, &axes, &[])?[0])
        };
        if sight.1.is_some() {
            return at(quad * 4);
        }
        let lanes = (0..4).map(|e| {
            let d = quad * 4 + e;
            let value = at(d.native_min(width - 1))?;
            Ok(if width.is_multiple_of(4) { value } else { d.lt(width).select(value, 0.0) })
        });
        Ok(b.vector(&lanes.collect::<Result<Vec<_>, KernelError>>()?))
    }

    /// The value of a body that every row has one of.
    pub(super) fn of_row(&self, view: &View, head: Expr<'b>, row: Expr<'b>) -> Result<Expr<'b>, KernelError> {
        Ok(point::outputs(self.b, self.buffers, (view, None), &self.axes(view, head, row), &[])?[0])
    }

    /// Products of the rows with the columns of the invocation: `own . other`, row by row.
    pub(super) fn products(&self, own: Shared<'b>, other: Shared<'b>) -> Vec<Vec<Expr<'b>>> {
        let (b, stride, count) = (self.b, stride(self.width()), quads(self.width()));
        let (rows, columns) = (self.rows(), self.columns());
        let sums: Sums<'b> = rows
            .iter()
            .map(|_| columns.iter().map(|_| b.var("product", b.zero(Type::F32X4))).collect())
            .collect();
        let one = |quad: Expr<'b>| {
            let load = |tile: Shared<'b>, rows: &[Expr<'b>]| -> Vec<Expr<'b>> {
                rows.iter().map(|row| tile.load(*row * stride + quad)).collect()
            };
            let (left, right) = (load(own, &rows), load(other, &columns));
            for (sums, x) in sums.iter().zip(&left) {
                sums.iter().zip(&right).for_each(|(sum, y)| sum.set(x.fma(*y, sum.get())));
            }
        };
        self.in_turns("d", count, one);
        sums.iter().map(|row| row.iter().map(|sum| sum.get().sum_lanes()).collect()).collect()
    }

    /// Calls `one` for `0..count`, several at a turn where they divide the count.
    fn in_turns(&self, name: &str, count: u32, one: impl Fn(Expr<'b>)) {
        let b = self.b;
        let most = self.written_out();
        let unroll = (1..=most).rev().find(|n| count.is_multiple_of(*n)).unwrap_or(1);
        if count <= most {
            (0..count).for_each(|i| one(b.constant(i)));
            return;
        }
        b.for_(name, (0_u32, count), unroll, |from| (0..unroll).for_each(|i| one(from + i)));
    }

    /// Sums that start at zero.
    pub(super) fn sums(&self) -> Sums<'b> {
        let per_row = quads(self.width()).div_ceil(self.geometry.wide);
        let row = |_| (0..per_row).map(|_| self.b.var("sum", self.b.zero(Type::F32X4))).collect();
        (0..self.geometry.row_count()).map(row).collect()
    }

    /// Quadruples of the sums of the invocation.
    fn sum_quads(&self) -> Vec<Expr<'b>> {
        let per_row = quads(self.width()).div_ceil(self.geometry.wide);
        (0..per_row).map(|j| self.place().1 + j * self.geometry.wide).collect()
    }

    /// Adds rows of a tile, weighed by the scores of the invocation's rows.
    pub(super) fn weigh(&self, sums: &Sums<'b>, scores: Shared<'b>, tile: Shared<'b>) {
        let (g, last) = (self.geometry, quads(self.width()) - 1);
        let (rows, stride) = (self.rows(), stride(self.width()));
        let quads: Vec<Expr<'b>> = self.sum_quads().into_iter().map(|q| q.native_min(last)).collect();
        self.in_turns("c", g.columns, |column| {
            let values: Vec<Expr<'b>> = quads.iter().map(|quad| tile.load(column * stride + *quad)).collect();
            for (row, sums) in rows.iter().zip(sums) {
                let weight = scores.load(*row * g.columns + column);
                sums.iter().zip(&values).for_each(|(sum, value)| sum.set(value.fma(weight, sum.get())));
            }
        });
    }

    /// Writes sums as rows of a result, each times a factor of its row.
    pub(super) fn store(
        &self,
        (number, rows): (usize, Rows<'b>),
        sums: &Sums<'b>,
        factor: &dyn Fn(Expr<'b>) -> Expr<'b>,
    ) -> Result<(), KernelError> {
        let (b, width) = (self.b, self.width());
        let view = &self.views.results[number].1;
        let sight = sight(view);
        let step = if sight.1.is_some() { 4 } else { 1 };
        let mut outcome = Ok(());
        for (row, sums) in self.rows().into_iter().zip(sums) {
            let (at, factor) = (rows.first + row, factor(row));
            b.if_(at.lt(rows.end), || {
                let axes = self.axes(view, rows.head, at);
                for (quad, sum) in self.sum_quads().into_iter().zip(sums) {
                    let value = sum.get() * factor;
                    for e in (0..4).step_by(step) {
                        let d = quad * 4 + e as u32;
                        let value = if step == 4 { value } else { value.lane(e as u8) };
                        b.if_(d.lt(width), || {
                            let axes = [axes.as_slice(), &[d]].concat();
                            let stored = point::store(b, self.buffers, sight, &axes, &[value]);
                            outcome = outcome.clone().and(stored);
                        });
                    }
                }
            });
        }
        outcome
    }

    /// Whether a query sees a key that exists; `None`: certainly.
    pub(super) fn sees(&self, query: Expr<'b>, key: Expr<'b>) -> Option<Expr<'b>> {
        let (mine, theirs) = (query + self.keys, key + self.queries);
        let [back, ahead] = self.limits();
        let terms = [ahead.map(|n| theirs.le(mine + n)), back.map(|n| mine.le(theirs + n))];
        terms.into_iter().flatten().reduce(|x, y| x & y)
    }

    /// How far queries see back and ahead, where that is limited.
    fn limits(&self) -> [Option<u32>; 2] {
        let s = self.a.shape;
        let most = s.queries + s.keys;
        self.a.mask.reach(most).map(|n| (n < most).then_some(n as u32))
    }

    /// The keys that any query of the block sees, as (first, end).
    pub(super) fn seen(&self) -> (Expr<'b>, Expr<'b>) {
        let last = (self.first + self.geometry.rows).native_min(self.queries) - 1;
        let [back, ahead] = self.limits();
        self.window((self.first + self.keys, last + self.keys), (back, ahead), (self.queries, self.keys))
    }

    /// The queries that see any key of the block, as (first, end).
    pub(super) fn seeing(&self) -> (Expr<'b>, Expr<'b>) {
        let last = (self.first + self.geometry.rows).native_min(self.keys) - 1;
        let [back, ahead] = self.limits();
        self.window(
            (self.first + self.queries, last + self.queries),
            (ahead, back),
            (self.keys, self.queries),
        )
    }

    /// `first - before - shift .. last + after + 1 - shift`, as far as it lies in `0..count`.
    fn window(
        &self,
        (first, last): (Expr<'b>, Expr<'b>),
        (before, after): (Option<u32>, Option<u32>),
        (shift, count): (Expr<'b>, Expr<'b>),
    ) -> (Expr<'b>, Expr<'b>) {
        let less = |x: Expr<'b>, y: Expr<'b>| x.native_max(y) - y;
        let start = before.map_or(self.b.constant(0_u32), |n| less(first, shift + n));
        let end = after.map_or(count, |n| less(last + (n + 1), shift).native_min(count));
        (start, end)
    }

    /// The bias of a pair, if there is one.
    pub(super) fn bias(
        &self,
        head: Expr<'b>,
        query: Expr<'b>,
        key: Expr<'b>,
    ) -> Result<Option<Expr<'b>>, KernelError> {
        let Some(view) = &self.views.bias else { return Ok(None) };
        let (query, key) = (query.native_min(self.queries - 1), key.native_min(self.keys - 1));
        let mut axes = self.axes(view, head, query);
        axes.extend(crate::families::emit::decompose(self.b, key, &view.groups[WIDTH]));
        Ok(Some(point::outputs(self.b, self.buffers, (view, None), &axes, &[])?[0]))
    }
}

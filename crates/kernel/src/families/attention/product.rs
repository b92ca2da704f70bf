//! Products of tiles: scores of an invocation's rows and columns, and sums of rows weighed by scores.
//!
//! Scores that become weights pass through workgroup memory: row by row, the columns of an invocation side by side as far as
//! they make a vector. Sums are in registers in quadruples of elements.

use super::Frame;
use super::geometry::{quads, stride};
use super::sight;
use super::tile::Rows;
use crate::KernelError;
use crate::families::contract::point;
use crate::kir::{Expr, Lanes, Scalar, Shared, Type, Var};

/// Sums of the rows of an invocation, in quadruples.
pub(super) type Sums<'b> = Vec<Vec<Var<'b>>>;

impl<'b> Frame<'_, 'b> {
    /// Rows of the invocation in the block.
    pub(super) fn rows(&self) -> Vec<Expr<'b>> {
        let g = self.geometry;
        (0..g.row_count()).map(|i| self.place.0 + i * g.high).collect()
    }

    /// Columns of the invocation in a tile.
    pub(super) fn columns(&self) -> Vec<Expr<'b>> {
        let g = self.geometry;
        (0..g.column_count()).map(|j| self.place.1 + j * g.wide).collect()
    }

    /// Products of the rows with the columns of the invocation: `own . other`, row by row.
    pub(super) fn products(&self, own: Shared<'b>, other: Shared<'b>) -> Vec<Vec<Expr<'b>>> {
        let (b, stride) = (self.b, stride(self.width()));
        let (rows, columns) = (self.rows(), self.columns());
        let sums: Sums<'b> =
            rows.iter().map(|_| columns.iter().map(|_| b.var("product", 0.0_f32)).collect()).collect();
        self.in_turns("d", quads(self.width()), |quad| {
            let load = |tile: Shared<'b>, rows: &[Expr<'b>]| -> Vec<Expr<'b>> {
                rows.iter().map(|row| tile.load(*row * stride + quad)).collect()
            };
            let (left, right) = (load(own, &rows), load(other, &columns));
            for (sums, x) in sums.iter().zip(&left) {
                for (sum, y) in sums.iter().zip(&right) {
                    sum.set((0..4).fold(sum.get(), |sum, e| x.lane(e).fma(y.lane(e), sum)));
                }
            }
        });
        sums.iter().map(|row| row.iter().map(|sum| sum.get()).collect()).collect()
    }

    /// Calls `one` for `0..count`, several at a turn where they divide the count.
    fn in_turns(&self, name: &str, count: u32, one: impl Fn(Expr<'b>)) {
        let b = self.b;
        let most = self.written_out;
        let unroll = (1..=most).rev().find(|n| count.is_multiple_of(*n)).unwrap_or(1);
        if count <= most {
            (0..count).for_each(|i| one(b.constant(i)));
            return;
        }
        b.for_(name, (0_u32, count), unroll, |from| (0..unroll).for_each(|i| one(from + i)));
    }

    /// An array for the weights of a tile.
    pub(super) fn weights(&self, name: &str) -> Shared<'b> {
        let g = self.geometry;
        let lanes = Lanes::from_count(g.weight_lanes() as usize).unwrap_or(Lanes::One);
        self.b.shared(name, Type::new(Scalar::F32, lanes), g.rows * g.weight_stride())
    }

    /// Puts down the weights of a row of the invocation, one per column of it.
    pub(super) fn put_weights(&self, weights: Shared<'b>, row: Expr<'b>, values: &[Expr<'b>]) {
        let g = self.geometry;
        for (j, values) in (0..).zip(values.chunks(g.weight_lanes() as usize)) {
            let value = if values.len() == 1 { values[0] } else { self.b.vector(values) };
            weights.store(row * g.weight_stride() + self.place.1 + j * g.wide, value);
        }
    }

    /// Sums that start at zero.
    pub(super) fn sums(&self) -> Sums<'b> {
        let per_row = self.geometry.sum_count(self.width());
        let row = |_| (0..per_row).map(|_| self.b.var("sum", self.b.zero(Type::F32X4))).collect();
        (0..self.geometry.row_count()).map(row).collect()
    }

    /// The part that the invocation belongs to, and its place among the neighbours of the part.
    pub(super) fn lanes_part(&self) -> (Expr<'b>, Expr<'b>) {
        let length = self.geometry.wide / self.geometry.parts(self.width());
        (self.place.1 / length, self.place.1 % length)
    }

    /// Quadruples of the sums of the invocation.
    pub(super) fn sum_quads(&self) -> Vec<Expr<'b>> {
        let (g, first) = (self.geometry, self.lanes_part().1);
        let length = g.wide / g.parts(self.width());
        (0..g.sum_count(self.width())).map(|j| first + j * length).collect()
    }

    /// Adds rows of a tile, weighed by the scores of the invocation's rows.
    pub(super) fn weigh(&self, sums: &Sums<'b>, weights: Shared<'b>, tile: Shared<'b>) {
        let (g, last) = (self.geometry, quads(self.width()) - 1);
        let (rows, stride, lanes) = (self.rows(), stride(self.width()), g.weight_lanes());
        let quads: Vec<Expr<'b>> = self.sum_quads().into_iter().map(|q| q.native_min(last)).collect();
        let share = g.wide / g.parts(self.width());
        let first = self.lanes_part().0 * share;
        for j in 0..g.column_count() / lanes {
            self.in_turns("c", share, |i| {
                let place = first + i;
                let load = |row: &Expr<'b>| weights.load(*row * g.weight_stride() + place + j * g.wide);
                let weights: Vec<Expr<'b>> = rows.iter().map(load).collect();
                for e in 0..lanes {
                    let slot = (place + (j * lanes + e) * g.wide) * stride;
                    for (k, quad) in quads.iter().enumerate() {
                        let value = tile.load(slot + *quad);
                        for (sums, weight) in sums.iter().zip(&weights) {
                            sums[k].set(value.fma(weight.lane(e as u8), sums[k].get()));
                        }
                    }
                }
            });
        }
    }

    /// Adds up the sums of the parts in the first part, through a tile that nobody reads any more.
    pub(super) fn merge(&self, sums: &Sums<'b>, tile: Shared<'b>) {
        let (b, g) = (self.b, self.geometry);
        let parts = g.parts(self.width());
        if parts == 1 {
            return;
        }
        let (share, own) = (g.wide / parts, self.place.0 * g.wide + self.place.1);
        let all = || (0..).zip(sums.iter().flatten()).map(|(n, sum)| (n * g.invocations(), *sum));
        b.barrier();
        all().for_each(|(base, sum)| tile.store(own + base, sum.get()));
        b.barrier();
        b.if_(self.lanes_part().0.equals(0_u32), || {
            for (base, sum) in all() {
                let others = (1..parts).map(|part| tile.load(own + (base + part * share)));
                sum.set(others.fold(sum.get(), |sum, other| sum + other));
            }
        });
    }

    /// Writes merged sums as rows of a result, each times the factor of its row.
    pub(super) fn store(
        &self,
        (number, rows): (usize, Rows<'b>),
        sums: &Sums<'b>,
        factors: &[Expr<'b>],
    ) -> Result<(), KernelError> {
        let (b, width) = (self.b, self.width());
        let view = &self.views.results[number].1;
        let sight = sight(view);
        let step = if sight.1.is_some() { 4 } else { 1 };
        let mut outcome = Ok(());
        for ((row, sums), factor) in self.rows().into_iter().zip(sums).zip(factors) {
            let at = rows.first + row;
            b.if_(at.lt(rows.end) & self.lanes_part().0.equals(0_u32), || {
                let axes = self.axes(view, rows.head, at);
                for (quad, sum) in self.sum_quads().into_iter().zip(sums) {
                    let value = sum.get() * *factor;
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
}

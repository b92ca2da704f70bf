//! Attention on matrix units: the same blocks and tiles, with products of 16x16 matrices of rounded operands.
//!
//! A subgroup owns a *strip* of 16 rows. What it owns becomes matrices once; of what it runs over, each tile's terms lie in
//! workgroup memory. Results of matrices leave through the strip's part of an array of f32, after which two invocations per row take turns
//! at quadruples of columns: they make weights of scores, round them into a second array, and matrices of that are the left factors
//! of the next product. Within a strip only its subgroup waits; tiles of all strips change at two barriers.
//!
//! On targets without such units the same rounded operands are multiplied by ordinary arithmetic, in which case every wait is one of
//! the workgroup.
//!
//! | module | owns |
//! |---|---|
//! | this one | strips, products, sums, weights |
//! | `forward`, `gradient` | the kernels |

mod forward;
mod gradient;

use super::Frame;
use super::geometry::Halves;
use super::product::Sums;
use super::tile::{Registers, Rows, Tile};
use crate::KernelError;
use crate::families::contract::rounding;
use crate::families::contract::tiling::{Units, matrix_stride};
use crate::kir::{Expr, Factors, MATRIX, MatrixBlock, MatrixVar, Order, Shared, Type, Var};
use griffinfly_ir::target::NumericClass;

/// What a strip owns: matrices by place along the width and term, where there are such.
struct Own<'a, 'b> {
    tile: Tile<'a, 'b>,
    matrices: Vec<Vec<MatrixVar<'b>>>,
}

/// Sums of a strip: a row of matrices, or quadruples of each invocation's row.
enum StripSums<'b> {
    Matrices(Vec<MatrixVar<'b>>),
    Plain(Sums<'b>),
}

/// The arrays of all strips.
#[derive(Clone, Copy)]
struct Strips<'b> {
    /// Results of matrices, on their way to registers; none where there are no matrices.
    scores: Option<Shared<'b>>,
    /// Everything that is rounded.
    halves: Shared<'b>,
    places: Halves,
    /// Class of weights.
    class: NumericClass,
}

impl<'a, 'b> Frame<'a, 'b> {
    /// Waits for the strip.
    fn wait(&self) {
        match self.units {
            Units::Matrix(_) => self.b.subgroup_barrier(),
            Units::Plain => self.b.barrier(),
        }
    }

    fn strips(&self, class: NumericClass) -> Strips<'b> {
        let (b, g) = (self.b, self.geometry);
        let places = g.halves(self.a.variant, self.width(), self.units);
        let halves = match self.units {
            Units::Matrix(Factors::Half(format)) => b.shared_half("halves", format, places.length),
            Units::Matrix(Factors::F32) | Units::Plain => b.shared("halves", Type::F32X4, places.length),
        };
        let array = || b.shared("scores", Type::F32X4, g.rows * g.score_stride());
        Strips { scores: (self.units != Units::Plain).then(array), halves, places, class }
    }

    /// Makes matrices of what the block owns, tile by tile in one place, and lays down the first tiles of what it runs over; the
    /// second ones are on their way.
    fn prepare<const N: usize>(
        &self,
        own: [(Tile<'a, 'b>, Rows<'b>); N],
        others: [Tile<'a, 'b>; 2],
        [now, later]: [Rows<'b>; 2],
    ) -> Result<([Own<'a, 'b>; N], [Registers<'b>; 2]), KernelError> {
        let fetched = own.map(|(tile, rows)| (tile, rows, self.registers(tile)));
        let next = others.map(|tile| self.registers(tile));
        fetched.iter().try_for_each(|(tile, rows, registers)| self.fetch(*tile, *rows, registers))?;
        (0..2).try_for_each(|i| self.fetch(others[i], now, &next[i]))?;
        let mut outcome = Ok(());
        let own = fetched.map(|(tile, rows, registers)| {
            outcome = outcome.clone().and(self.put(tile, rows, &registers));
            self.b.barrier();
            let own = self.own(tile);
            self.b.barrier();
            own
        });
        outcome?;
        for (tile, registers) in others.into_iter().zip(&next) {
            self.put(tile, now, registers)?;
            self.fetch(tile, later, registers)?;
        }
        self.b.barrier();
        Ok((own, next))
    }

    /// The values, or another one where a pair is not seen, unless all are.
    fn masked(
        &self,
        values: Vec<Expr<'b>>,
        are_seen: Expr<'b>,
        sees: impl Fn(usize) -> Expr<'b>,
        other: f32,
    ) -> Vec<Expr<'b>> {
        let vars: Vec<Var<'b>> = values.into_iter().map(|value| self.b.var("value", value)).collect();
        self.b.if_uniform(!are_seen, || {
            vars.iter().enumerate().for_each(|(i, var)| var.set(sees(i).select(var.get(), other)));
        });
        vars.iter().map(|var| var.get()).collect()
    }

    /// First row of the invocation's strip in the block; the same within a subgroup.
    fn strip_row(&self) -> Expr<'b> {
        (self.place.0 / MATRIX) * MATRIX
    }

    /// What the strip owns of a tile that lies ready.
    fn own(&self, tile: Tile<'a, 'b>) -> Own<'a, 'b> {
        let stride = matrix_stride(self.width());
        let (first, order) = (self.strip_row() * stride, Order::Rows);
        let one = |term: u32, k: u32| {
            let index = first + (term + k * (MATRIX / 4));
            self.b.left_matrix("own", MatrixBlock { array: tile.shared, index, stride, order })
        };
        let terms = |k: u32| tile.terms().map(|term| one(term, k)).collect();
        let count = if self.units == Units::Plain { 0 } else { self.width() / MATRIX };
        Own { tile, matrices: (0..count).map(terms).collect() }
    }

    /// Quadruples of columns of the invocation: every second one.
    fn column_quads(&self) -> Vec<Expr<'b>> {
        (0..self.geometry.columns / 8).map(|j| self.place.1 + 2 * j).collect()
    }

    /// Columns of the invocation, one by one.
    fn strip_columns(&self) -> Vec<Expr<'b>> {
        self.column_quads().into_iter().flat_map(|quad| (0..4_u32).map(move |e| quad * 4 + e)).collect()
    }

    /// Products of the invocation's row with its columns of a tile, in quadruples. The strip has to have waited since it read scores; with
    /// matrices it waits here, before it reads the new ones.
    fn strip_products(&self, strips: Strips<'b>, own: &Own<'a, 'b>, other: Tile<'a, 'b>) -> Vec<Expr<'b>> {
        let (Units::Matrix(factors), Some(scores)) = (self.units, strips.scores) else {
            return self.plain_products(own.tile, other);
        };
        let (b, g, stride) = (self.b, self.geometry, matrix_stride(self.width()));
        let columns: Vec<u32> = (0..g.columns).step_by(MATRIX as usize).collect();
        let sums: Vec<MatrixVar<'b>> = columns.iter().map(|_| b.matrix_sum("product", factors)).collect();
        for (k, lefts) in (0..).zip(&own.matrices) {
            let order = Order::Columns;
            let right = |term: u32, column: u32| {
                let index = b.constant(term + column * stride + k * (MATRIX / 4));
                b.right_matrix("other", MatrixBlock { array: other.shared, index, stride, order })
            };
            let rights: Vec<Vec<MatrixVar<'b>>> =
                columns.iter().map(|c| other.terms().map(|term| right(term, *c)).collect()).collect();
            for &(x, y) in other.class().products() {
                sums.iter().zip(&rights).for_each(|(sum, right)| sum.add_product(lefts[x], right[y]));
            }
        }
        let (first, stride) = (self.strip_row() * g.score_stride(), g.score_stride());
        for (column, sum) in columns.iter().zip(&sums) {
            let (index, order) = (first + column / 4, Order::Rows);
            sum.store(MatrixBlock { array: scores, index, stride, order });
        }
        self.wait();
        let row = self.place.0 * stride;
        self.column_quads().into_iter().map(|quad| scores.load(row + quad)).collect()
    }

    /// The same by ordinary arithmetic.
    fn plain_products(&self, own: Tile<'a, 'b>, other: Tile<'a, 'b>) -> Vec<Expr<'b>> {
        let (b, stride) = (self.b, matrix_stride(self.width()));
        let (lefts, rights): (Vec<_>, Vec<_>) = (own.terms().collect(), other.terms().collect());
        let row = self.place.0 * stride;
        let one = |quad: Expr<'b>| {
            let sums: Vec<Var<'b>> = (0..4).map(|_| b.var("product", 0.0_f32)).collect();
            b.for_("d", (0_u32, self.width() / 4), 1_u32, |d| {
                for &(x, y) in other.class().products() {
                    let left = own.shared.load(row + d + lefts[x]);
                    for (e, sum) in (0..4_u32).zip(&sums) {
                        let right = other.shared.load((quad * 4 + e) * stride + d + rights[y]);
                        sum.set((0..4).fold(sum.get(), |sum, e| left.lane(e).fma(right.lane(e), sum)));
                    }
                }
            });
            b.vector(&sums.iter().map(|sum| sum.get()).collect::<Vec<_>>())
        };
        self.column_quads().into_iter().map(one).collect()
    }

    /// Puts down weights of the invocation's row, rounded, one quadruple for each of its quadruples of columns.
    fn put_strip_weights(&self, strips: Strips<'b>, values: &[Expr<'b>]) {
        let row = self.place.0 * matrix_stride(self.geometry.columns);
        for (quad, value) in self.column_quads().into_iter().zip(values) {
            for term in rounding::terms(self.b, *value, strips.class, self.units) {
                strips.halves.store(row + quad + strips.places.weights, term);
            }
        }
    }

    /// Sums that start at zero.
    fn strip_sums(&self) -> StripSums<'b> {
        match self.units {
            Units::Plain => StripSums::Plain(self.sums()),
            Units::Matrix(factors) => {
                let sum = |_| self.b.matrix_sum("sum", factors);
                StripSums::Matrices((0..self.width() / MATRIX).map(sum).collect())
            }
        }
    }

    /// Adds the rows of a tile (their first terms), weighed by the strip's weights, for which it has waited.
    fn weigh_strip(&self, strips: Strips<'b>, sums: &StripSums<'b>, tile: Tile<'a, 'b>) {
        let (b, g, stride) = (self.b, self.geometry, matrix_stride(self.width()));
        let (line, first) = (matrix_stride(g.columns), tile.terms().next().unwrap_or(0));
        let sums = match sums {
            StripSums::Matrices(sums) => sums,
            StripSums::Plain(sums) => return self.weigh_plain(strips, &sums[0], tile),
        };
        let order = Order::Rows;
        for step in (0..g.columns).step_by(MATRIX as usize) {
            let index = self.strip_row() * line + (strips.places.weights + step / 4);
            let left = b.left_matrix("w", MatrixBlock { array: strips.halves, index, stride: line, order });
            for (n, sum) in (0..).zip(sums) {
                let index = b.constant(first + step * stride + n * (MATRIX / 4));
                let block = MatrixBlock { array: tile.shared, index, stride, order };
                sum.add_product(left, b.right_matrix("row", block));
            }
        }
    }

    fn weigh_plain(&self, strips: Strips<'b>, sums: &[Var<'b>], tile: Tile<'a, 'b>) {
        let (b, g, stride) = (self.b, self.geometry, matrix_stride(self.width()));
        let (row, first) = (self.place.0 * matrix_stride(g.columns), tile.terms().next().unwrap_or(0));
        b.for_("c", (0_u32, g.columns / 4), 1_u32, |quad| {
            let weights = strips.halves.load(row + quad + strips.places.weights);
            for e in 0..4_u8 {
                for (sum, at) in sums.iter().zip(self.width_quads()) {
                    let value = tile.shared.load((quad * 4 + u32::from(e)) * stride + at + first);
                    sum.set(value.fma(weights.lane(e), sum.get()));
                }
            }
        });
    }

    /// Quadruples of the width that the invocation has sums of: every second one.
    fn width_quads(&self) -> Vec<Expr<'b>> {
        (0..self.width() / 8).map(|j| self.place.1 + 2 * j).collect()
    }

    /// Multiplies the sums of each row by its factor.
    fn rescale(&self, strips: Strips<'b>, sums: &StripSums<'b>, factor: Expr<'b>) {
        match sums {
            StripSums::Plain(sums) => sums[0].iter().for_each(|sum| sum.set(sum.get() * factor)),
            StripSums::Matrices(matrices) => self.through_scores(strips, matrices, |array, places, batch| {
                places.iter().for_each(|place| array.store(*place, array.load(*place) * factor));
                self.wait();
                batch.iter().for_each(|(matrix, block)| matrix.load(*block));
            }),
        }
    }

    /// The sums in ordinary registers: of the invocation's row, the quadruples of the width that are its own.
    fn strip_registers(&self, strips: Strips<'b>, sums: StripSums<'b>) -> Sums<'b> {
        let matrices = match sums {
            StripSums::Plain(sums) => return sums,
            StripSums::Matrices(matrices) => matrices,
        };
        let registers = self.sums();
        let mut next = registers[0].iter();
        self.through_scores(strips, &matrices, |array, places, _| {
            places.iter().zip(next.by_ref()).for_each(|(place, sum)| sum.set(array.load(*place)));
        });
        registers
    }

    /// Writes matrices to the strip's scores, as many at a time as fit, and calls `one` with the array, the places of the invocation and the
    /// matrices with theirs.
    fn through_scores(
        &self,
        strips: Strips<'b>,
        matrices: &[MatrixVar<'b>],
        mut one: impl FnMut(Shared<'b>, &[Expr<'b>], &[(MatrixVar<'b>, MatrixBlock<'b>)]),
    ) {
        let Some(array) = strips.scores else { return };
        let (g, order) = (self.geometry, Order::Rows);
        let (stride, row) = (g.score_stride(), self.strip_row());
        for batch in matrices.chunks((g.columns / MATRIX) as usize) {
            let block = |n: u32| MatrixBlock { array, index: row * stride + n * (MATRIX / 4), stride, order };
            let batch: Vec<_> = batch.iter().zip(0..).map(|(matrix, n)| (*matrix, block(n))).collect();
            self.wait();
            batch.iter().for_each(|(matrix, block)| matrix.store(*block));
            self.wait();
            let quads = 0..batch.len() as u32 * 2;
            let places = quads.map(|j| self.place.0 * stride + self.place.1 + 2 * j).collect::<Vec<_>>();
            one(array, &places, &batch);
        }
        self.wait();
    }
}

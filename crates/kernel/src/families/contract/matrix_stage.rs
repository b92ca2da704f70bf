//! Filling the tiles of one factor's terms in workgroup memory, for matrices.
//!
//! A tile lies in lines of quadruples: one line per row where a quadruple holds four products of a row, one per product where
//! it holds four rows of a product; matrices can be read either way. What is read side by side from memory decides: then a
//! *chunk*, what an invocation loads at once, is one 128-bit load. Chunks are loaded into registers during the arithmetic and
//! become terms when they are put down.
//!
//! Rows past the end repeat the last ones (their sums are never stored); products past the end are read inside the range and
//! replaced by zero. So no load is guarded.

use super::point::{self, Buffers, Sight};
use super::problem::{LAST, ROWS};
use super::rounding;
use super::tiling::{Tiling, Units, matrix_stride};
use super::view::View;
use crate::KernelError;
use crate::families::emit::decompose;
use crate::kir::{Builder, Expr, Factors, MatrixBlock, Order, Shared, Type, Var};
use griffinfly_ir::target::NumericClass;

/// What a quadruple holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// Four products of a row.
    OfRows,
    /// Four rows of a product.
    OfProducts,
}

/// How a factor is read: four of its neighbours at once, if that is possible.
pub(super) fn sight(view: &View) -> Sight<'_> {
    (view, [ROWS, LAST].into_iter().find(|group| view.allows_quads(*group)))
}

/// What the tiles of one factor need to know.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a, 'b> {
    pub(super) b: &'b Builder,
    pub(super) buffers: &'a Buffers<'b>,
    pub(super) sight: Sight<'a>,
    pub(super) name: &'static str,
    /// Rows of a tile.
    pub(super) rows: u32,
    pub(super) tiling: Tiling,
    pub(super) class: NumericClass,
    pub(super) units: Units,
    /// First row of the tile, and rows in total.
    pub(super) range: (Expr<'b>, Expr<'b>),
}

/// The tiles of one factor.
pub(super) struct Stage<'a, 'b> {
    plan: Plan<'a, 'b>,
    lines: Lines,
    batch: Vec<Expr<'b>>,
    arrays: Vec<Shared<'b>>,
    chunks: Vec<Chunk<'b>>,
    /// For each chunk, the second output of the factor summed over all tiles, unrounded; empty if it has none.
    besides: Vec<Var<'b>>,
}

/// The share of an invocation in one round.
struct Chunk<'b> {
    active: Option<Expr<'b>>,
    /// Row, or first of four.
    row: Expr<'b>,
    /// Product, or first of four, in the tile.
    product: Expr<'b>,
    /// Axes of the row, or of all four where they are not read together.
    rows: Vec<Vec<Expr<'b>>>,
}

/// Arrays for the terms of a factor with tiles of `rows` rows.
pub(super) fn arrays<'b>(b: &'b Builder, name: &str, rows: u32, plan: (Tiling, Units)) -> Vec<Shared<'b>> {
    let (tiling, units) = plan;
    // Row by row, which takes more than product by product.
    let quads = rows * matrix_stride(tiling.bk);
    let array = |term: u32| {
        let name = format!("{name}_{term}");
        match units {
            Units::Matrix(Factors::Half(format)) => b.shared_half(name, format, quads),
            Units::Matrix(Factors::F32) | Units::Plain => b.shared(name, Type::F32, 4 * quads),
        }
    };
    (0..tiling.class().terms()).map(array).collect()
}

/// Quadruples in which what invocations sum for rows besides is added.
pub(super) const fn row_sum_quads(tiling: &Tiling) -> u32 {
    let (slots, invocations) = (tiling.bm * tiling.bk / 16, tiling.invocations());
    if slots > invocations { slots } else { invocations }
}

/// For each output the quadruple of its values at four points.
fn packed<'b>(b: &'b Builder, points: Vec<Vec<Expr<'b>>>) -> Vec<Expr<'b>> {
    let count = points.first().map_or(0, Vec::len);
    (0..count).map(|n| b.vector(&points.iter().map(|outputs| outputs[n]).collect::<Vec<_>>())).collect()
}

impl<'a, 'b> Stage<'a, 'b> {
    /// Tiles over [`arrays`].
    pub(super) fn new(plan: Plan<'a, 'b>, batch: Expr<'b>, arrays: Vec<Shared<'b>>) -> Self {
        let (view, quads) = plan.sight;
        let lines = match quads {
            Some(ROWS) => Lines::OfProducts,
            Some(_) => Lines::OfRows,
            None if view.is_contiguous(LAST) => Lines::OfRows,
            None => Lines::OfProducts,
        };
        let batch = decompose(plan.b, batch, &view.groups[0]);
        let mut stage = Self { plan, lines, batch, arrays, chunks: Vec::new(), besides: Vec::new() };
        let (threads, count) = (plan.tiling.invocations(), plan.rows * plan.tiling.bk / 4);
        for round in 0..count.div_ceil(threads) {
            let number = plan.b.local_index() + round * threads;
            let active = ((round + 1) * threads > count).then(|| number.lt(count));
            let chunk = stage.chunk(number, active);
            stage.chunks.push(chunk);
        }
        if view.body.expr.outputs().len() > 1 {
            let var = |_: &Chunk<'b>| plan.b.var("besides", plan.b.zero(Type::F32X4));
            stage.besides = stage.chunks.iter().map(var).collect();
        }
        stage
    }

    /// What the factor's second output sums up to over all products, for these rows of the tile, four to a variable: the shares of
    /// all invocations go through an array of quadruples that nobody else uses now, of [`row_sum_quads`], and are added in order.
    pub(super) fn row_sums(&self, array: Shared<'b>, rows: &[Expr<'b>]) -> Vec<Var<'b>> {
        let (b, tiling) = (self.plan.b, &self.plan.tiling);
        if self.besides.is_empty() {
            return Vec::new();
        }
        let sum = |values: Vec<Expr<'b>>| {
            values.into_iter().reduce(|x, y| x + y).unwrap_or_else(|| b.constant(0.0_f32))
        };
        let lanes = |value: Expr<'b>| sum((0..4).map(|lane| value.lane(lane)).collect());
        b.barrier();
        // Quadruples of a row.
        let wide = tiling.bk / 16;
        match self.lines {
            Lines::OfRows => {
                for (chunk, var) in self.chunks.iter().zip(&self.besides) {
                    let slot = chunk.product / 4;
                    let store = || array.store_lane(chunk.row * wide + slot / 4, slot % 4, lanes(var.get()));
                    self.when(chunk, store);
                }
            }
            // All chunks of an invocation are of the same four rows.
            Lines::OfProducts => {
                let all = self.besides.iter().map(|var| var.get()).reduce(|x, y| x + y);
                all.into_iter().for_each(|all| array.store(b.local_index(), all));
            }
        }
        b.barrier();
        let total = |row: &Expr<'b>| match self.lines {
            Lines::OfRows => sum((0..wide).map(|quad| lanes(array.load(*row * wide + quad))).collect()),
            Lines::OfProducts => {
                let period = self.plan.rows / 4;
                let quad = |i: u32| array.load(*row / 4 + i * period);
                let quads = (0..tiling.invocations() / period).map(quad).reduce(|x, y| x + y);
                quads.map_or_else(|| b.constant(0.0_f32), |quads| quads.lane_at(*row % 4))
            }
        };
        let packed = rows.chunks(4).map(|rows| {
            let sums: Vec<Expr<'b>> = rows.iter().map(total).collect();
            let last = sums.len() - 1;
            b.var("rows", b.vector(&[0, 1, 2, 3].map(|i: usize| sums[i.min(last)])))
        });
        packed.collect()
    }

    /// The chunk with a number; what is the same as in the first round is taken from there.
    fn chunk(&self, number: Expr<'b>, active: Option<Expr<'b>>) -> Chunk<'b> {
        let plan = &self.plan;
        let period = match self.lines {
            Lines::OfRows => plan.tiling.bk / 4,
            Lines::OfProducts => plan.rows / 4,
        };
        let first = self.chunks.first().filter(|_| plan.tiling.invocations().is_multiple_of(period));
        let (fast, slow) = (number % period, number / period);
        match self.lines {
            Lines::OfRows => {
                let product = first.map_or(fast * 4, |first| first.product);
                Chunk { active, row: slow, product, rows: self.row_axes(slow, 1) }
            }
            Lines::OfProducts => {
                let row = first.map_or(fast * 4, |first| first.row);
                let count = if plan.sight.1.is_some() { 1 } else { 4 };
                let rows = first.map_or_else(|| self.row_axes(row, count), |first| first.rows.clone());
                Chunk { active, row, product: slow, rows }
            }
        }
    }

    /// Axes of so many rows, the last ones at the end of the factor; one stands for four where those are read together.
    fn row_axes(&self, row: Expr<'b>, count: u32) -> Vec<Vec<Expr<'b>>> {
        let (first, size) = self.plan.range;
        let four = self.lines == Lines::OfProducts && count == 1;
        let last = size - if four { 4 } else { 1 };
        let groups = &self.plan.sight.0.groups[ROWS];
        let axes = |j: u32| decompose(self.plan.b, (first + row + j).native_min(last), groups);
        (0..count).map(axes).collect()
    }

    /// Registers for one tile's chunks.
    pub(super) fn registers(&self) -> Vec<Var<'b>> {
        let b = self.plan.b;
        let var = |round: usize| b.var(format!("{}_{round}", self.plan.name), b.zero(Type::F32X4));
        (0..self.chunks.len()).map(var).collect()
    }

    /// Loads the tile that starts at product `from` into registers.
    pub(super) fn fetch(
        &self,
        registers: &[Var<'b>],
        from: Expr<'b>,
        end: Expr<'b>,
    ) -> Result<(), KernelError> {
        for (number, (chunk, var)) in self.chunks.iter().zip(registers).enumerate() {
            let mut result = Ok(());
            self.when(chunk, || {
                result = self.load(chunk, from, end).map(|outputs| {
                    var.set(outputs[0]);
                    if let Some((sum, value)) = self.besides.get(number).zip(outputs.get(1)) {
                        sum.set(sum.get() + *value);
                    }
                });
            });
            result?;
        }
        Ok(())
    }

    fn when(&self, chunk: &Chunk<'b>, body: impl FnOnce()) {
        match chunk.active {
            Some(active) => self.plan.b.if_(active, body),
            None => body(),
        }
    }

    /// The quadruple of a chunk, of each output of the factor; zeros past the last product.
    fn load(&self, chunk: &Chunk<'b>, from: Expr<'b>, end: Expr<'b>) -> Result<Vec<Expr<'b>>, KernelError> {
        let b = self.plan.b;
        let at = |row: &[Expr<'b>], product: &[Expr<'b>]| {
            let axes = [self.batch.as_slice(), row, product].concat();
            point::outputs(b, self.plan.buffers, self.plan.sight, &axes, &[])
        };
        let (view, step) = (self.plan.sight.0, self.plan.tiling.bk);
        let products = |product: Expr<'b>, last: u32| view.products(b, (from, product), (step, last), end);
        let existing = |exists: Expr<'b>, values: Vec<Expr<'b>>| -> Vec<Expr<'b>> {
            values.into_iter().map(|value| exists.select(value, b.zero(value.ty()))).collect()
        };
        match (self.lines, self.plan.sight.1) {
            (Lines::OfRows, Some(_)) => {
                let (product, exists) = products(chunk.product, 4);
                Ok(existing(exists, at(&chunk.rows[0], &product)?))
            }
            (Lines::OfRows, None) => {
                let one = |j: u32| {
                    let (product, exists) = products(chunk.product + j, 1);
                    Ok(existing(exists, at(&chunk.rows[0], &product)?))
                };
                Ok(packed(b, (0..4).map(one).collect::<Result<Vec<_>, KernelError>>()?))
            }
            (Lines::OfProducts, quads) => {
                let (product, exists) = products(chunk.product, 1);
                let rows = chunk.rows.iter().map(|row| at(row, &product)).collect::<Result<Vec<_>, _>>()?;
                let values = match quads {
                    Some(_) => rows.into_iter().flatten().collect(),
                    None => packed(b, rows),
                };
                Ok(existing(exists, values))
            }
        }
    }

    /// Puts registers down as terms.
    pub(super) fn put(&self, registers: &[Var<'b>]) {
        for (chunk, var) in self.chunks.iter().zip(registers) {
            self.when(chunk, || self.put_one(chunk, var.get()));
        }
    }

    fn put_one(&self, chunk: &Chunk<'b>, value: Expr<'b>) {
        let plan = &self.plan;
        let (line, along) = match self.lines {
            Lines::OfRows => (chunk.row, chunk.product),
            Lines::OfProducts => (chunk.product, chunk.row),
        };
        let index = line * self.stride() + along / 4;
        for (array, term) in self.arrays.iter().zip(rounding::terms(plan.b, value, plan.class, plan.units)) {
            match plan.units {
                Units::Matrix(Factors::Half(_)) => array.store(index, term),
                Units::Matrix(Factors::F32) | Units::Plain => {
                    (0..4).for_each(|j| array.store(index * 4 + u32::from(j), term.lane(j)))
                }
            }
        }
    }

    /// Quadruples from line to line.
    fn stride(&self) -> u32 {
        matrix_stride(match self.lines {
            Lines::OfRows => self.plan.tiling.bk,
            Lines::OfProducts => self.plan.rows,
        })
    }

    /// The matrix of a term from `row` and product `k` on, multiples of its size. `is_left`: whether rows of the tile are rows of the
    /// matrix.
    pub(super) fn block(&self, term: usize, (row, k): (Expr<'b>, u32), is_left: bool) -> MatrixBlock<'b> {
        let stride = self.stride();
        let (index, order) = match self.lines {
            Lines::OfRows => (row * stride + k / 4, if is_left { Order::Rows } else { Order::Columns }),
            Lines::OfProducts => (row / 4 + k * stride, if is_left { Order::Columns } else { Order::Rows }),
        };
        let array = self.arrays[term];
        match self.plan.units {
            Units::Matrix(Factors::F32) => MatrixBlock { array, index: index * 4, stride: stride * 4, order },
            _ => MatrixBlock { array, index, stride, order },
        }
    }

    /// One element of a term, where matrices are multiplied by ordinary arithmetic.
    pub(super) fn element(&self, term: usize, row: Expr<'b>, k: Expr<'b>) -> Expr<'b> {
        let stride = 4 * self.stride();
        self.arrays[term].load(match self.lines {
            Lines::OfRows => row * stride + k,
            Lines::OfProducts => k * stride + row,
        })
    }
}

//! Filling the tile of one factor in workgroup memory.
//!
//! The tile lies product-major in quadruples of rows: element `[k][r / 4]` holds rows `r..r + 4` of product k, so that
//! register fragments are 128-bit reads. A *chunk* is what an invocation loads at once: one 128-bit load, of a quadruple of rows
//! at one product or of a quadruple of products of one row, whichever lie side by side; else a quadruple of rows by four
//! evaluations of the body (neighbouring invocations read neighbouring products where those lie side by side). Quadruples of
//! products are put down lane by lane; so that the lanes of neighbouring invocations hit different banks, quadruples of rows
//! are moved within their line, by the number of the product.
//!
//! Rows past the end repeat the last ones (their sums are never stored); products past the end are read inside the
//! range and replaced by zero. So no load is guarded and all can be in flight together.

use super::point::{self, Buffers, Sight};
use super::problem::{LAST, ROWS};
use super::tiling::Tiling;
use crate::KernelError;
use crate::families::emit::decompose;
use crate::kir::{Builder, Expr, Shared, Type, Var};

/// What one factor's stage needs to know.
pub(super) struct Plan<'a, 'b> {
    pub(super) b: &'b Builder,
    pub(super) buffers: &'a Buffers<'b>,
    /// The factor; quadruples along its rows, its products or none.
    pub(super) sight: Sight<'a>,
    /// Name of the array.
    pub(super) name: &'static str,
    /// Rows of the tile.
    pub(super) rows: u32,
    pub(super) tiling: Tiling,
    /// Axes of the batch.
    pub(super) batch: Vec<Expr<'b>>,
    /// First row of the tile, and rows in total.
    pub(super) range: (Expr<'b>, Expr<'b>),
    /// Number of the invocation, such that the chunks of small tiles go to different invocations for both factors.
    pub(super) lane: Expr<'b>,
}

/// The tile of one factor.
pub(super) struct Stage<'a, 'b> {
    plan: Plan<'a, 'b>,
    pub(super) shared: Shared<'b>,
    chunks: Vec<Chunk<'b>>,
    /// For each chunk, the second output of the factor summed over all tiles; empty if it has none.
    besides: Vec<Var<'b>>,
}

/// The share of an invocation in one round.
struct Chunk<'b> {
    /// Whether there is one, if not always.
    active: Option<Expr<'b>>,
    /// Where it lies in a line of the tile: the quadruple, and the lane if it is four products of one row.
    quad: Expr<'b>,
    lane: Option<Expr<'b>>,
    /// Product in the tile, or the first of four.
    product: Expr<'b>,
    /// Axes of the row, of the first of four for one 128-bit load, of all four otherwise.
    rows: Vec<Vec<Expr<'b>>>,
}

/// Neighbouring products whose lines are moved alike.
pub(super) const SAME_SHIFT: u32 = 8;

/// Chunks of a tile of `rows` rows.
pub(super) fn chunk_count(rows: u32, tiling: &Tiling) -> u32 {
    (rows / 4) * tiling.bk
}

/// Workgroup memory for tiles of `rows` rows.
pub(super) fn array<'b>(b: &'b Builder, name: &str, rows: u32, tiling: &Tiling) -> Shared<'b> {
    b.shared(name, Type::F32X4, tiling.buffers() * tiling.bk * Tiling::stride(rows))
}

impl<'a, 'b> Stage<'a, 'b> {
    /// A stage over an array of [`array`].
    pub(super) fn new(plan: Plan<'a, 'b>, shared: Shared<'b>) -> Self {
        let (threads, count) = (plan.tiling.invocations(), chunk_count(plan.rows, &plan.tiling));
        let mut chunks: Vec<Chunk<'b>> = Vec::new();
        for round in 0..count.div_ceil(threads) {
            let number = plan.lane + round * threads;
            let active = ((round + 1) * threads > count).then(|| number.lt(count));
            let chunk = plan.chunk(number, active, chunks.first());
            chunks.push(chunk);
        }
        let has_second = plan.sight.0.body.expr.outputs().len() > 1;
        let var = |_: &Chunk<'b>| plan.b.var("besides", plan.b.zero(Type::F32X4));
        let besides = chunks.iter().filter(|_| has_second).map(var).collect();
        Self { plan, shared, chunks, besides }
    }

    /// What the factor's second output sums up to over all products, for quadruples of rows of the tile: the shares of all
    /// invocations, product by product, go through the array, which nobody reads any more, and one invocation adds those of a
    /// quadruple.
    pub(super) fn row_sums(&self, quads: &[Expr<'b>]) -> Vec<Var<'b>> {
        let (b, t, rows) = (self.plan.b, &self.plan.tiling, self.plan.rows);
        if self.besides.is_empty() {
            return Vec::new();
        }
        self.put(&self.besides, b.constant(0_u32));
        b.barrier();
        let own = b.local_index();
        b.if_(own.lt(rows / 4), || {
            let sum = b.var("rows", b.zero(Type::F32X4));
            for k in 0..t.bk {
                let place = self.moved(own, b.constant(k)) + k * Tiling::stride(rows);
                sum.set(sum.get() + self.shared.load(place));
            }
            self.shared.store(own, sum.get());
        });
        b.barrier();
        quads.iter().map(|quad| b.var("rows", self.shared.load(*quad))).collect()
    }

    /// Loads the tile that starts at product `from` and puts it down from row `base` of the array on.
    pub(super) fn fill(&self, from: Expr<'b>, end: Expr<'b>, base: Expr<'b>) -> Result<(), KernelError> {
        let unconditional = self.chunks.iter().all(|chunk| chunk.active.is_none());
        if unconditional {
            let fetched = (0..self.chunks.len()).map(|number| self.fetch(number, from, end));
            let fetched = fetched.collect::<Result<Vec<_>, _>>()?;
            self.chunks.iter().zip(fetched).for_each(|(chunk, value)| self.put_one(chunk, value, base));
            return Ok(());
        }
        for (number, chunk) in self.chunks.iter().enumerate() {
            let mut result = Ok(());
            self.when(chunk, || result = self.fetch(number, from, end).map(|v| self.put_one(chunk, v, base)));
            result?;
        }
        Ok(())
    }

    /// Registers for one tile's chunks.
    pub(super) fn registers(&self) -> Vec<Var<'b>> {
        let b = self.plan.b;
        let var = |round: usize| b.var(format!("{}_{round}", self.plan.name), b.zero(Type::F32X4));
        (0..self.chunks.len()).map(var).collect()
    }

    /// Loads the tile that starts at product `from` into registers.
    pub(super) fn fetch_into(
        &self,
        registers: &[Var<'b>],
        from: Expr<'b>,
        end: Expr<'b>,
    ) -> Result<(), KernelError> {
        for ((number, chunk), var) in self.chunks.iter().enumerate().zip(registers) {
            let mut result = Ok(());
            self.when(chunk, || result = self.fetch(number, from, end).map(|value| var.set(value)));
            result?;
        }
        Ok(())
    }

    /// Puts registers down from row `base` of the array on.
    pub(super) fn put(&self, registers: &[Var<'b>], base: Expr<'b>) {
        for (chunk, var) in self.chunks.iter().zip(registers) {
            self.when(chunk, || self.put_one(chunk, var.get(), base));
        }
    }

    fn when(&self, chunk: &Chunk<'b>, body: impl FnOnce()) {
        match chunk.active {
            Some(active) => self.plan.b.if_(active, body),
            None => body(),
        }
    }

    fn put_one(&self, chunk: &Chunk<'b>, value: Expr<'b>, base: Expr<'b>) {
        let stride = Tiling::stride(self.plan.rows);
        let place = (base + chunk.product) * stride + self.moved(chunk.quad, chunk.product);
        match chunk.lane {
            None => self.shared.store(place, value),
            Some(lane) => (0..4).for_each(|j| {
                self.shared.store_lane(place + u32::from(j) * stride, lane, value.lane(j));
            }),
        }
    }

    /// Where quadruple `quad` lies in the line of a product of the tile.
    pub(super) fn moved(&self, quad: Expr<'b>, product: Expr<'b>) -> Expr<'b> {
        // Four lines on, banks repeat every other time: between those, quadruples are kept apart.
        if self.plan.sight.1 == Some(LAST) { quad ^ (product / SAME_SHIFT % 4) } else { quad }
    }

    /// The quadruple of a chunk; its second output is added up.
    fn fetch(&self, number: usize, from: Expr<'b>, end: Expr<'b>) -> Result<Expr<'b>, KernelError> {
        let (b, view, chunk) = (self.plan.b, self.plan.sight.0, &self.chunks[number]);
        let last = if chunk.lane.is_some() { 4 } else { 1 };
        let step = self.plan.tiling.bk;
        let (product, inside) = view.products(b, (from, chunk.product), (step, last), end);
        let mut values = Vec::new();
        for row in &chunk.rows {
            let axes = [self.plan.batch.as_slice(), row, &product].concat();
            values.push(point::outputs(b, self.plan.buffers, self.plan.sight, &axes, &[])?);
        }
        let output = |n: usize| {
            let values: Vec<Expr<'b>> = values.iter().map(|outputs| outputs[n]).collect();
            let value = if self.plan.sight.1.is_some() { values[0] } else { b.vector(&values) };
            inside.select(value, b.zero(value.ty()))
        };
        if let Some(sum) = self.besides.get(number) {
            sum.set(sum.get() + output(1));
        }
        Ok(output(0))
    }
}

impl<'b> Plan<'_, 'b> {
    /// The chunk with a number; what is the same as in the first round is taken from there.
    fn chunk(&self, number: Expr<'b>, active: Option<Expr<'b>>, first: Option<&Chunk<'b>>) -> Chunk<'b> {
        let (view, quads) = self.sight;
        if quads == Some(LAST) {
            let period = self.tiling.bk / 4;
            let product = (number % period * 4).named("product");
            let product = first
                .filter(|_| self.tiling.invocations().is_multiple_of(period))
                .map_or(product, |f| f.product);
            let row = number / period;
            let axes =
                decompose(self.b, (self.range.0 + row).native_min(self.range.1 - 1), &view.groups[ROWS]);
            return Chunk { active, quad: row / 4, lane: Some(row % 4), product, rows: vec![axes] };
        }
        let along_products = quads.is_none() && view.is_contiguous(LAST);
        let period = if along_products { self.tiling.bk } else { self.rows / 4 };
        let first = first.filter(|_| self.tiling.invocations().is_multiple_of(period));
        let (fast, slow) = (number % period, number / period);
        if along_products {
            let product = first.map_or(fast, |first| first.product);
            Chunk { active, quad: slow, lane: None, product, rows: self.row_axes(slow) }
        } else {
            let quad = first.map_or(fast, |first| first.quad);
            let rows = first.map_or_else(|| self.row_axes(fast), |first| first.rows.clone());
            Chunk { active, quad, lane: None, product: slow, rows }
        }
    }

    /// Axes of the rows of a quadruple.
    fn row_axes(&self, quad: Expr<'b>) -> Vec<Vec<Expr<'b>>> {
        let (view, quads) = self.sight;
        let (count, last) = if quads.is_some() { (1, self.range.1 - 4) } else { (4, self.range.1 - 1) };
        let first = self.range.0 + quad * 4;
        let row = |j: u32| decompose(self.b, (first + j).native_min(last), &view.groups[ROWS]);
        (0..count).map(row).collect()
    }
}

//! Filling the tile of one factor in workgroup memory.
//!
//! The tile lies product-major in quadruples of rows: element `[k][r / 4]` holds rows `r..r + 4` of product k, so that
//! register fragments are 128-bit reads. A *chunk* is what an invocation loads at once, a quadruple of rows by
//! * one product, from one 128-bit load, where rows lie side by side;
//! * four products, from four 128-bit loads transposed in registers, where products lie side by side;
//! * one product, from four scalar evaluations of the body, otherwise.
//!
//! Rows past the end repeat the last ones (their sums are never stored); products past the end are read inside the
//! range and replaced by zero. So no load is guarded and all can be in flight together.

use super::point::{self, Buffers, Sight};
use super::problem::{LAST, ROWS};
use super::tiling::Tiling;
use crate::KernelError;
use crate::families::emit::decompose;
use crate::kir::{Builder, Expr, Shared, Type};

/// What one factor's stage needs to know.
pub(super) struct Plan<'a, 'b> {
    pub(super) b: &'b Builder,
    pub(super) buffers: &'a Buffers<'b>,
    /// The factor.
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
}

/// The share of an invocation in one round.
struct Chunk<'b> {
    /// Whether there is one, if not always.
    active: Option<Expr<'b>>,
    /// Quadruple of rows in the tile.
    quad: Expr<'b>,
    /// First product in the tile.
    product: Expr<'b>,
    /// Axes of the rows: of the first for one 128-bit load, of all four otherwise.
    rows: Vec<Vec<Expr<'b>>>,
}

/// Chunks of a tile of `rows` rows.
pub(super) fn chunk_count((_, quads): Sight<'_>, rows: u32, tiling: &Tiling) -> u32 {
    (rows / 4) * (tiling.bk / if quads == Some(LAST) { 4 } else { 1 })
}

impl<'a, 'b> Stage<'a, 'b> {
    pub(super) fn new(plan: Plan<'a, 'b>) -> Self {
        let (threads, count) = (plan.tiling.invocations(), chunk_count(plan.sight, plan.rows, &plan.tiling));
        let length = plan.tiling.buffers() * plan.tiling.bk * Tiling::stride(plan.rows);
        let shared = plan.b.shared(plan.name, Type::F32X4, length);
        let mut chunks: Vec<Chunk<'b>> = Vec::new();
        for round in 0..count.div_ceil(threads) {
            let number = plan.lane + round * threads;
            let active = ((round + 1) * threads > count).then(|| number.lt(count));
            let chunk = plan.chunk(number, active, chunks.first());
            chunks.push(chunk);
        }
        Self { plan, shared, chunks }
    }

    /// Quadruples that one round loads per chunk.
    fn width(&self) -> usize {
        if self.plan.sight.1 == Some(LAST) { 4 } else { 1 }
    }

    /// Loads the tile that starts at product `from` and puts it down from row `base` of the array on.
    pub(super) fn fill(&self, from: Expr<'b>, end: Expr<'b>, base: Expr<'b>) -> Result<(), KernelError> {
        let unconditional = self.chunks.iter().all(|chunk| chunk.active.is_none());
        if unconditional {
            let fetched = self.fetch_all(from, end)?;
            for (chunk, values) in self.chunks.iter().zip(fetched) {
                self.put_one(chunk, &values, base);
            }
            return Ok(());
        }
        for chunk in &self.chunks {
            let mut result = Ok(());
            self.when(chunk, || result = self.fetch(chunk, from, end).map(|v| self.put_one(chunk, &v, base)));
            result?;
        }
        Ok(())
    }

    fn fetch_all(&self, from: Expr<'b>, end: Expr<'b>) -> Result<Vec<Vec<Expr<'b>>>, KernelError> {
        self.chunks.iter().map(|chunk| self.fetch(chunk, from, end)).collect()
    }

    /// Registers for one tile's chunks.
    pub(super) fn registers(&self) -> Vec<Vec<crate::kir::Var<'b>>> {
        let b = self.plan.b;
        let name = |round: usize, j: usize| format!("{}_{round}_{j}", self.plan.name);
        let vars = |round| (0..self.width()).map(move |j| b.var(name(round, j), b.zero(Type::F32X4)));
        (0..self.chunks.len()).map(|round| vars(round).collect()).collect()
    }

    /// Loads the tile that starts at product `from` into registers.
    pub(super) fn fetch_into(
        &self,
        registers: &[Vec<crate::kir::Var<'b>>],
        from: Expr<'b>,
        end: Expr<'b>,
    ) -> Result<(), KernelError> {
        for (chunk, vars) in self.chunks.iter().zip(registers) {
            let mut result = Ok(());
            self.when(chunk, || {
                result = self.fetch(chunk, from, end).map(|values| {
                    vars.iter().zip(values).for_each(|(var, value)| var.set(value));
                });
            });
            result?;
        }
        Ok(())
    }

    /// Puts registers down from row `base` of the array on.
    pub(super) fn put(&self, registers: &[Vec<crate::kir::Var<'b>>], base: Expr<'b>) {
        for (chunk, vars) in self.chunks.iter().zip(registers) {
            self.when(chunk, || {
                let values: Vec<Expr<'b>> = vars.iter().map(|var| var.get()).collect();
                self.put_one(chunk, &values, base);
            });
        }
    }

    fn when(&self, chunk: &Chunk<'b>, body: impl FnOnce()) {
        match chunk.active {
            Some(active) => self.plan.b.if_(active, body),
            None => body(),
        }
    }

    fn put_one(&self, chunk: &Chunk<'b>, values: &[Expr<'b>], base: Expr<'b>) {
        let stride = Tiling::stride(self.plan.rows);
        let at = (base + chunk.product) * stride + chunk.quad;
        for (j, value) in (0_u32..).zip(values) {
            self.shared.store(at + j * stride, *value);
        }
    }

    /// The quadruples of rows of a chunk, one per product.
    fn fetch(&self, chunk: &Chunk<'b>, from: Expr<'b>, end: Expr<'b>) -> Result<Vec<Expr<'b>>, KernelError> {
        let (b, (view, quads)) = (self.plan.b, self.plan.sight);
        let k = from + chunk.product;
        let (inside, k) = (k.lt(end), k.native_min(end - self.width() as u32));
        let products = decompose(b, k, &view.groups[LAST]);
        let mut values = Vec::new();
        for rows in &chunk.rows {
            let axes = [self.plan.batch.as_slice(), rows, &products].concat();
            let value = point::outputs(b, self.plan.buffers, self.plan.sight, &axes, &[])?[0];
            values.push(inside.select(value, b.zero(value.ty())));
        }
        Ok(match quads {
            Some(LAST) => transposed(b, &values),
            Some(_) => values,
            None => vec![b.vector(&values)],
        })
    }
}

/// Four quadruples turned over.
fn transposed<'b>(b: &'b Builder, rows: &[Expr<'b>]) -> Vec<Expr<'b>> {
    let column = |j: u8| b.vector(&rows.iter().map(|row| row.lane(j)).collect::<Vec<_>>());
    (0..4).map(column).collect()
}

impl<'b> Plan<'_, 'b> {
    /// The chunk with a number; what is the same as in the first round is taken from there.
    fn chunk(&self, number: Expr<'b>, active: Option<Expr<'b>>, first: Option<&Chunk<'b>>) -> Chunk<'b> {
        let (view, quads) = self.sight;
        let width = if quads == Some(LAST) { 4 } else { 1 };
        let fast_products = quads == Some(LAST) || (quads.is_none() && view.is_contiguous(LAST));
        let (period, threads) =
            (if fast_products { self.tiling.bk / width } else { self.rows / 4 }, self.tiling.invocations());
        let repeats = first.filter(|_| threads.is_multiple_of(period));
        let (fast, slow) = (number % period, number / period);
        if fast_products {
            let product = repeats.map_or_else(|| fast * width, |first| first.product);
            let rows = self.row_axes(slow);
            Chunk { active, quad: slow, product, rows }
        } else {
            let quad = repeats.map_or(fast, |first| first.quad);
            let rows = repeats.map_or_else(|| self.row_axes(fast), |first| first.rows.clone());
            Chunk { active, quad, product: slow, rows }
        }
    }

    /// Axes of the rows of a quadruple.
    fn row_axes(&self, quad: Expr<'b>) -> Vec<Vec<Expr<'b>>> {
        let (view, quads) = self.sight;
        let (count, last) = if quads == Some(ROWS) { (1, self.range.1 - 4) } else { (4, self.range.1 - 1) };
        let first = self.range.0 + quad * 4;
        (0..count)
            .map(|j: u32| decompose(self.b, (first + j).native_min(last), &view.groups[ROWS]))
            .collect()
    }
}

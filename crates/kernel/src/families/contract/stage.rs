//! Filling the tile of one factor in workgroup memory.
//!
//! A tile lies in quadruples, in the direction in which the factor lies in its buffer, so that both filling and reading it
//! are 128-bit accesses and nothing is transposed:
//!
//! * *by rows*: element `[k][r / 4]` holds rows `r..r + 4` of product k. An invocation loads four rows at one product: one
//!   128-bit load where rows lie side by side, else four evaluations of the body (neighbouring invocations read
//!   neighbouring products where those lie side by side).
//! * *by products*: element `[r][k / 4]` holds products `k..k + 4` of row r: one 128-bit load where products lie side by side.
//!
//! One quadruple more than needed per line makes neighbouring lines start in different banks. What an invocation loads at
//! once is a *chunk*.
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
    /// The factor; quadruples along its rows, along its products or none.
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
    pub(super) plan: Plan<'a, 'b>,
    pub(super) shared: Shared<'b>,
    chunks: Vec<Chunk<'b>>,
}

/// The share of an invocation in one round.
struct Chunk<'b> {
    /// Whether there is one, if not always.
    active: Option<Expr<'b>>,
    /// What changes fastest over invocations: quadruple of rows, product, or quadruple of products.
    fast: Expr<'b>,
    /// First product in the tile.
    product: Expr<'b>,
    /// Where it goes in the tile.
    place: Expr<'b>,
    /// Axes of the rows: of the first for one 128-bit load, of all four otherwise.
    rows: Vec<Vec<Expr<'b>>>,
}

/// Chunks of a tile of `rows` rows.
pub(super) fn chunk_count(rows: u32, tiling: &Tiling) -> u32 {
    (rows / 4) * tiling.bk
}

impl<'a, 'b> Stage<'a, 'b> {
    pub(super) fn new(plan: Plan<'a, 'b>) -> Self {
        let (threads, count) = (plan.tiling.invocations(), chunk_count(plan.rows, &plan.tiling));
        let length = plan.tiling.buffers() * plan.size();
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

    /// Loads the tile that starts at product `from` and puts it down in a buffer.
    pub(super) fn fill(&self, from: Expr<'b>, end: Expr<'b>, buffer: Expr<'b>) -> Result<(), KernelError> {
        let unconditional = self.chunks.iter().all(|chunk| chunk.active.is_none());
        if unconditional {
            let fetched = self.chunks.iter().map(|chunk| self.fetch(chunk, from, end));
            let fetched = fetched.collect::<Result<Vec<_>, _>>()?;
            self.chunks.iter().zip(fetched).for_each(|(chunk, value)| self.put_one(chunk, value, buffer));
            return Ok(());
        }
        for chunk in &self.chunks {
            let mut result = Ok(());
            self.when(chunk, || result = self.fetch(chunk, from, end).map(|v| self.put_one(chunk, v, buffer)));
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
        for (chunk, var) in self.chunks.iter().zip(registers) {
            let mut result = Ok(());
            self.when(chunk, || result = self.fetch(chunk, from, end).map(|value| var.set(value)));
            result?;
        }
        Ok(())
    }

    /// Puts registers down in a buffer.
    pub(super) fn put(&self, registers: &[Var<'b>], buffer: Expr<'b>) {
        for (chunk, var) in self.chunks.iter().zip(registers) {
            self.when(chunk, || self.put_one(chunk, var.get(), buffer));
        }
    }

    fn when(&self, chunk: &Chunk<'b>, body: impl FnOnce()) {
        match chunk.active {
            Some(active) => self.plan.b.if_(active, body),
            None => body(),
        }
    }

    fn put_one(&self, chunk: &Chunk<'b>, value: Expr<'b>, buffer: Expr<'b>) {
        self.shared.store(buffer * self.plan.size() + chunk.place, value);
    }

    /// The quadruple of a chunk.
    fn fetch(&self, chunk: &Chunk<'b>, from: Expr<'b>, end: Expr<'b>) -> Result<Expr<'b>, KernelError> {
        let (b, (view, quads)) = (self.plan.b, self.plan.sight);
        let k = from + chunk.product;
        // Where products are read in fours, there are whole fours of them.
        let (inside, width) = (k.lt(end), if quads == Some(LAST) { 4 } else { 1 });
        let product = decompose(b, k.native_min(end - width), &view.groups[LAST]);
        let mut values = Vec::new();
        for row in &chunk.rows {
            let axes = [self.plan.batch.as_slice(), row, &product].concat();
            values.push(point::outputs(b, self.plan.buffers, self.plan.sight, &axes, &[])?[0]);
        }
        let value = if quads.is_some() { values[0] } else { b.vector(&values) };
        Ok(inside.select(value, b.zero(value.ty())))
    }

    /// The rows of the tile's range that register tile number `place` has, in fours: of these, those by rows lie side by side.
    pub(super) fn members(&self, place: Expr<'b>, count: u32) -> Vec<[Expr<'b>; 4]> {
        let (plan, step) = (&self.plan, self.plan.rows / count);
        let row = |q: u32, j: u32| match plan.by_products() {
            true => plan.range.0 + (place + (4 * q + j) * step),
            false => plan.range.0 + (place * 4 + (4 * q * step + j)),
        };
        (0..count / 4).map(|q| [0, 1, 2, 3].map(|j| row(q, j))).collect()
    }

    /// What register tile number `place` reads of a buffer from product `from` on.
    pub(super) fn window(
        &self,
        buffer: Expr<'b>,
        from: Expr<'b>,
        (place, count): (Expr<'b>, u32),
    ) -> Window<'_, 'a, 'b> {
        let plan = &self.plan;
        let start = buffer * plan.size();
        let at = if plan.by_products() {
            start + place * plan.line() + from / 4
        } else {
            start + from * plan.line() + place
        };
        Window { stage: self, at: at.named("at"), count }
    }
}

/// The part of a tile that an invocation reads.
pub(super) struct Window<'s, 'a, 'b> {
    stage: &'s Stage<'a, 'b>,
    at: Expr<'b>,
    count: u32,
}

/// Four products of the rows of a register tile.
pub(super) struct Four<'s, 'a, 'b> {
    window: &'s Window<'s, 'a, 'b>,
    four: u32,
    /// By products: a quadruple of products for each row.
    rows: Vec<Expr<'b>>,
}

impl<'a, 'b> Window<'_, 'a, 'b> {
    /// Products `4 four ..` of the window.
    pub(super) fn four(&self, four: u32) -> Four<'_, 'a, 'b> {
        let plan = &self.stage.plan;
        let step = plan.rows / self.count;
        let row = |i: u32| self.stage.shared.load(self.at + (i * step * plan.line() + four));
        let rows = if plan.by_products() { (0..self.count).map(row).collect() } else { Vec::new() };
        Four { window: self, four, rows }
    }
}

impl<'b> Four<'_, '_, 'b> {
    /// The rows at product k of the four, as quadruples of rows or one by one.
    pub(super) fn rows(&self, k: u32) -> Vec<Expr<'b>> {
        if !self.rows.is_empty() {
            return self.rows.iter().map(|row| row.lane(k as u8)).collect();
        }
        let (stage, count) = (self.window.stage, self.window.count);
        let step = stage.plan.rows / count;
        let product = (4 * self.four + k) * stage.plan.line();
        (0..count / 4).map(|q| stage.shared.load(self.window.at + (product + q * step))).collect()
    }

    /// The rows at product k as quadruples.
    pub(super) fn columns(&self, k: u32) -> Vec<Expr<'b>> {
        let rows = self.rows(k);
        if self.rows.is_empty() {
            return rows;
        }
        rows.chunks(4).map(|four| self.window.stage.plan.b.vector(four)).collect()
    }
}

impl<'b> Plan<'_, 'b> {
    fn by_products(&self) -> bool {
        self.sight.1 == Some(LAST)
    }

    /// Quadruples from one line of the tile to the next.
    fn line(&self) -> u32 {
        Tiling::stride(if self.by_products() { self.tiling.bk } else { self.rows })
    }

    /// Quadruples of a buffer.
    fn size(&self) -> u32 {
        self.line() * if self.by_products() { self.rows } else { self.tiling.bk }
    }

    /// The chunk with a number; what is the same as in the first round is taken from there.
    fn chunk(&self, number: Expr<'b>, active: Option<Expr<'b>>, first: Option<&Chunk<'b>>) -> Chunk<'b> {
        let (view, quads) = self.sight;
        let along_products = quads.is_none() && view.is_contiguous(LAST);
        let period = match quads {
            Some(LAST) => self.tiling.bk / 4,
            None if along_products => self.tiling.bk,
            _ => self.rows / 4,
        };
        let first = first.filter(|_| self.tiling.invocations().is_multiple_of(period));
        let (fast, slow) = (first.map_or(number % period, |first| first.fast), number / period);
        if self.by_products() {
            let row = (self.range.0 + slow).native_min(self.range.1 - 1);
            let rows = vec![decompose(self.b, row, &view.groups[ROWS])];
            return Chunk { active, fast, product: fast * 4, place: slow * self.line() + fast, rows };
        }
        let (product, quad) = if along_products { (fast, slow) } else { (slow, fast) };
        let known = first.filter(|_| !along_products).map(|first| first.rows.clone());
        let rows = known.unwrap_or_else(|| self.row_axes(quad));
        Chunk { active, fast, product, place: product * self.line() + quad, rows }
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

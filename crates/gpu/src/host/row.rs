//! Row loops: reduction phases, row outputs, column outputs.
//!
//! Two evaluation orders, chosen by estimated cost: lanes are *columns* of one row (folded at its end), or lanes are up to
//! 256 *rows* and columns follow each other (column sums, small windows). Few long rows are cut into chunks of columns
//! whose partial values are merged in order. Sums use many partial sums in either case, so they stay accurate.

use super::code::{Code, Source};
use super::evaluate::{Need, Scratch};
use super::memory::{View, Words};
use super::points::LANES;
use super::reduce::{Reduction, Running};
use super::simd;
use super::workers::Workers;
use griffinfly_ir::loops::{Loop, Row};

/// Accumulator columns per reduction: values, indices, and the partial sum of a stretch of columns.
const PER_REDUCTION: usize = 3;

/// Columns summed into a partial sum before it is added, when lanes are rows.
const STRETCH: usize = 64;

/// Column chunks of a long row at most.
const MAX_CHUNKS: usize = 64;

/// Points one task of chunked rows evaluates at least.
const CHUNK_POINTS: usize = 1 << 15;

struct PhasePlan {
    code: Code,
    reductions: Vec<Reduction>,
    /// Number of its first carry.
    first_carry: usize,
}

/// A plan of a row loop.
pub(super) struct RowPlan {
    operands: Vec<View>,
    results: Vec<View>,
    rows: usize,
    cols: usize,
    phases: Vec<PhasePlan>,
    row_code: Code,
    col_code: Code,
    /// Whether lanes are rows.
    by_rows: bool,
    /// Rows evaluated together: 1 where lanes are columns.
    block: usize,
    /// Columns of a chunk.
    chunk: usize,
    nanoseconds: f64,
    /// Carries by number and row, and partial values, where rows are cut into chunks.
    tables: Option<(View, View)>,
}

/// All bodies compiled for one evaluation order.
struct Codes {
    phases: Vec<PhasePlan>,
    row: Code,
    col: Code,
    nanoseconds: f64,
}

fn compile(l: &Loop, r: &Row, by_rows: bool) -> Result<Codes, String> {
    let domain = r.domain();
    let (n, all) = (r.rows.len(), domain.len());
    let order: Vec<usize> = if by_rows { (n..all).chain(0..n).collect() } else { (0..all).collect() };
    let (rows, cols): (usize, usize) = (r.rows.iter().product(), r.cols.iter().product());
    let lanes = if by_rows { rows } else { cols };
    let source =
        |body, extents, stores| Source { body, operands: &l.operands, extents, stores, results: &l.results };
    let (mut phases, mut first_carry, mut next, mut per_point, mut per_row) = (Vec::new(), 0, 0, 0.0, 0.0);
    for p in &r.phases {
        let code = Code::new(&source(&p.body, &domain, &[]), &order, next)?;
        next = code.end_register;
        per_point += code.nanoseconds(lanes) + 0.2 * p.combines.len() as f64;
        per_row +=
            if by_rows { 0.0 } else { (40.0 + 0.3 * cols.min(LANES) as f64) * p.combines.len() as f64 };
        let typed = p.combines.iter().zip(&code.outputs);
        let reductions: Vec<_> = typed.map(|(c, (_, d))| Reduction { combine: *c, dtype: *d }).collect();
        let carries: usize = p.combines.iter().map(|c| c.carries()).sum();
        phases.push(PhasePlan { code, reductions, first_carry });
        first_carry += carries;
    }
    let row_order: Vec<usize> = (0..n).collect();
    let row = Code::new(&source(&r.row_body, &r.rows, &r.row_stores), &row_order, next)?;
    let col = Code::new(&source(&r.col_body, &domain, &r.col_stores), &order, row.end_register)?;
    per_row += row.nanoseconds(if by_rows { rows } else { 1 });
    per_point += if r.col_stores.is_empty() { 0.0 } else { col.nanoseconds(lanes) };
    let nanoseconds = rows as f64 * (cols as f64 * per_point + per_row);
    Ok(Codes { phases, row, col, nanoseconds })
}

impl RowPlan {
    /// Plans a row loop.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn new(l: &Loop, r: &Row, views: &[View]) -> Result<RowPlan, String> {
        let (a, b) = (compile(l, r, false)?, compile(l, r, true)?);
        let by_rows = b.nanoseconds < a.nanoseconds;
        let codes = if by_rows { b } else { a };
        let (rows, cols): (usize, usize) = (r.rows.iter().product(), r.cols.iter().product());
        let block = if by_rows { rows.min(LANES) } else { 1 };
        let chunk = (CHUNK_POINTS / block).max(cols.div_ceil(MAX_CHUNKS));
        let few = rows.div_ceil(block) < 8;
        let chunk = if few { chunk.min(cols) } else { cols };
        let (operands, results) = views.split_at(l.operands.len());
        let mut plan = RowPlan {
            operands: operands.to_vec(),
            results: results.to_vec(),
            rows,
            cols,
            phases: codes.phases,
            row_code: codes.row,
            col_code: codes.col,
            by_rows,
            block,
            chunk,
            nanoseconds: codes.nanoseconds,
            tables: None,
        };
        if chunk < cols {
            plan.tables = Some(plan.make_tables(r.carries().len())?);
        }
        Ok(plan)
    }

    fn make_tables(&self, carries: usize) -> Result<(View, View), String> {
        let table = |words: usize| {
            let memory = Words::zeroed(words as u64 * 4);
            let view = memory.and_then(|m| View::new(&m, 0, words));
            view.ok_or_else(|| format!("out of memory for {words} words of partial values"))
        };
        let reductions = self.phases.iter().map(|p| p.reductions.len()).max().unwrap_or(0);
        Ok((table(carries * self.rows)?, table(2 * reductions * self.chunks() * self.rows)?))
    }

    fn chunks(&self) -> usize {
        self.cols.div_ceil(self.chunk)
    }

    /// Scratch needed.
    pub(super) fn need(&self) -> Need {
        let codes = self.phases.iter().map(|p| &p.code).chain([&self.row_code, &self.col_code]);
        let mut need = codes.map(Need::of).fold(Need::default(), Need::or);
        need.carries = self.phases.iter().flat_map(|p| &p.reductions).map(|r| r.combine.carries()).sum();
        let reductions = self.phases.iter().map(|p| p.reductions.len()).max().unwrap_or(0);
        need.accumulators = PER_REDUCTION * reductions;
        need
    }

    /// Executes it.
    pub(super) fn run(&self, workers: &Workers) {
        let blocks = self.rows.div_ceil(self.block);
        if let Some((carries, partials)) = &self.tables {
            self.run_chunked(workers, carries, partials);
            return;
        }
        // Tasks of at least some points, so that short rows do not become a task each.
        let per_task = (CHUNK_POINTS / 4 / (self.block * self.cols)).max(1);
        workers.run(blocks.div_ceil(per_task), self.nanoseconds, &|t, scratch| {
            self.begin(scratch);
            for b in (t * per_task..blocks).take(per_task) {
                self.run_block(scratch, b * self.block);
            }
        });
    }

    fn begin(&self, scratch: &mut Scratch) {
        self.phases.iter().for_each(|p| p.code.begin(scratch));
        self.row_code.begin(scratch);
        self.col_code.begin(scratch);
    }

    /// Rows of the block starting at `row`.
    fn rows_at(&self, row: usize) -> usize {
        self.block.min(self.rows - row)
    }

    /// All of a block of rows.
    fn run_block(&self, scratch: &mut Scratch, row: usize) {
        let n = self.rows_at(row);
        for p in &self.phases {
            self.reduce(p, scratch, row, (0, self.cols));
            let mut carry = p.first_carry;
            for (i, r) in p.reductions.iter().enumerate() {
                for part in 0..r.combine.carries() {
                    let from = &scratch.accumulators[PER_REDUCTION * i + part];
                    self.carry(&mut scratch.carries[carry], &from[..n]);
                    carry += 1;
                }
            }
        }
        self.store_rows(scratch, row);
        self.store_cols(scratch, row, (0, self.cols));
    }

    /// Makes carried values of rows visible to the lanes.
    fn carry(&self, to: &mut [u32; LANES], values: &[u32]) {
        match values {
            [value] if !self.by_rows => to.fill(*value),
            _ => to[..values.len()].copy_from_slice(values),
        }
    }

    /// Reduces columns `from..to` of a block of rows; the values end in the first lanes of the accumulators.
    fn reduce(&self, p: &PhasePlan, scratch: &mut Scratch, row: usize, (from, to): (usize, usize)) {
        if self.by_rows {
            let n = self.rows_at(row);
            for c in from..to {
                p.code.evaluate(scratch, &self.operands, c * self.rows + row, n);
                absorb_column(p, scratch, n, (c - from, c, c + 1 == to));
            }
            return;
        }
        for c in (from..to).step_by(LANES) {
            let n = LANES.min(to - c);
            p.code.evaluate(scratch, &self.operands, row * self.cols + c, n);
            for ((r, (register, _)), columns) in reductions(p, &mut scratch.accumulators) {
                let values = &scratch.registers[register][..n];
                simd::absorb(r, &mut running(columns), values, (c as u32, 1), c == from);
            }
        }
        for ((r, _), columns) in reductions(p, &mut scratch.accumulators) {
            let mut running = running(columns);
            let (value, index) = r.fold(&mut running, LANES.min(to - from));
            (running.values[0], running.indices[0]) = (value, index);
        }
    }

    fn store_rows(&self, scratch: &mut Scratch, row: usize) {
        if !self.row_code.stores.is_empty() {
            self.row_code.evaluate(scratch, &self.operands, row, self.rows_at(row));
            self.row_code.store(scratch, &self.results);
        }
    }

    fn store_cols(&self, scratch: &mut Scratch, row: usize, (from, to): (usize, usize)) {
        if self.col_code.stores.is_empty() {
            return;
        }
        let (step, n) = if self.by_rows { (1, self.rows_at(row)) } else { (LANES, LANES) };
        for c in (from..to).step_by(step) {
            let (start, n) =
                if self.by_rows { (c * self.rows + row, n) } else { (row * self.cols + c, n.min(to - c)) };
            self.col_code.evaluate(scratch, &self.operands, start, n);
            self.col_code.store(scratch, &self.results);
        }
    }

    fn run_chunked(&self, workers: &Workers, carries: &View, partials: &View) {
        let (blocks, chunks) = (self.rows.div_ceil(self.block), self.chunks());
        let place = |t: usize| {
            let (block, chunk) = (t / chunks, t % chunks);
            let from = chunk * self.chunk;
            (block * self.block, chunk, (from, (from + self.chunk).min(self.cols)))
        };
        for p in &self.phases {
            workers.run(blocks * chunks, self.nanoseconds, &|t, scratch| {
                let (row, chunk, cols) = place(t);
                let n = self.rows_at(row);
                self.load_carries(scratch, carries, row, p.first_carry);
                p.code.begin(scratch);
                self.reduce(p, scratch, row, cols);
                for i in 0..p.reductions.len() {
                    for part in 0..2 {
                        let at = ((2 * i + part) * chunks + chunk) * self.rows + row;
                        partials.write_run(
                            at as i64,
                            1,
                            &scratch.accumulators[PER_REDUCTION * i + part][..n],
                        );
                    }
                }
            });
            self.merge(p, carries, partials);
        }
        workers.run(blocks * chunks, self.nanoseconds, &|t, scratch| {
            let (row, chunk, cols) = place(t);
            let all = self.phases.iter().flat_map(|p| &p.reductions).map(|r| r.combine.carries()).sum();
            self.load_carries(scratch, carries, row, all);
            self.begin(scratch);
            if chunk == 0 {
                self.store_rows(scratch, row);
            }
            self.store_cols(scratch, row, cols);
        });
    }

    fn load_carries(&self, scratch: &mut Scratch, table: &View, row: usize, carries: usize) {
        let n = self.rows_at(row);
        let mut values = [0; LANES];
        for k in 0..carries {
            table.read_run((k * self.rows + row) as i64, 1, &mut values[..n]);
            self.carry(&mut scratch.carries[k], &values[..n]);
        }
    }

    /// Merges the partial values of the chunks, in order, into carries.
    fn merge(&self, p: &PhasePlan, carries: &View, partials: &View) {
        let chunks = self.chunks();
        for row in 0..self.rows {
            let mut carry = p.first_carry;
            for (i, r) in p.reductions.iter().enumerate() {
                let at = |chunk: usize| {
                    let mut words = [0; 2];
                    let start = (2 * i * chunks + chunk) * self.rows + row;
                    partials.read_run(start as i64, (chunks * self.rows) as i64, &mut words);
                    (words[0], words[1])
                };
                let (value, index) = (1..chunks).fold(at(0), |a, chunk| r.merge(a, at(chunk)));
                for word in [value, index].into_iter().take(r.combine.carries()) {
                    carries.write_run((carry * self.rows + row) as i64, 1, &[word]);
                    carry += 1;
                }
            }
        }
    }
}

type Columns = [super::points::Column];

/// The reductions of a phase with the registers of their values and their accumulators.
fn reductions<'a>(
    p: &'a PhasePlan,
    accumulators: &'a mut Columns,
) -> impl Iterator<Item = ((Reduction, (usize, griffinfly_ir::types::DType)), &'a mut Columns)> {
    let typed = p.reductions.iter().copied().zip(p.code.outputs.iter().copied());
    typed.zip(accumulators.chunks_exact_mut(PER_REDUCTION))
}

fn running(columns: &mut Columns) -> Running<'_> {
    let (values, rest) = columns.split_at_mut(1);
    Running { values: &mut values[0], indices: &mut rest[0] }
}

/// Takes column `c` (number `k` of its chunk) of a block of rows. Float sums go through a partial sum per stretch.
fn absorb_column(p: &PhasePlan, scratch: &mut Scratch, n: usize, (k, c, last): (usize, usize, bool)) {
    use griffinfly_ir::loops::Combine;
    for ((r, (register, _)), columns) in reductions(p, &mut scratch.accumulators) {
        let values = &scratch.registers[register][..n];
        if r.combine != Combine::Sum {
            simd::absorb(r, &mut running(columns), values, (c as u32, 0), k == 0);
            continue;
        }
        let [total, _, partial] = columns else { continue };
        if k % STRETCH == 0 {
            partial[..n].copy_from_slice(values);
        } else {
            r.lanes(&mut partial[..n], values);
        }
        if last || k % STRETCH == STRETCH - 1 {
            if k < STRETCH {
                total[..n].copy_from_slice(&partial[..n]);
            } else {
                r.lanes(&mut total[..n], &partial[..n]);
            }
        }
    }
}

//! Attention: blocks of queries that stream over keys, or blocks of keys that stream over queries.
//!
//! A task owns a block of one head: its queries and, for the forward loop and the gradient of the queries, runs over the keys
//! they see tile by tile; or its keys, and runs over the query heads of their group and the queries that see them. Scores of
//! a tile are a matrix product, so is what they weigh; softmax is online (a running maximum and sum per query). The cutting
//! depends on the sizes alone and tiles come in order, so results do not depend on threads.

use super::arithmetic::Operation;
use super::code::{Code, Source};
use super::evaluate::{Need, Scratch};
use super::memory::View;
use super::memory::product::{Elements, Matrix, Target, multiply};
use super::points::LANES;
use super::simd;
use super::workers::Workers;
use griffinfly_ir::loops::{Attention, AttentionMask, AttentionShape, AttentionVariant, Body, Loop};
use griffinfly_ir::scalar::UnaryFn;
use griffinfly_ir::types::DType;
use std::ops::Range;

/// Queries or keys of a task.
const BLOCK: usize = 64;
/// Keys or queries it takes at a time.
const TILE: usize = 256;

/// The bodies, compiled.
struct Loads {
    q: Code,
    k: Code,
    v: Code,
    bias: Option<Code>,
    /// Gradient of the result, log-sum-exp, delta.
    saved: Option<[Code; 3]>,
}

/// A plan of an attention loop.
pub(super) struct AttentionPlan {
    variant: AttentionVariant,
    shape: AttentionShape,
    mask: AttentionMask,
    scale: f32,
    loads: Loads,
    stores: Vec<Code>,
    operands: Vec<View>,
    results: Vec<View>,
    nanoseconds: f64,
}

/// The working memory of a task.
struct Space<'a> {
    /// What the task owns: queries and gradients of results, or keys and values.
    own: [&'a mut [f32]; 2],
    /// What it streams over: keys and values, or queries and gradients of results.
    other: [&'a mut [f32]; 2],
    /// One row of the bias.
    bias: &'a mut [f32],
    /// Scores, then probabilities; products with values, then gradients of scores.
    scores: [&'a mut [f32]; 2],
    /// Sums of results.
    sums: [&'a mut [f32]; 2],
    /// Per query: log-sum-exp (or running maximum) and delta (or running sum).
    rows: [&'a mut [f32]; 2],
}

fn sizes(s: AttentionShape) -> [usize; 5] {
    let longest = s.queries.max(s.keys);
    let (block, tile) = (BLOCK.min(longest), TILE.min(longest));
    [block * s.width, tile * s.width, tile, block * tile, block * s.width]
}

/// Two slices of `n` and what remains.
fn pair(panel: &mut [f32], n: usize) -> ([&mut [f32]; 2], &mut [f32]) {
    let (a, rest) = panel.split_at_mut(n);
    let (b, rest) = rest.split_at_mut(n);
    ([a, b], rest)
}

impl<'a> Space<'a> {
    fn new([inputs, scores, sums]: &'a mut [Vec<f32>; 3], s: AttentionShape) -> Space<'a> {
        let [own, other, bias, score, sum] = sizes(s);
        let (own, rest) = pair(inputs, own);
        let (other, rest) = pair(rest, other);
        let (sums, rows) = pair(sums, sum);
        Space {
            own,
            other,
            bias: &mut rest[..bias],
            scores: pair(scores, score).0,
            sums,
            rows: pair(rows, bias).0,
        }
    }
}

/// Rows of `width` side by side.
fn dense(elements: &[f32], width: usize) -> Matrix<'_> {
    Matrix { elements: Elements::Panel(elements), offset: 0, row: width as i64, column: 1 }
}

/// The same, transposed.
fn transposed(elements: &[f32], width: usize) -> Matrix<'_> {
    Matrix { elements: Elements::Panel(elements), offset: 0, row: 1, column: width as i64 }
}

/// `out (+)= a b^T` for dense `out`.
fn product(out: &mut [f32], a: Matrix<'_>, b: Matrix<'_>, sizes: [usize; 3], accumulate: bool) {
    multiply(Target::Panel(out, [sizes[1] as i64, 1]), a, b, sizes, accumulate);
}

/// `exp(x - shift)` in place.
fn exponentials(row: &mut [f32], shift: f32) {
    let (mut words, mut out) = ([0; LANES], [0; LANES]);
    for chunk in row.chunks_mut(LANES) {
        let n = chunk.len();
        words.iter_mut().zip(chunk.iter()).for_each(|(w, x)| *w = (x - shift).to_bits());
        let exp = Operation::Unary(UnaryFn::Exp, DType::F32);
        simd::compute(exp, &mut out[..n], [&words[..n], &[], &[]]);
        chunk.iter_mut().zip(out).for_each(|(x, w)| *x = f32::from_bits(w));
    }
}

fn larger(m: f32, x: f32) -> f32 {
    if x > m || x.is_nan() { x } else { m }
}

impl AttentionPlan {
    /// Plans an attention loop.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn new(l: &Loop, a: &Attention, views: &[View]) -> Result<AttentionPlan, String> {
        let mut register = 0;
        let mut compile = |source: &Source<'_>| -> Result<Code, String> {
            let order: Vec<usize> = (0..source.extents.len()).collect();
            let code = Code::new(source, &order, register)?;
            register = code.end_register;
            Ok(code)
        };
        let mut load = |body: &Body, extents: Vec<usize>| {
            let operands = &l.operands;
            compile(&Source { body, operands, extents: &extents, stores: &[], results: &[] })
        };
        let s = a.shape;
        let saved = match &a.saved {
            Some(x) => {
                Some([load(&x.dy, s.of_queries())?, load(&x.lse, s.of_rows())?, load(&x.delta, s.of_rows())?])
            }
            None => None,
        };
        let loads = Loads {
            q: load(&a.q, s.of_queries())?,
            k: load(&a.k, s.of_keys())?,
            v: load(&a.v, s.of_keys())?,
            bias: a.bias.as_ref().map(|b| load(b, s.of_scores())).transpose()?,
            saved,
        };
        let mut carried = Body::new();
        let value = carried.expr.carry(0, DType::F32);
        carried.output(value);
        let stores = a.stores.iter().zip(a.domains()).map(|(store, extents)| {
            let stores = std::slice::from_ref(store);
            compile(&Source { body: &carried, operands: &[], extents: &extents, stores, results: &l.results })
        });
        let stores = stores.collect::<Result<_, String>>()?;
        let (operands, results) = views.split_at(l.operands.len());
        let products = if a.saved.is_some() { 4.0 } else { 2.0 };
        let pairs = s.of_scores().iter().map(|n| *n as f64).product::<f64>();
        Ok(AttentionPlan {
            variant: a.variant,
            shape: s,
            mask: a.mask,
            scale: a.scale.get(),
            loads,
            stores,
            operands: operands.to_vec(),
            results: results.to_vec(),
            nanoseconds: pairs * (products * s.width as f64 / 20.0 + 4.0),
        })
    }

    /// Scratch needed.
    pub(super) fn need(&self) -> Need {
        let Loads { q, k, v, bias, saved } = &self.loads;
        let all = [q, k, v].into_iter().chain(bias).chain(saved.iter().flatten()).chain(&self.stores);
        let [own, other, row, score, sum] = sizes(self.shape);
        let panels = [2 * own + 2 * other + row, 2 * score, 2 * sum + 2 * row];
        all.fold(Need { carries: 1, panels, ..Need::default() }, |need, code| need.or(Need::of(code)))
    }

    /// Executes it.
    pub(super) fn run(&self, workers: &Workers) {
        let s = self.shape;
        let (heads, length) = match self.variant {
            AttentionVariant::GradKeyValue => (s.batch * s.kv_heads, s.keys),
            _ => (s.batch * s.heads, s.queries),
        };
        let blocks = length.div_ceil(BLOCK);
        workers.run(heads * blocks, self.nanoseconds, &|task, scratch| {
            let (head, first) = (task / blocks, task % blocks * BLOCK);
            let block = first..(first + BLOCK).min(length);
            let Loads { q, k, v, bias, saved } = &self.loads;
            let all = [q, k, v].into_iter().chain(bias).chain(saved.iter().flatten()).chain(&self.stores);
            all.for_each(|code| code.begin(scratch));
            let mut panels = std::mem::take(&mut scratch.panels);
            let mut space = Space::new(&mut panels, s);
            match (self.variant, saved) {
                (AttentionVariant::GradKeyValue, Some(saved)) => {
                    self.grad_key_value(scratch, &mut space, saved, (head, block));
                }
                (_, Some(saved)) => self.grad_query(scratch, &mut space, saved, (head, block)),
                (_, None) => self.forward(scratch, &mut space, (head, block)),
            }
            scratch.panels = panels;
        });
    }

    /// Evaluates a body from a flat index on.
    fn fill(&self, scratch: &mut Scratch, code: &Code, first: usize, out: &mut [f32]) {
        let register = code.outputs.first().map_or(0, |o| o.0);
        for (i, chunk) in out.chunks_mut(LANES).enumerate() {
            code.evaluate(scratch, &self.operands, first + i * LANES, chunk.len());
            let words = scratch.registers[register].iter();
            chunk.iter_mut().zip(words).for_each(|(x, w)| *x = f32::from_bits(*w));
        }
    }

    /// Stores a result from a flat index on.
    fn store(&self, scratch: &mut Scratch, result: usize, first: usize, values: &[f32]) {
        let code = &self.stores[result];
        for (i, chunk) in values.chunks(LANES).enumerate() {
            scratch.carries[0].iter_mut().zip(chunk).for_each(|(c, v)| *c = v.to_bits());
            code.evaluate(scratch, &self.operands, first + i * LANES, chunk.len());
            code.store(scratch, &self.results);
        }
    }

    /// Queries `rows` of a head, times the scale.
    fn queries(&self, scratch: &mut Scratch, (head, rows): (usize, &Range<usize>), out: &mut [f32]) {
        self.fill(scratch, &self.loads.q, (head * self.shape.queries + rows.start) * self.shape.width, out);
        out.iter_mut().for_each(|x| *x *= self.scale);
    }

    /// The keys that any of these queries sees.
    fn seen(&self, queries: &Range<usize>) -> Range<usize> {
        let of = |i: usize| self.mask.keys(i, self.shape.lengths());
        of(queries.start).start..of(queries.end - 1).end
    }

    /// The queries that see any of these keys.
    fn seeing(&self, keys: &Range<usize>) -> Range<usize> {
        let of = |j: usize| self.mask.queries(j, self.shape.lengths());
        of(keys.start).start..of(keys.end - 1).end
    }

    /// Scores of scaled queries with keys of a query head; -inf where a query does not see a key.
    fn scores(
        &self,
        scratch: &mut Scratch,
        (head, queries, keys): (usize, &Range<usize>, &Range<usize>),
        (q, k): (&[f32], &[f32]),
        [bias, out]: [&mut [f32]; 2],
    ) {
        let (s, n) = (self.shape, keys.len());
        product(out, dense(q, s.width), dense(k, s.width), [queries.len(), n, s.width], false);
        for (i, row) in queries.clone().zip(out.chunks_mut(n)) {
            if let Some(code) = &self.loads.bias {
                let first = (head * s.queries + i) * s.keys + keys.start;
                self.fill(scratch, code, first, &mut bias[..n]);
                row.iter_mut().zip(bias.iter()).for_each(|(x, b)| *x += b);
            }
            let seen = self.mask.keys(i, s.lengths());
            let clip = |j: usize| j.clamp(keys.start, keys.end) - keys.start;
            let (start, end) = (clip(seen.start), clip(seen.end));
            row[..start].fill(f32::NEG_INFINITY);
            row[end.max(start)..].fill(f32::NEG_INFINITY);
        }
    }

    fn forward(&self, scratch: &mut Scratch, space: &mut Space<'_>, (head, rows): (usize, Range<usize>)) {
        let (s, m) = (self.shape, rows.len());
        let Space { own: [q, _], other: [k, v], bias, scores: [p, _], sums: [y, _], rows: [most, total] } =
            space;
        let (q, y) = (&mut q[..m * s.width], &mut y[..m * s.width]);
        self.queries(scratch, (head, &rows), q);
        y.fill(0.0);
        most.fill(f32::MIN);
        total.fill(0.0);
        let kv_head = head / s.group();
        for keys in tiles(self.seen(&rows)) {
            let (n, first) = (keys.len(), kv_head * s.keys + keys.start);
            let (k, v, p) = (&mut k[..n * s.width], &mut v[..n * s.width], &mut p[..m * n]);
            self.fill(scratch, &self.loads.k, first * s.width, k);
            self.fill(scratch, &self.loads.v, first * s.width, v);
            self.scores(scratch, (head, &rows, &keys), (q, k), [bias, p]);
            for (i, row) in p.chunks_mut(n).enumerate() {
                let shift = row.iter().copied().fold(most[i], larger);
                exponentials(row, shift);
                let mut keep = [most[i]];
                exponentials(&mut keep, shift);
                most[i] = shift;
                total[i] = total[i] * keep[0] + row.iter().sum::<f32>();
                y[i * s.width..(i + 1) * s.width].iter_mut().for_each(|y| *y *= keep[0]);
            }
            product(y, dense(p, n), transposed(v, s.width), [m, s.width, n], true);
        }
        for (i, row) in y.chunks_mut(s.width).enumerate() {
            let sum = total[i];
            row.iter_mut().for_each(|y| *y /= if sum == 0.0 { 1.0 } else { sum });
            total[i] = most[i] + super::functions::log(sum);
        }
        let first = head * s.queries + rows.start;
        self.store(scratch, 0, first * s.width, y);
        self.store(scratch, 1, first, &total[..m]);
    }

    /// Probabilities from scores, and gradients of the scores from products with values.
    fn gradients(&self, n: usize, [p, ds]: [&mut [f32]; 2], [lse, delta]: [&[f32]; 2]) {
        for (i, (p, ds)) in p.chunks_mut(n).zip(ds.chunks_mut(n)).enumerate() {
            exponentials(p, larger(f32::MIN, lse[i]));
            ds.iter_mut().zip(p.iter()).for_each(|(d, p)| *d = p * (*d - delta[i]));
        }
    }

    fn grad_query(
        &self,
        scratch: &mut Scratch,
        space: &mut Space<'_>,
        [dy_code, lse_code, delta_code]: &[Code; 3],
        (head, rows): (usize, Range<usize>),
    ) {
        let (s, m, first) = (self.shape, rows.len(), head * self.shape.queries + rows.start);
        let Space { own: [q, dy], other: [k, v], bias, scores: [p, ds], sums: [dq, _], rows: [lse, delta] } =
            space;
        let (q, dy, dq) = (&mut q[..m * s.width], &mut dy[..m * s.width], &mut dq[..m * s.width]);
        self.queries(scratch, (head, &rows), q);
        self.fill(scratch, dy_code, first * s.width, dy);
        self.fill(scratch, lse_code, first, &mut lse[..m]);
        self.fill(scratch, delta_code, first, &mut delta[..m]);
        dq.fill(0.0);
        let kv_head = head / s.group();
        for keys in tiles(self.seen(&rows)) {
            let (n, at) = (keys.len(), kv_head * s.keys + keys.start);
            let (k, v) = (&mut k[..n * s.width], &mut v[..n * s.width]);
            let (p, ds) = (&mut p[..m * n], &mut ds[..m * n]);
            self.fill(scratch, &self.loads.k, at * s.width, k);
            self.fill(scratch, &self.loads.v, at * s.width, v);
            self.scores(scratch, (head, &rows, &keys), (q, k), [bias, p]);
            product(ds, dense(dy, s.width), dense(v, s.width), [m, n, s.width], false);
            self.gradients(n, [p, ds], [lse, delta]);
            product(dq, dense(ds, n), transposed(k, s.width), [m, s.width, n], true);
        }
        dq.iter_mut().for_each(|x| *x *= self.scale);
        self.store(scratch, 0, first * s.width, dq);
    }

    fn grad_key_value(
        &self,
        scratch: &mut Scratch,
        space: &mut Space<'_>,
        [dy_code, lse_code, delta_code]: &[Code; 3],
        (kv_head, keys): (usize, Range<usize>),
    ) {
        let (s, n, first) = (self.shape, keys.len(), kv_head * self.shape.keys + keys.start);
        let Space { own: [k, v], other: [q, dy], bias, scores: [p, ds], sums: [dk, dv], rows: [lse, delta] } =
            space;
        let (k, v) = (&mut k[..n * s.width], &mut v[..n * s.width]);
        let (dk, dv) = (&mut dk[..n * s.width], &mut dv[..n * s.width]);
        self.fill(scratch, &self.loads.k, first * s.width, k);
        self.fill(scratch, &self.loads.v, first * s.width, v);
        dk.fill(0.0);
        dv.fill(0.0);
        for head in kv_head * s.group()..(kv_head + 1) * s.group() {
            for rows in tiles(self.seeing(&keys)) {
                let (m, at) = (rows.len(), head * s.queries + rows.start);
                let (q, dy) = (&mut q[..m * s.width], &mut dy[..m * s.width]);
                let (p, ds) = (&mut p[..m * n], &mut ds[..m * n]);
                self.queries(scratch, (head, &rows), q);
                self.fill(scratch, dy_code, at * s.width, dy);
                self.fill(scratch, lse_code, at, &mut lse[..m]);
                self.fill(scratch, delta_code, at, &mut delta[..m]);
                self.scores(scratch, (head, &rows, &keys), (q, k), [bias, p]);
                product(ds, dense(dy, s.width), dense(v, s.width), [m, n, s.width], false);
                self.gradients(n, [p, ds], [lse, delta]);
                product(dk, transposed(ds, n), transposed(q, s.width), [n, s.width, m], true);
                product(dv, transposed(p, n), transposed(dy, s.width), [n, s.width, m], true);
            }
        }
        self.store(scratch, 0, first * s.width, dk);
        self.store(scratch, 1, first * s.width, dv);
    }
}

/// A range in tiles.
fn tiles(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(TILE).map(move |start| start..(start + TILE).min(end))
}

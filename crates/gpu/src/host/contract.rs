//! Contractions: tiles of the output, each a product of two factor blocks followed by the epilogue.
//!
//! The output is cut into tiles by batch item, m and n; small outputs with a long sum are cut along k too, and their
//! partial products are added in order. Factors that are plain strided matrices are read in place, others are evaluated
//! into panels of bounded size. The cutting depends on the sizes alone, so results do not depend on threads.

use super::code::{Code, Source};
use super::evaluate::{Need, Scratch};
use super::factor::{Axes, Block, Factor, group_stride, point};
use super::memory::product::{Target, multiply};
use super::memory::{View, Words};
use super::points::LANES;
use super::tiling::Tiling;
use super::workers::Workers;
use griffinfly_ir::index::IndexExpr;
use griffinfly_ir::loops::{Contract, Loop};
use griffinfly_ir::scalar::ScalarNode;
use griffinfly_ir::types::DType;
use std::ops::Range;

/// The epilogue with the order it is evaluated in.
struct Epilogue {
    code: Code,
    /// Whether n is the inner index of products and of the evaluation.
    inner_n: bool,
    /// Where products can go directly: start of each batch item, strides of m and n.
    direct: Option<(Vec<i64>, [i64; 2])>,
}

/// A plan of a contraction.
pub(super) struct ContractPlan {
    operands: Vec<View>,
    results: Vec<View>,
    a: Factor,
    b: Factor,
    starts: [Vec<i64>; 2],
    epilogue: Epilogue,
    tiling: Tiling,
    nanoseconds: f64,
    /// Partial products by part of k, batch item and place, where k is cut.
    partials: Option<View>,
}

/// A tile of the output of one batch item.
struct Tile {
    batch: usize,
    m: Range<usize>,
    n: Range<usize>,
}

impl ContractPlan {
    /// Plans a contraction.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn new(l: &Loop, c: &Contract, views: &[View]) -> Result<ContractPlan, String> {
        if !c.more.is_empty() {
            return Err(format!("a contraction of {} terms", c.more.len() + 1));
        }
        if c.has_row_sum() {
            return Err("a contraction with sums of rows".to_string());
        }
        let axes = |free| Axes { batch: &c.batch, free, k: &c.k };
        let a = Factor::new(&c.a, &l.operands, axes(&c.m), 0)?;
        let b = Factor::new(&c.b, &l.operands, axes(&c.n), a.end_register(0))?;
        let epilogue = Epilogue::new(l, c, b.end_register(a.end_register(0)))?;
        let tiling = Tiling::new(c.sizes(), a.is_direct(), b.is_direct());
        let [batch, m, n, k] = c.sizes().map(|x| x as f64);
        let packing = a.nanoseconds() * m * k + b.nanoseconds() * n * k;
        let nanoseconds = batch * (m * n * k / 20.0 + packing + m * n * epilogue.code.nanoseconds(LANES));
        let (operands, results) = views.split_at(l.operands.len());
        let mut partials = None;
        if tiling.k_parts > 1 {
            let words = tiling.k_parts * tiling.batch * tiling.m * tiling.n;
            let memory = Words::zeroed(words as u64 * 4).and_then(|w| View::new(&w, 0, words));
            partials = Some(memory.ok_or_else(|| format!("out of memory for {words} partial products"))?);
        }
        let starts = [a.starts(), b.starts()];
        let (operands, results) = (operands.to_vec(), results.to_vec());
        Ok(ContractPlan { operands, results, a, b, starts, epilogue, tiling, nanoseconds, partials })
    }

    /// Scratch needed.
    pub(super) fn need(&self) -> Need {
        let t = &self.tiling;
        let epilogue = Need { carries: 1, ..Need::of(&self.epilogue.code) };
        let panel = |f: &Factor, free: usize| if f.is_direct() { 0 } else { free * t.k_slice };
        let panels = [panel(&self.a, t.m_tile), panel(&self.b, t.n_tile), t.m_tile * t.n_tile];
        self.a.need().or(self.b.need()).or(epilogue).or(Need { panels, ..Need::default() })
    }

    /// Executes it.
    pub(super) fn run(&self, workers: &Workers) {
        let t = &self.tiling;
        let tiles = t.tiles();
        workers.run(tiles * t.k_parts, self.nanoseconds, &|task, scratch| {
            let (tile, part) = (self.tile(task % tiles), task / tiles);
            self.begin(scratch);
            let [mut a, mut b, mut product] = std::mem::take(&mut scratch.panels);
            self.product(scratch, &tile, part, [&mut a, &mut b, &mut product]);
            match &self.partials {
                Some(partials) => self.rows(&tile, |i, start, width| {
                    let words: &mut [u32; LANES] = &mut [0; LANES];
                    for (j, values) in product[i * width..(i + 1) * width].chunks(LANES).enumerate() {
                        words.iter_mut().zip(values).for_each(|(w, v)| *w = v.to_bits());
                        let at = part * t.batch * t.m * t.n + start + j * LANES;
                        partials.write_run(at as i64, 1, &words[..values.len()]);
                    }
                }),
                None => self.finish(scratch, &tile, &product),
            }
            scratch.panels = [a, b, product];
        });
        if let Some(partials) = &self.partials {
            workers.run(tiles, self.nanoseconds / 8.0, &|task, scratch| {
                let tile = self.tile(task);
                self.begin(scratch);
                let [a, b, mut product] = std::mem::take(&mut scratch.panels);
                self.add_parts(&tile, partials, &mut product);
                self.finish(scratch, &tile, &product);
                scratch.panels = [a, b, product];
            });
        }
    }

    fn begin(&self, scratch: &mut Scratch) {
        self.a.begin(scratch);
        self.b.begin(scratch);
        self.epilogue.code.begin(scratch);
    }

    fn tile(&self, task: usize) -> Tile {
        let (batch, m, n) = self.tiling.tile(task);
        Tile { batch, m, n }
    }

    /// Where products go directly, if they do.
    fn direct(&self) -> Option<&(Vec<i64>, [i64; 2])> {
        self.epilogue.direct.as_ref().filter(|_| self.partials.is_none())
    }

    /// Multiplies the blocks of a tile, slice of k by slice.
    fn product(&self, scratch: &mut Scratch, tile: &Tile, part: usize, [a, b, product]: [&mut Vec<f32>; 3]) {
        let (m, n) = (tile.m.len(), tile.n.len());
        let k = self.tiling.k_part(part);
        for from in k.clone().step_by(self.tiling.k_slice) {
            let k_slice = from..(from + self.tiling.k_slice).min(k.end);
            let left = Block { batch: tile.batch, free: tile.m.clone(), k: k_slice.clone() };
            let right = Block { batch: tile.batch, free: tile.n.clone(), k: k_slice };
            self.a.pack(scratch, &self.operands, &left, a);
            self.b.pack(scratch, &self.operands, &right, b);
            let target = match self.direct() {
                Some((starts, [sm, sn])) => {
                    let at = starts[tile.batch] + sm * tile.m.start as i64 + sn * tile.n.start as i64;
                    Target::View(&self.results[self.epilogue.code.stores[0].result], at, [*sm, *sn])
                }
                None if self.epilogue.inner_n => Target::Panel(&mut product[..m * n], [n as i64, 1]),
                None => Target::Panel(&mut product[..m * n], [1, m as i64]),
            };
            let lhs = self.a.matrix(&self.operands, &self.starts[0], &left, a);
            let rhs = self.b.matrix(&self.operands, &self.starts[1], &right, b);
            multiply(target, lhs, rhs, [m, n, left.k.len()], from > k.start);
        }
    }

    /// Calls `f(row, flat index of its first point, width)` for the rows of a tile in the order of the epilogue; one long
    /// row where the tile is as wide as the output.
    fn rows(&self, tile: &Tile, mut f: impl FnMut(usize, usize, usize)) {
        let t = &self.tiling;
        let (outer, inner, outers, inners) =
            if self.epilogue.inner_n { (&tile.m, &tile.n, t.m, t.n) } else { (&tile.n, &tile.m, t.n, t.m) };
        let start = |i: usize| (tile.batch * outers + i) * inners + inner.start;
        if inner.len() == inners {
            f(0, start(outer.start), outer.len() * inners);
            return;
        }
        for (row, i) in outer.clone().enumerate() {
            f(row, start(i), inner.len());
        }
    }

    /// Adds the partial products of a tile in order.
    fn add_parts(&self, tile: &Tile, partials: &View, product: &mut [f32]) {
        let t = &self.tiling;
        let mut words = [0; LANES];
        self.rows(tile, |row, start, width| {
            for (j, out) in product[row * width..(row + 1) * width].chunks_mut(LANES).enumerate() {
                let words = &mut words[..out.len()];
                for part in 0..t.k_parts {
                    let at = part * t.batch * t.m * t.n + start + j * LANES;
                    partials.read_run(at as i64, 1, words);
                    for (o, w) in out.iter_mut().zip(words.iter()) {
                        *o = if part == 0 { f32::from_bits(*w) } else { *o + f32::from_bits(*w) };
                    }
                }
            }
        });
    }

    /// Evaluates and stores the epilogue of a tile.
    fn finish(&self, scratch: &mut Scratch, tile: &Tile, product: &[f32]) {
        if self.direct().is_some() {
            return;
        }
        let code = &self.epilogue.code;
        self.rows(tile, |row, start, width| {
            for (j, values) in product[row * width..(row + 1) * width].chunks(LANES).enumerate() {
                let carry = &mut scratch.carries[0];
                carry.iter_mut().zip(values).for_each(|(c, v)| *c = v.to_bits());
                code.evaluate(scratch, &self.operands, start + j * LANES, values.len());
                code.store(scratch, &self.results);
            }
        });
    }
}

impl Epilogue {
    fn new(l: &Loop, c: &Contract, first_register: usize) -> Result<Epilogue, String> {
        let domain = c.domain();
        let (nb, nm, all) = (c.batch.len(), c.m.len(), domain.len());
        let source = Source {
            body: &c.epilogue,
            operands: &l.operands,
            extents: &domain,
            stores: &c.stores,
            results: &l.results,
        };
        let inner_n: Vec<usize> = (0..all).collect();
        let inner_m: Vec<usize> = (0..nb).chain(nb + nm..all).chain(nb..nb + nm).collect();
        let a = Code::new(&source, &inner_n, first_register)?;
        let b = Code::new(&source, &inner_m, first_register)?;
        let inner_n = a.nanoseconds(LANES) <= b.nanoseconds(LANES);
        Ok(Epilogue { code: if inner_n { a } else { b }, inner_n, direct: direct(l, c) })
    }
}

/// An epilogue that stores the sum and nothing else, at strides.
fn direct(l: &Loop, c: &Contract) -> Option<(Vec<i64>, [i64; 2])> {
    let [out] = c.epilogue.expr.outputs() else { return None };
    let [store] = c.stores.as_slice() else { return None };
    let ty = l.results.get(store.result).filter(|t| t.dtype == DType::F32)?;
    if !matches!(c.epilogue.expr.node(*out), ScalarNode::Carry(0)) {
        return None;
    }
    let offset = IndexExpr::flatten(&store.coords, &ty.dims);
    let (nb, nm) = (c.batch.len(), c.m.len());
    let strides = [group_stride(&offset, nb, &c.m)?, group_stride(&offset, nb + nm, &c.n)?];
    let items: usize = c.batch.iter().product();
    let rank = nb + nm + c.n.len();
    Some(((0..items).map(|b| offset.eval(&point(&c.batch, b, rank))).collect(), strides))
}

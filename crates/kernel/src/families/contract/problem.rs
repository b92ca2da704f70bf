//! One contraction prepared for realisation: its three bodies as views, its sizes, and what kernels declare for them.

use super::point::Sight;
use super::view::View;
use super::{Choice, Merge, Tiling};
use crate::KernelError;
use crate::families::emit;
use crate::kir::{Builder, Expr};
use griffinfly_ir::loops::{Body, Loop, LoopKind};
use griffinfly_ir::target::Target;

/// Group of a factor's rows (of the left factor: the output's rows; of the right one: its columns).
pub(super) const ROWS: usize = 1;
/// Group of the products of a factor, and of the columns of the output.
pub(super) const LAST: usize = 2;

/// A contraction on a target, realised by a choice.
pub(super) struct Problem<'a> {
    pub(super) l: &'a Loop,
    pub(super) target: &'a Target,
    pub(super) choice: Choice,
    /// What is summed, in order.
    pub(super) terms: Vec<Term>,
    /// Number of sums of products.
    pub(super) sums: usize,
    /// Whether the second output of the first left factor is summed for every row.
    pub(super) has_row_sum: bool,
    /// Outputs over batch, row, column.
    pub(super) epilogue: View,
    /// Batches, rows, columns.
    pub(super) sizes: [u32; 3],
}

/// One term prepared for realisation.
pub(super) struct Term {
    /// Left factor over batch, row, product.
    pub(super) a: View,
    /// Right factor over batch, column, product.
    pub(super) b: View,
    /// Products.
    pub(super) k: u32,
    /// The sum it adds to.
    pub(super) sum: usize,
    /// Whether it has the products and the left factor of the term before.
    pub(super) is_joint: bool,
}

impl<'a> Problem<'a> {
    /// Prepares a loop.
    pub(super) fn new(l: &'a Loop, target: &'a Target, choice: Choice) -> Result<Self, KernelError> {
        let LoopKind::Contract(c) = &l.kind else {
            return Err(emit::unsupported("contract", "the loop is not a contraction"));
        };
        let types = (l.operands.as_slice(), l.results.as_slice());
        let size =
            |n: usize| u32::try_from(n).map_err(|_| emit::unsupported("contract", format!("extent {n}")));
        let [batch, m, n, _] = c.sizes();
        let sizes = [size(batch)?, size(m)?, size(n)?];
        let mut terms: Vec<Term> = Vec::new();
        let mut before: Option<(&Body, &[usize])> = None;
        for (k, a, b, sum) in c.terms() {
            let is_joint = before == Some((a, k));
            before = Some((a, k));
            let k_size = size(k.iter().product())?;
            let a = View::new(a, &[], [&c.batch, &c.m, k], types);
            let b = View::new(b, &[], [&c.batch, &c.n, k], types);
            terms.push(Term { a, b, k: k_size, sum, is_joint });
        }
        if sizes.contains(&0) || terms.iter().any(|term| term.k == 0) {
            return Err(emit::unsupported("contract", format!("empty extents {sizes:?}")));
        }
        let all: u64 = terms.iter().map(|term| u64::from(term.k)).sum();
        // Each term is rounded up to whole steps and has a final test of its own.
        let slack = terms.len() as u64 * u64::from(choice.tiling.step()) * 2;
        let most = u64::from(most_products(&choice.tiling, target)).saturating_sub(slack).max(1);
        let longest = terms.iter().map(|term| term.k).max().unwrap_or(1);
        let least = u32::try_from(all.div_ceil(most)).unwrap_or(u32::MAX);
        let split = choice.split.max(least).clamp(1, longest.div_ceil(choice.tiling.step()));
        let choice = Choice { split, ..choice };
        let epilogue = View::new(&c.epilogue, &c.stores, [&c.batch, &c.m, &c.n], types);
        let (sums, has_row_sum) = (c.sums(), c.has_row_sum());
        Ok(Problem { l, target, choice, terms, sums, has_row_sum, epilogue, sizes })
    }

    /// The epilogue with the direction in which outputs are computed four at a time.
    pub(super) fn outputs(&self) -> Sight<'_> {
        (&self.epilogue, self.epilogue.allows_quads(LAST).then_some(LAST))
    }

    /// Whether rows of the output are whole quadruples.
    pub(super) fn has_quad_columns(&self) -> bool {
        self.sizes[2].is_multiple_of(4)
    }

    /// Number of carries of the epilogue.
    pub(super) fn carries(&self) -> usize {
        self.sums + usize::from(self.has_row_sum)
    }

    pub(super) fn is_split(&self) -> bool {
        self.choice.split > 1
    }

    /// Whether the last workgroup of a tile adds its parts.
    pub(super) fn is_joined(&self) -> bool {
        let has_exchange = self.target.backend.has_exchange();
        has_exchange && self.is_split() && self.choice.merge == Merge::Last && self.choice.tiling.is_staged()
    }

    /// Products of a term per part, a multiple of the tiling's step.
    pub(super) fn part(&self, term: &Term) -> u32 {
        term.k.div_ceil(self.choice.split).next_multiple_of(self.choice.tiling.step())
    }

    /// Parts that have products of some term.
    pub(super) fn parts(&self) -> u32 {
        self.terms.iter().map(|term| term.k.div_ceil(self.part(term))).max().unwrap_or(1)
    }

    /// Outputs of all batches.
    pub(super) fn points(&self) -> u64 {
        self.sizes.iter().map(|&n| u64::from(n)).product()
    }

    /// Tiles of rows and columns, and tiles in total over batches and parts.
    pub(super) fn tiles(&self) -> (u32, u32, u64) {
        let [batch, m, n] = self.sizes;
        let (tiles_m, tiles_n) = (m.div_ceil(self.choice.tiling.bm), n.div_ceil(self.choice.tiling.bn));
        let total = [tiles_m, tiles_n, batch, self.parts()].iter().map(|&n| u64::from(n)).product();
        (tiles_m, tiles_n, total)
    }

    /// Parameter words, in the order of [`Words::declare`].
    pub(super) fn words(&self) -> Result<Vec<u32>, KernelError> {
        let (tiles_m, tiles_n, total) = self.tiles();
        let total = u32::try_from(total)
            .map_err(|_| emit::unsupported("contract", format!("{total} tiles in one dispatch")))?;
        let [batch, m, n] = self.sizes;
        let mut words = vec![m, n, tiles_m, tiles_n, total];
        words.extend(self.terms.iter().map(|term| term.k));
        if self.is_split() {
            words.push(batch);
            words.extend(self.terms.iter().map(|term| self.part(term)));
        }
        if self.is_joined() {
            words.extend([total / self.parts(), self.parts()]);
        }
        Ok(words)
    }
}

/// Most products one part may have, a multiple of the tiling's step: each turn counts on some targets.
fn most_products(tiling: &Tiling, target: &Target) -> u32 {
    if target.max_iterations == u32::MAX {
        return u32::MAX;
    }
    let turns = target.max_iterations.saturating_sub(1) / super::tile::turns(tiling, target.is_hardware);
    let products = if tiling.is_direct() { 1 } else { tiling.bk };
    (turns.saturating_mul(products) / tiling.step()).max(1) * tiling.step()
}

/// The run-time extents of a product kernel.
pub(super) struct Words<'b> {
    pub(super) m: Expr<'b>,
    pub(super) n: Expr<'b>,
    /// Products of each term.
    k: Vec<Expr<'b>>,
    tiles_m: Expr<'b>,
    tiles_n: Expr<'b>,
    pub(super) total: Expr<'b>,
    /// Batches, and products of each term per part.
    split: Option<(Expr<'b>, Vec<Expr<'b>>)>,
    /// Tiles of the output and parts of each, where the last workgroup adds them.
    pub(super) joined: Option<(Expr<'b>, Expr<'b>)>,
}

/// Which tile an invocation works on.
pub(super) struct Position<'b> {
    /// Number of the tile over parts, batches, rows and columns.
    pub(super) id: Expr<'b>,
    /// Tile of rows.
    pub(super) tile_m: Expr<'b>,
    /// Tile of columns.
    pub(super) tile_n: Expr<'b>,
    /// Batch.
    pub(super) batch: Expr<'b>,
    /// Row-major number of part and batch.
    pub(super) z: Expr<'b>,
    /// For each term its first product, and the first one no longer summed.
    pub(super) ranges: Vec<(Expr<'b>, Expr<'b>)>,
}

impl<'b> Words<'b> {
    pub(super) fn declare(b: &'b Builder, problem: &Problem<'_>) -> Self {
        let [m, n] = ["m", "n"].map(|name| b.param(name));
        let [tiles_m, tiles_n, total] = ["tiles_m", "tiles_n", "total"].map(|name| b.param(name));
        let each = |name: &str| problem.terms.iter().map(|_| b.param(name)).collect::<Vec<_>>();
        let k = each("k");
        let split = problem.is_split().then(|| (b.param("batch"), each("part")));
        let joined = problem.is_joined().then(|| (b.param("tiles"), b.param("parts")));
        Self { m, n, k, tiles_m, tiles_n, total, split, joined }
    }

    /// The position of tile number `id`, columns fastest.
    pub(super) fn position(&self, id: Expr<'b>) -> Position<'b> {
        let b = id.builder();
        let tile_n = (id % self.tiles_n).named("tile_n");
        let rest = id / self.tiles_n;
        let tile_m = (rest % self.tiles_m).named("tile_m");
        let z = (rest / self.tiles_m).named("z");
        let Some((batches, parts)) = &self.split else {
            let ranges = self.k.iter().map(|k| (b.constant(0_u32), *k)).collect();
            return Position { id, tile_m, tile_n, batch: z, z, ranges };
        };
        let part = (z / *batches).named("part");
        let range = |(size, k): (&Expr<'b>, &Expr<'b>)| {
            // Short terms have no products in the last parts.
            let start = (part * *size).native_min(*k).named("start");
            (start, (start + *size).native_min(*k).named("end"))
        };
        let ranges = parts.iter().zip(&self.k).map(range).collect();
        Position { id, tile_m, tile_n, batch: z % *batches, z, ranges }
    }
}

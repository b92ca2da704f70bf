//! The gradient kernels on matrix units. Scores are products of two-term operands, so that probabilities come back as the forward
//! pass had them; all other factors have one term of bf16.

use super::super::Frame;
use super::super::gradient::{Pair, Statistics, Walk};
use super::super::tile::{Registers, Rows, Tile};
use super::{Own, StripSums, Strips};
use crate::KernelError;
use crate::families::contract::tiling::Units;
use crate::families::contract::view::View;
use crate::kir::{Expr, Shared, Type, Var};
use griffinfly_ir::target::NumericClass;
use std::f32::consts::{LN_2, LOG2_E};

/// Class of the factors of scores, of everything else.
const SCORES: NumericClass = NumericClass::Bf16x2;
const OTHERS: NumericClass = NumericClass::Bf16;

/// What a block of queries or keys owns and runs over: factors of the scores, of the gradients of the probabilities.
struct Block<'a, 'b> {
    own: [Own<'a, 'b>; 2],
    others: [Tile<'a, 'b>; 2],
    next: [Registers<'b>; 2],
    strips: Strips<'b>,
}

/// Where a factor comes from, and what its elements are multiplied with.
type Factor<'a> = (&'a View, Option<f32>);

/// Statistics of the queries of a tile: an array each in workgroup memory, and the next ones.
struct Columns<'b> {
    arrays: [Shared<'b>; 2],
    /// Of the queries that the invocation looks after.
    next: Vec<[Var<'b>; 2]>,
}

impl<'a, 'b> Frame<'a, 'b> {
    pub(in super::super) fn matrix_grad_query(&self, saved: &'a [View; 3]) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let (start, end) = self.seen();
        let rows = Rows { head: self.head, first: self.first, end: self.queries };
        let factor = Some(self.a.scale.get() * LOG2_E);
        let (own, others) = ([(&views.q, factor), (&saved[0], None)], [(&views.k, None), (&views.v, None)]);
        let tiles = [start, start + g.columns].map(|first| self.keys_from(first));
        let block = self.block((own, rows), (others, tiles))?;
        let query = self.first + self.place.0;
        let statistics = self.statistics(saved, self.head, query)?;
        let sums = self.strip_sums();
        let mut outcome = Ok(());
        b.for_("from", (start, end), g.columns, |from| {
            outcome = self.matrix_query_tile(&block, (&sums, statistics), from);
        });
        outcome?;
        let sums = self.strip_registers(block.strips, sums);
        self.store((0, rows), &sums, &[b.constant(self.a.scale.get())])
    }

    /// The tiles of a block, those it owns as matrices, the first ones ready and the second ones on their way.
    fn block(
        &self,
        (own, rows): ([Factor<'a>; 2], Rows<'b>),
        (others, tiles): ([Factor<'a>; 2], [Rows<'b>; 2]),
    ) -> Result<Block<'a, 'b>, KernelError> {
        let (g, strips) = (self.geometry, self.strips(OTHERS));
        let tile = |place: u32, class: NumericClass, count: u32, factor: Factor<'a>| {
            self.rounded_tile((strips.halves, place), class, count, factor)
        };
        let (places, classes) = (strips.places, [SCORES, OTHERS]);
        let own = [0, 1].map(|i| (tile(places.own[i], classes[i], g.rows, own[i]), rows));
        let others = [0, 1].map(|i| tile(places.others[i], classes[i], g.columns, others[i]));
        let (own, next) = self.prepare(own, others, tiles)?;
        Ok(Block { own, others, next, strips })
    }

    fn matrix_query_tile(
        &self,
        block: &Block<'a, 'b>,
        (sums, statistics): (&StripSums<'b>, Statistics<'b>),
        from: Expr<'b>,
    ) -> Result<(), KernelError> {
        let (b, step) = (self.b, self.geometry.columns);
        let (g, query, columns) = (self.geometry, self.first + self.place.0, self.strip_columns());
        let pair = |i: usize| {
            let zero = b.constant(0.0_f32);
            Pair { head: self.head, query, key: from + columns[i], score: zero, dp: zero, row: statistics }
        };
        let exist = (from + g.columns).le(self.keys) & (self.first + g.rows).le(self.queries);
        let are_seen = self.all_seen((self.first, g.rows), (from, g.columns), exist);
        let p = self.strip_probabilities(block, are_seen, &pair)?;
        // All have read the scores.
        self.wait();
        let ds = self.strip_gradients(block, &p, are_seen, &pair);
        self.put_strip_weights(block.strips, &ds);
        self.wait();
        self.weigh_strip(block.strips, sums, block.others[0]);
        b.barrier();
        let following = [from + step, from + 2 * step].map(|first| self.keys_from(first));
        self.refill(block.others, &block.next, following)
    }

    /// Probabilities of the invocation's row and columns.
    fn strip_probabilities(
        &self,
        block: &Block<'a, 'b>,
        are_seen: Expr<'b>,
        pair: &impl Fn(usize) -> Pair<'b>,
    ) -> Result<Vec<Expr<'b>>, KernelError> {
        let products = self.strip_products(block.strips, &block.own[0], block.others[0]);
        let one = |i: usize| {
            let pair = pair(i);
            let product = products[i / 4].lane((i % 4) as u8);
            let score = self.score(product, pair.head, (pair.query, pair.key))?;
            Ok((score - pair.row[0]).native_exp2())
        };
        let p = (0..products.len() * 4).map(one).collect::<Result<Vec<_>, KernelError>>()?;
        Ok(self.masked(p, are_seen, |i| self.pair_exists(&pair(i)), 0.0))
    }

    /// Gradients of the scores, in quadruples.
    fn strip_gradients(
        &self,
        block: &Block<'a, 'b>,
        p: &[Expr<'b>],
        are_seen: Expr<'b>,
        pair: &impl Fn(usize) -> Pair<'b>,
    ) -> Vec<Expr<'b>> {
        let products = self.strip_products(block.strips, &block.own[1], block.others[1]);
        let one = |(i, p): (usize, &Expr<'b>)| {
            let dp = products[i / 4].lane((i % 4) as u8);
            *p * (dp - pair(i).row[1])
        };
        let ds = p.iter().enumerate().map(one).collect();
        let ds = self.masked(ds, are_seen, |i| self.pair_exists(&pair(i)), 0.0);
        ds.chunks(4).map(|quad| self.b.vector(quad)).collect()
    }

    pub(in super::super) fn matrix_grad_key_value(&self, saved: &'a [View; 3]) -> Result<(), KernelError> {
        let (b, views) = (self.b, self.views);
        let rows = Rows { head: self.head, first: self.first, end: self.keys };
        let walk = self.walk();
        let first = Rows { head: walk.first_head, first: walk.start, end: self.queries };
        let second = self.queries_of(&walk, b.constant(1_u32));
        let factor = Some(self.a.scale.get() * LOG2_E);
        let (own, others) = ([(&views.k, None), (&views.v, None)], [(&views.q, factor), (&saved[0], None)]);
        let columns = self.columns_of(saved, first)?;
        let block = self.block((own, rows), (others, [first, second]))?;
        self.fetch_columns(&columns, saved, second)?;
        let sums: Vec<(usize, StripSums<'b>)> =
            views.results.iter().map(|(kind, _)| (*kind, self.strip_sums())).collect();
        let mut outcome = Ok(());
        b.for_("turn", (0_u32, walk.tiles[1]), 1_u32, |turn| {
            outcome = self.matrix_key_tile(&block, (&sums, &columns, saved), (&walk, turn));
        });
        outcome?;
        for (n, (kind, sums)) in sums.into_iter().enumerate() {
            let sums = self.strip_registers(block.strips, sums);
            // Queries carry the base of the exponentials besides the scale.
            self.store((n, rows), &sums, &[b.constant([LN_2, 1.0_f32][kind])])?;
        }
        Ok(())
    }

    /// Statistics of a first tile of queries, put down.
    fn columns_of(&self, saved: &[View; 3], queries: Rows<'b>) -> Result<Columns<'b>, KernelError> {
        let (b, quads) = (self.b, self.geometry.columns / 4);
        let array = |name: &str| b.shared(name, Type::F32X4, quads);
        let columns = Columns {
            arrays: [array("lse"), array("delta")],
            next: (0..self.geometry.columns.div_ceil(self.geometry.invocations()))
                .map(|_| ["next_lse", "next_delta"].map(|name| b.var(name, 0.0_f32)))
                .collect(),
        };
        self.fetch_columns(&columns, saved, queries)?;
        self.put_columns(&columns);
        Ok(columns)
    }

    fn fetch_columns(
        &self,
        columns: &Columns<'b>,
        saved: &[View; 3],
        queries: Rows<'b>,
    ) -> Result<(), KernelError> {
        let mut outcome = Ok(());
        self.each_column(columns, |column, next| {
            let statistics = self.statistics(saved, queries.head, queries.first + column);
            outcome = outcome.clone().and(statistics.map(|statistics| {
                next.iter().zip(statistics).for_each(|(var, value)| var.set(value));
            }));
        });
        outcome
    }

    fn put_columns(&self, columns: &Columns<'b>) {
        self.each_column(columns, |column, next| {
            for (array, value) in columns.arrays.iter().zip(next) {
                array.store_lane(column / 4, column % 4, value.get());
            }
        });
    }

    /// Calls `one` with the columns that the invocation looks after, where there are such.
    fn each_column(&self, columns: &Columns<'b>, mut one: impl FnMut(Expr<'b>, &[Var<'b>; 2])) {
        for (turn, next) in (0..).zip(&columns.next) {
            let column = self.b.local_index() + turn * self.geometry.invocations();
            self.b.if_(column.lt(self.geometry.columns), || one(column, next));
        }
    }

    fn matrix_key_tile(
        &self,
        block: &Block<'a, 'b>,
        (sums, columns, saved): (&[(usize, StripSums<'b>)], &Columns<'b>, &[View; 3]),
        (walk, turn): (&Walk<'b>, Expr<'b>),
    ) -> Result<(), KernelError> {
        let b = self.b;
        let [now, soon, later] = [0, 1, 2].map(|n| self.queries_of(walk, turn + n));
        let statistics: Vec<[Expr<'b>; 2]> = self
            .column_quads()
            .into_iter()
            .map(|quad| columns.arrays.map(|array| array.load(quad)))
            .collect();
        let (g, key, places) = (self.geometry, self.first + self.place.0, self.strip_columns());
        let pair = |i: usize| {
            let zero = b.constant(0.0_f32);
            let row = statistics[i / 4].map(|quad| quad.lane((i % 4) as u8));
            Pair { head: now.head, query: now.first + places[i], key, score: zero, dp: zero, row }
        };
        let exist = (now.first + g.columns).le(self.queries) & (self.first + g.rows).le(self.keys);
        let are_seen = self.all_seen((now.first, g.columns), (self.first, g.rows), exist);
        let p = self.strip_probabilities(block, are_seen, &pair)?;
        let of_kind = |kind: usize| sums.iter().filter(move |(k, _)| *k == kind).map(|(_, sums)| sums);
        let quads: Vec<Expr<'b>> = p.chunks(4).map(|quad| b.vector(quad)).collect();
        if of_kind(1).next().is_some() {
            self.put_strip_weights(block.strips, &quads);
        }
        // All have read the scores, and weights lie ready.
        self.wait();
        of_kind(1).for_each(|sums| self.weigh_strip(block.strips, sums, block.others[1]));
        if of_kind(0).next().is_some() {
            // With matrices, the second products wait before anything is written over the weights.
            if self.units == Units::Plain {
                self.wait();
            }
            let ds = self.strip_gradients(block, &p, are_seen, &pair);
            self.put_strip_weights(block.strips, &ds);
            self.wait();
            of_kind(0).for_each(|sums| self.weigh_strip(block.strips, sums, block.others[0]));
        }
        b.barrier();
        self.put_columns(columns);
        self.fetch_columns(columns, saved, later)?;
        self.refill(block.others, &block.next, [soon, later])
    }
}

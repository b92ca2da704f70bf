//! The gradient kernels. Probabilities come back from scores and log-sum-exps: `p = exp(s - lse)`, to the base 2.
//!
//! Three barriers per tile: tiles lie ready; weights lie ready; tiles and weights are done with. What the next tile holds is
//! on its way to registers meanwhile.

use super::Frame;
use super::product::Sums;
use super::tile::{Registers, Rows, Tile};
use crate::KernelError;
use crate::families::contract::view::View;
use crate::kir::{Expr, Shared};
use std::f32::consts::{LN_2, LOG2_E};

/// Log-sum-exp (to the base 2, no lower than the least finite number) and delta of a query.
pub(super) type Statistics<'b> = [Expr<'b>; 2];

/// A query and a key, with the product of the gradient of the query's result and the key's value.
pub(super) struct Pair<'b> {
    pub(super) head: Expr<'b>,
    pub(super) query: Expr<'b>,
    pub(super) key: Expr<'b>,
    pub(super) score: Expr<'b>,
    pub(super) dp: Expr<'b>,
    pub(super) row: Statistics<'b>,
}

/// The queries that a block of keys runs over: tile after tile of head after head of the group.
pub(super) struct Walk<'b> {
    pub(super) first_head: Expr<'b>,
    pub(super) start: Expr<'b>,
    /// Tiles of a head, tiles in all.
    pub(super) tiles: [Expr<'b>; 2],
}

/// A block of queries: tiles of what it owns and of what it runs over, registers for the next of these.
struct QueryBlock<'a, 'b> {
    own: [Tile<'a, 'b>; 2],
    others: [Tile<'a, 'b>; 2],
    next: [Registers<'b>; 2],
    weights: Shared<'b>,
    /// Queries of the invocation.
    queries: Vec<Expr<'b>>,
    statistics: Vec<Statistics<'b>>,
    sums: Sums<'b>,
}

/// A block of keys, in the same way.
struct KeyBlock<'a, 'b> {
    own: [Tile<'a, 'b>; 2],
    others: [Tile<'a, 'b>; 2],
    next: [Registers<'b>; 2],
    results: Vec<KeyResult<'b>>,
    walk: Walk<'b>,
}

/// A gradient of a block of keys.
struct KeyResult<'b> {
    /// Number of the tile that is weighed: 0 for the gradient of keys, 1 of values.
    kind: usize,
    weights: Shared<'b>,
    sums: Sums<'b>,
}

impl<'a, 'b> Frame<'a, 'b> {
    pub(super) fn statistics(
        &self,
        saved: &[View; 3],
        head: Expr<'b>,
        query: Expr<'b>,
    ) -> Result<Statistics<'b>, KernelError> {
        let query = query.native_min(self.queries - 1);
        let lse = self.of_row(&saved[1], head, query)? * LOG2_E;
        Ok([lse.max(f32::MIN), self.of_row(&saved[2], head, query)?])
    }

    /// Probability and gradient of the score of a pair; zeros for a pair that does not exist or is not seen.
    fn gradient(&self, pair: &Pair<'b>) -> Result<[Expr<'b>; 2], KernelError> {
        let score = self.score(pair.score, pair.head, (pair.query, pair.key))?;
        let seen = self.pair_exists(pair);
        let p = (score - pair.row[0]).exp2();
        let ds = p * (pair.dp - pair.row[1]);
        Ok([seen.select(p, 0.0_f32), seen.select(ds, 0.0_f32)])
    }

    /// Whether a pair exists and is seen.
    pub(super) fn pair_exists(&self, pair: &Pair<'b>) -> Expr<'b> {
        let exists = pair.query.lt(self.queries) & pair.key.lt(self.keys);
        self.sees(pair.query, pair.key).map_or(exists, |sees| exists & sees)
    }

    pub(super) fn grad_query(&self, saved: &'a [View; 3]) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let own = [
            self.tile("queries", g.rows, (&views.q, Some(self.a.scale.get() * LOG2_E))),
            self.tile("gradients", g.rows, (&saved[0], None)),
        ];
        let others = [("keys", &views.k), ("values", &views.v)]
            .map(|(name, view)| self.tile(name, g.columns, (view, None)));
        let weights = self.weights("weights");
        let rows = Rows { head: self.head, first: self.first, end: self.queries };
        let (start, end) = self.seen();
        let next = others.map(|tile| self.registers(tile));
        let queries: Vec<Expr<'b>> = self.rows().into_iter().map(|row| self.first + row).collect();
        let statistics = queries.iter().map(|query| self.statistics(saved, self.head, *query));
        let statistics = statistics.collect::<Result<Vec<_>, _>>()?;
        let [now, later] = [start, start + g.columns].map(|first| self.keys_from(first));
        (0..2).try_for_each(|i| self.fetch(others[i], later, &next[i]))?;
        self.fill(&[(own[0], rows), (own[1], rows), (others[0], now), (others[1], now)])?;
        let block = QueryBlock { own, others, next, weights, queries, statistics, sums: self.sums() };
        b.barrier();
        let mut outcome = Ok(());
        b.for_("from", (start, end), g.columns, |from| outcome = self.tile_of_queries(&block, from));
        outcome?;
        self.merge(&block.sums, others[0].shared);
        let factors = vec![b.constant(self.a.scale.get()); block.sums.len()];
        self.store((0, rows), &block.sums, &factors)
    }

    /// Takes in one tile of keys and values.
    fn tile_of_queries(&self, block: &QueryBlock<'a, 'b>, from: Expr<'b>) -> Result<(), KernelError> {
        let (b, step) = (self.b, self.geometry.columns);
        let scores = self.products(block.own[0].shared, block.others[0].shared);
        let dps = self.products(block.own[1].shared, block.others[1].shared);
        for (i, row) in self.rows().into_iter().enumerate() {
            let one = |(j, column): (usize, Expr<'b>)| {
                let (score, dp, key) = (scores[i][j], dps[i][j], from + column);
                let (head, query, row) = (self.head, block.queries[i], block.statistics[i]);
                Ok(self.gradient(&Pair { head, query, key, score, dp, row })?[1])
            };
            let ds = self.columns().into_iter().enumerate().map(one);
            self.put_weights(block.weights, row, &ds.collect::<Result<Vec<_>, KernelError>>()?);
        }
        b.barrier();
        self.weigh(&block.sums, block.weights, block.others[0].shared);
        b.barrier();
        let following = [from + step, from + 2 * step].map(|first| self.keys_from(first));
        self.refill(block.others, &block.next, following)
    }

    /// Puts down two tiles and fetches those after them.
    pub(super) fn refill(
        &self,
        tiles: [Tile<'a, 'b>; 2],
        next: &[Registers<'b>; 2],
        [now, later]: [Rows<'b>; 2],
    ) -> Result<(), KernelError> {
        for (tile, registers) in tiles.into_iter().zip(next) {
            self.put(tile, now, registers)?;
            self.fetch(tile, later, registers)?;
        }
        self.b.barrier();
        Ok(())
    }

    pub(super) fn grad_key_value(&self, saved: &'a [View; 3]) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let own = [("keys", &views.k), ("values", &views.v)]
            .map(|(name, view)| self.tile(name, g.rows, (view, None)));
        let others = [
            self.tile("queries", g.columns, (&views.q, Some(self.a.scale.get() * LOG2_E))),
            self.tile("gradients", g.columns, (&saved[0], None)),
        ];
        let result = |(kind, _): &(usize, View)| KeyResult {
            kind: *kind,
            weights: self.weights(["score_gradients", "probabilities"][*kind]),
            sums: self.sums(),
        };
        let results: Vec<_> = views.results.iter().map(result).collect();
        let keys = Rows { head: self.head, first: self.first, end: self.keys };
        let walk = self.walk();
        let next = others.map(|tile| self.registers(tile));
        let first = Rows { head: walk.first_head, first: walk.start, end: self.queries };
        let second = self.queries_of(&walk, b.constant(1_u32));
        (0..2).try_for_each(|i| self.fetch(others[i], second, &next[i]))?;
        self.fill(&[(own[0], keys), (own[1], keys), (others[0], first), (others[1], first)])?;
        b.barrier();
        let (tiles, block) = (walk.tiles[1], KeyBlock { own, others, next, results, walk });
        let mut outcome = Ok(());
        b.for_("turn", (0_u32, tiles), 1_u32, |turn| outcome = self.tile_of_key_values(&block, saved, turn));
        outcome?;
        for (n, result) in block.results.iter().enumerate() {
            self.merge(&result.sums, others[0].shared);
            // Queries carry the base of the exponentials besides the scale.
            let factor = b.constant([LN_2, 1.0_f32][result.kind]);
            self.store((n, keys), &result.sums, &vec![factor; result.sums.len()])?;
        }
        Ok(())
    }

    /// Takes in one tile of queries and gradients of their results.
    fn tile_of_key_values(
        &self,
        block: &KeyBlock<'a, 'b>,
        saved: &[View; 3],
        turn: Expr<'b>,
    ) -> Result<(), KernelError> {
        let (b, own, others) = (self.b, block.own, block.others);
        let [now, soon, later] = [0, 1, 2].map(|n| self.queries_of(&block.walk, turn + n));
        let queries: Vec<Expr<'b>> = self.columns().into_iter().map(|column| now.first + column).collect();
        let statistics = queries.iter().map(|query| self.statistics(saved, now.head, *query));
        let statistics = statistics.collect::<Result<Vec<_>, _>>()?;
        let scores = self.products(own[0].shared, others[0].shared);
        let dps = self.products(own[1].shared, others[1].shared);
        for (i, row) in self.rows().into_iter().enumerate() {
            let one = |j: usize| {
                let (head, query, key) = (now.head, queries[j], self.first + row);
                let (score, dp, row) = (scores[i][j], dps[i][j], statistics[j]);
                self.gradient(&Pair { head, query, key, score, dp, row })
            };
            let pairs = (0..queries.len()).map(one).collect::<Result<Vec<_>, _>>()?;
            for result in &block.results {
                let values = pairs.iter().map(|[p, ds]| [*ds, *p][result.kind]);
                self.put_weights(result.weights, row, &values.collect::<Vec<_>>());
            }
        }
        b.barrier();
        for result in &block.results {
            self.weigh(&result.sums, result.weights, others[result.kind].shared);
        }
        b.barrier();
        self.refill(others, &block.next, [soon, later])
    }

    pub(super) fn walk(&self) -> Walk<'b> {
        let (g, group) = (self.geometry, self.a.shape.group() as u32);
        let (start, end) = self.seeing();
        let most = self.a.shape.queries.div_ceil(g.columns as usize) as u32;
        let tiles = (end.native_max(start) - start + (g.columns - 1)) / g.columns;
        let tiles = tiles.native_min(most);
        Walk { first_head: self.head * group, start, tiles: [tiles, tiles * group] }
    }

    /// The queries of a tile, or of the last one.
    pub(super) fn queries_of(&self, walk: &Walk<'b>, number: Expr<'b>) -> Rows<'b> {
        let end = self.queries;
        if self.a.shape.group() == 1 {
            return Rows { head: self.head, first: walk.start + number * self.geometry.columns, end };
        }
        let per_head = walk.tiles[0].native_max(1_u32);
        let number = number.native_min(walk.tiles[1].native_max(1_u32) - 1);
        let (member, tile) = (number / per_head, number % per_head);
        Rows { head: walk.first_head + member, first: walk.start + tile * self.geometry.columns, end }
    }
}

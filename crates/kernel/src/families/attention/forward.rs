//! The forward kernel: softmax with a running maximum (Milakov and Gimelshein 2018; Dao 2023).
//!
//! Scores are to the base 2: queries carry the factor `scale log2 e`. Every neighbour of a row has the row's maximum; each has
//! its own part of the row's sum of exponentials, which are added at the end. Two barriers per tile: after the first all have
//! read the keys and weighed the values of the tile before, so keys, values and weights are put down; after the second
//! they can be read. Where memory is short, values and keys take turns in one place, which takes two more barriers.

use super::Frame;
use super::product::Sums;
use super::tile::{Registers, Rows, Tile};
use crate::KernelError;
use crate::families::contract::point;
use crate::kir::{Expr, Lanes, Scalar, Shared, Type, Var};
use std::f32::consts::{LN_2, LOG2_E};

/// The running softmax of the rows of an invocation.
struct Softmax<'b> {
    /// One value per row and neighbour, for the neighbours to exchange.
    exchange: Shared<'b>,
    weights: Shared<'b>,
    most: Vec<Var<'b>>,
    total: Vec<Var<'b>>,
}

/// The tiles, and registers for the next keys and values.
struct Tiles<'a, 'b> {
    queries: Tile<'a, 'b>,
    keys: Tile<'a, 'b>,
    values: Tile<'a, 'b>,
    next_keys: Registers<'b>,
    next_values: Registers<'b>,
}

impl<'a, 'b> Frame<'a, 'b> {
    pub(super) fn forward(&self) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let queries = self.tile("queries", g.rows, (&views.q, Some(self.a.scale.get() * LOG2_E)));
        let keys = self.tile("keys", g.columns, (&views.k, None));
        let values =
            if self.has_both { self.tile("values", g.columns, (&views.v, None)) } else { keys.of(&views.v) };
        let (next_keys, next_values) = (self.registers(keys), self.registers(values));
        let tiles = Tiles { queries, keys, values, next_keys, next_values };
        let softmax = self.softmax();
        let rows = Rows { head: self.head, first: self.first, end: self.queries };
        let (start, end) = self.seen_by_part();
        self.fetch(values, self.keys_from(start), &tiles.next_values)?;
        self.fetch(keys, self.keys_from(start + g.columns), &tiles.next_keys)?;
        self.fill(&[(queries, rows), (keys, self.keys_from(start))])?;
        b.barrier();
        let sums = self.sums();
        let mut outcome = Ok(());
        b.for_("from", (start, end), g.columns, |from| {
            outcome = self.tile_of_keys(&softmax, &sums, &tiles, from);
        });
        outcome?;
        if let Some(part) = self.part {
            let totals = self.totals(&softmax);
            self.merge(&sums, values.shared);
            self.leave(part, rows, (&sums, &softmax.most, &totals));
            return Ok(());
        }
        let factors = self.finish(&softmax, rows)?;
        self.merge(&sums, values.shared);
        self.store((0, rows), &sums, &factors)
    }

    /// The totals of the rows, added up over their neighbours.
    fn totals(&self, s: &Softmax<'b>) -> Vec<Expr<'b>> {
        self.send(s.exchange, &s.total.iter().map(|total| total.get()).collect::<Vec<_>>());
        self.b.barrier();
        self.receive(s.exchange, |x, y| x + y)
    }

    /// Keys (or values) of the head of the block's queries.
    pub(super) fn keys_from(&self, first: Expr<'b>) -> Rows<'b> {
        Rows { head: self.head / self.a.shape.group() as u32, first, end: self.keys }
    }

    fn softmax(&self) -> Softmax<'b> {
        let (b, g) = (self.b, self.geometry);
        let lanes = Lanes::from_count(g.exchange_lanes() as usize).unwrap_or(Lanes::One);
        let each = |name: &'static str, value: f32| (0..g.row_count()).map(|_| b.var(name, value)).collect();
        Softmax {
            exchange: b.shared("exchange", Type::new(Scalar::F32, lanes), g.exchange_length()),
            weights: self.weights("weights"),
            most: each("most", f32::MIN),
            total: each("total", 0.0),
        }
    }

    /// Takes in one tile of keys and values.
    fn tile_of_keys(
        &self,
        softmax: &Softmax<'b>,
        sums: &Sums<'b>,
        tiles: &Tiles<'a, 'b>,
        from: Expr<'b>,
    ) -> Result<(), KernelError> {
        let (b, step, values) = (self.b, self.geometry.columns, tiles.values);
        let scores = self.scores(self.products(tiles.queries.shared, tiles.keys.shared), from)?;
        let most = |row: &Vec<Expr<'b>>| row.iter().copied().reduce(|x, y| x.native_max(y));
        self.send(softmax.exchange, &scores.iter().filter_map(most).collect::<Vec<_>>());
        b.barrier();
        self.put(values, self.keys_from(from), &tiles.next_values)?;
        self.fetch(values, self.keys_from(from + step), &tiles.next_values)?;
        if self.has_both {
            self.put_keys(tiles, from)?;
        }
        let most = self.receive(softmax.exchange, |x, y| x.native_max(y));
        self.exponentials(softmax, sums, &scores, &most);
        b.barrier();
        self.weigh(sums, softmax.weights, values.shared);
        if !self.has_both {
            b.barrier();
            self.put_keys(tiles, from)?;
            b.barrier();
        }
        Ok(())
    }

    /// Puts down the keys of the next tile and fetches those of the one after it.
    fn put_keys(&self, tiles: &Tiles<'a, 'b>, from: Expr<'b>) -> Result<(), KernelError> {
        let step = self.geometry.columns;
        self.put(tiles.keys, self.keys_from(from + step), &tiles.next_keys)?;
        self.fetch(tiles.keys, self.keys_from(from + 2 * step), &tiles.next_keys)
    }

    /// Scores of a tile, -inf where a pair does not exist or is not seen.
    fn scores(
        &self,
        products: Vec<Vec<Expr<'b>>>,
        from: Expr<'b>,
    ) -> Result<Vec<Vec<Expr<'b>>>, KernelError> {
        let keys: Vec<Expr<'b>> = self.columns().into_iter().map(|column| from + column).collect();
        let exist: Vec<Expr<'b>> = keys.iter().map(|key| key.lt(self.keys)).collect();
        let one_row = |(row, products): (Expr<'b>, Vec<Expr<'b>>)| {
            let query = self.first + row;
            let one = |((product, key), exists): ((Expr<'b>, &Expr<'b>), &Expr<'b>)| {
                let score = self.score(product, self.head, (query, *key))?;
                let seen = self.sees(query, *key).map_or(*exists, |sees| *exists & sees);
                Ok(seen.select(score, f32::NEG_INFINITY))
            };
            products.into_iter().zip(&keys).zip(&exist).map(one).collect()
        };
        self.rows().into_iter().zip(products).map(one_row).collect()
    }

    /// Turns the scores of a tile into exponentials less the running maximum, and rescales what was added before.
    fn exponentials(&self, s: &Softmax<'b>, sums: &Sums<'b>, scores: &[Vec<Expr<'b>>], most: &[Expr<'b>]) {
        for (i, (row, scores)) in self.rows().into_iter().zip(scores).enumerate() {
            let old = s.most[i].get();
            let most = old.native_max(most[i]);
            let factor = (old - most).exp2();
            let values: Vec<Expr<'b>> = scores.iter().map(|score| (*score - most).exp2()).collect();
            self.put_weights(s.weights, row, &values);
            let sum = values.into_iter().reduce(|x, y| x + y).unwrap_or(factor);
            s.total[i].set(s.total[i].get().fma(factor, sum));
            s.most[i].set(most);
            sums[i].iter().for_each(|sum| sum.set(sum.get() * factor));
        }
    }

    /// Puts down a value of each row of the invocation for its neighbours.
    fn send(&self, exchange: Shared<'b>, values: &[Expr<'b>]) {
        for (k, values) in (0..).zip(values.chunks(self.geometry.exchange_lanes() as usize)) {
            let lane = |e: usize| values[e.min(values.len() - 1)];
            let lanes: Vec<Expr<'b>> = (0..self.geometry.exchange_lanes() as usize).map(lane).collect();
            let value = if lanes.len() == 1 { lanes[0] } else { self.b.vector(&lanes) };
            exchange.store(self.exchange_row(k) + self.place.1, value);
        }
    }

    fn exchange_row(&self, chunk: u32) -> Expr<'b> {
        let g = self.geometry;
        (self.place.0 + chunk * g.high) * (g.wide + 1)
    }

    /// What the neighbours of each row put down, combined in order.
    fn receive(
        &self,
        exchange: Shared<'b>,
        combine: impl Fn(Expr<'b>, Expr<'b>) -> Expr<'b>,
    ) -> Vec<Expr<'b>> {
        let g = self.geometry;
        let chunk = |k: u32| {
            let row = self.exchange_row(k);
            (0..g.wide).map(|x| exchange.load(row + x)).reduce(&combine)
        };
        let lanes = g.exchange_lanes();
        let chunks: Vec<Expr<'b>> = (0..g.row_count().div_ceil(lanes)).filter_map(chunk).collect();
        (0..g.row_count()).map(|i| chunks[(i / lanes) as usize].lane((i % lanes) as u8)).collect()
    }

    /// Adds up the totals and writes the log-sum-exps; returns the factors of the rows.
    fn finish(&self, s: &Softmax<'b>, rows: Rows<'b>) -> Result<Vec<Expr<'b>>, KernelError> {
        let (b, view) = (self.b, &self.views.results[1].1);
        let totals = self.totals(s);
        let mut outcome = Ok(());
        b.if_(self.place.1.equals(0_u32), || {
            for ((row, total), most) in self.rows().into_iter().zip(&totals).zip(&s.most) {
                let at = rows.first + row;
                b.if_(at.lt(rows.end), || {
                    let lse = most.get() * LN_2 + total.log();
                    let axes = self.axes(view, rows.head, at);
                    let stored = point::store(b, self.buffers, (view, None), &axes, &[lse]);
                    outcome = outcome.clone().and(stored);
                });
            }
        });
        outcome?;
        // A row that sees nothing has sums of zero.
        Ok(totals.into_iter().map(|x| 1.0_f32 / x.equals(0.0_f32).select(1.0_f32, x)).collect())
    }
}

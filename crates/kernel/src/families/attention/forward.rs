//! The forward kernel: softmax with a running maximum (Milakov and Gimelshein 2018; Dao 2023).

use super::Frame;
use super::tile::{Rows, Sums};
use crate::KernelError;
use crate::families::contract::point;
use crate::kir::{Expr, Shared, Type, Var};

/// The running softmax. Invocations `lanes * row ..` share a row; each has a copy of the row's maximum and a part of its sum.
struct Softmax<'b> {
    row: Expr<'b>,
    lane: Expr<'b>,
    scores: Shared<'b>,
    /// One value per invocation, for the rows to exchange.
    exchange: Shared<'b>,
    /// What the sums of a row are multiplied with, then the total of the row.
    factors: Shared<'b>,
    most: Var<'b>,
    total: Var<'b>,
}

impl<'b> Frame<'_, 'b> {
    pub(super) fn forward(&self) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let (own, other) = (self.tile("own", g.rows), self.tile("other", g.columns));
        let softmax = self.softmax();
        let rows = Rows { head: self.head, first: self.first, end: self.queries };
        self.fill((own, g.rows), &views.q, rows, Some(self.a.scale.get()))?;
        let sums = self.sums();
        let kv_head = self.head / self.a.shape.group() as u32;
        let mut outcome = Ok(());
        b.for_("from", self.seen(), g.columns, |from| {
            let keys = Rows { head: kv_head, first: from, end: self.keys };
            outcome = self.tile_of_keys(&softmax, (own, other), (keys, &sums));
        });
        outcome?;
        self.finish(&softmax, rows, &sums)
    }

    fn softmax(&self) -> Softmax<'b> {
        let (b, g) = (self.b, self.geometry);
        let local = b.local_index();
        Softmax {
            row: local / g.lanes(),
            lane: local % g.lanes(),
            scores: self.scores("scores"),
            exchange: b.shared("exchange", Type::F32, g.invocations()),
            factors: b.shared("factors", Type::F32, g.rows),
            most: b.var("most", f32::MIN),
            total: b.var("total", 0.0_f32),
        }
    }

    /// Takes in one tile of keys and values.
    fn tile_of_keys(
        &self,
        softmax: &Softmax<'b>,
        (own, other): (Shared<'b>, Shared<'b>),
        (keys, sums): (Rows<'b>, &Sums<'b>),
    ) -> Result<(), KernelError> {
        let (b, g) = (self.b, self.geometry);
        self.fill((other, g.columns), &self.views.k, keys, None)?;
        b.barrier();
        let products = self.products(own, other);
        for (row, products) in self.rows().into_iter().zip(products) {
            let query = self.first + row;
            for (column, product) in self.columns().into_iter().zip(products) {
                let key = keys.first + column;
                let bias = self.bias(self.head, query, key)?;
                let score = bias.map_or(product, |bias| product + bias);
                let seen = key.lt(self.keys);
                let seen = self.sees(query, key).map_or(seen, |sees| seen & sees);
                softmax.scores.store(row * g.columns + column, seen.select(score, f32::NEG_INFINITY));
            }
        }
        b.barrier();
        self.fill((other, g.columns), &self.views.v, keys, None)?;
        self.exponentials(softmax);
        for (row, sums) in self.rows().into_iter().zip(sums) {
            let factor = softmax.factors.load(row);
            sums.iter().for_each(|sum| sum.set(sum.get() * factor));
        }
        self.weigh(sums, softmax.scores, other);
        b.barrier();
        Ok(())
    }

    /// Turns the scores of a tile into exponentials less the running maximum.
    fn exponentials(&self, s: &Softmax<'b>) {
        let (b, g) = (self.b, self.geometry);
        let place = |j: u32| s.row * g.columns + s.lane + j * g.lanes();
        let scores: Vec<Expr<'b>> = (0..g.columns / g.lanes()).map(|j| s.scores.load(place(j))).collect();
        let mine = scores.iter().copied().reduce(|x, y| x.max(y)).unwrap_or(b.constant(f32::MIN));
        s.exchange.store(b.local_index(), mine);
        b.barrier();
        let old = s.most.get();
        let others = (0..g.lanes()).map(|lane| s.exchange.load(s.row * g.lanes() + lane));
        let most = others.fold(old, |m, x| m.max(x));
        let factor = (old - most).exp();
        let mut sum = s.total.get() * factor;
        for (j, score) in (0..).zip(scores) {
            let e = (score - most).exp();
            s.scores.store(place(j), e);
            sum = sum + e;
        }
        s.total.set(sum);
        s.most.set(most);
        b.if_(s.lane.equals(0_u32), || s.factors.store(s.row, factor));
        b.barrier();
    }

    /// Adds up the totals and writes both results.
    fn finish(&self, s: &Softmax<'b>, rows: Rows<'b>, sums: &Sums<'b>) -> Result<(), KernelError> {
        let (b, g) = (self.b, self.geometry);
        s.exchange.store(b.local_index(), s.total.get());
        b.barrier();
        let parts = (0..g.lanes()).map(|lane| s.exchange.load(s.row * g.lanes() + lane));
        let total = parts.reduce(|x, y| x + y).unwrap_or(b.constant(0.0_f32));
        let at = rows.first + s.row;
        let mut outcome = Ok(());
        b.if_(s.lane.equals(0_u32), || {
            // A row that sees nothing has sums of zero.
            let divisor = total.equals(0.0_f32).select(1.0_f32, total);
            s.factors.store(s.row, 1.0_f32 / divisor);
            let (lse, view) = (s.most.get() + total.log(), &self.views.results[1].1);
            b.if_(at.lt(rows.end), || {
                let axes = self.axes(view, rows.head, at);
                outcome = point::store(b, self.buffers, (view, None), &axes, &[lse]);
            });
        });
        outcome?;
        b.barrier();
        self.store((0, rows), sums, &|row| s.factors.load(row))
    }
}

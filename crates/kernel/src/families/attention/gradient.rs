//! The gradient kernels. Probabilities come back from scores and log-sum-exps: `p = exp(s - lse)`.

use super::Frame;
use super::tile::Rows;
use crate::KernelError;
use crate::families::contract::view::View;
use crate::kir::{Expr, Shared};

/// A query and a key, with the product of the gradient of the query's result and the key's value.
struct Pair<'b> {
    head: Expr<'b>,
    query: Expr<'b>,
    key: Expr<'b>,
    score: Expr<'b>,
    dp: Expr<'b>,
    /// Log-sum-exp and delta of the query.
    row: [Expr<'b>; 2],
}

impl<'b> Frame<'_, 'b> {
    /// Log-sum-exp (no lower than the least finite number) and delta of a query.
    fn statistics(
        &self,
        saved: &[View; 3],
        head: Expr<'b>,
        query: Expr<'b>,
    ) -> Result<[Expr<'b>; 2], KernelError> {
        let query = query.native_min(self.queries - 1);
        let lse = self.of_row(&saved[1], head, query)?;
        Ok([lse.max(f32::MIN), self.of_row(&saved[2], head, query)?])
    }

    /// Probability and gradient of the score of a pair; zeros for a pair that does not exist or is not seen.
    fn gradient(&self, pair: &Pair<'b>) -> Result<[Expr<'b>; 2], KernelError> {
        let bias = self.bias(pair.head, pair.query, pair.key)?;
        let score = bias.map_or(pair.score, |bias| pair.score + bias);
        let exists = pair.query.lt(self.queries) & pair.key.lt(self.keys);
        let seen = self.sees(pair.query, pair.key).map_or(exists, |sees| exists & sees);
        let p = (score - pair.row[0]).exp();
        let ds = p * (pair.dp - pair.row[1]);
        Ok([seen.select(p, 0.0_f32), seen.select(ds, 0.0_f32)])
    }

    pub(super) fn grad_query(&self, saved: &[View; 3]) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let (own, own_dy) = (self.tile("own", g.rows), self.tile("own_dy", g.rows));
        let (other, scores) = (self.tile("other", g.columns), self.scores("scores"));
        let rows = Rows { head: self.head, first: self.first, end: self.queries };
        self.fill((own, g.rows), &views.q, rows, Some(self.a.scale.get()))?;
        self.fill((own_dy, g.rows), &saved[0], rows, None)?;
        let queries: Vec<Expr<'b>> = self.rows().into_iter().map(|row| self.first + row).collect();
        let statistics = queries.iter().map(|query| self.statistics(saved, self.head, *query));
        let statistics = statistics.collect::<Result<Vec<_>, _>>()?;
        let sums = self.sums();
        let kv_head = self.head / self.a.shape.group() as u32;
        let mut outcome = Ok(());
        b.for_("from", self.seen(), g.columns, |from| {
            let keys = Rows { head: kv_head, first: from, end: self.keys };
            outcome = self.fill((other, g.columns), &views.v, keys, None);
            b.barrier();
            let dps = self.products(own_dy, other);
            b.barrier();
            outcome = outcome.clone().and(self.fill((other, g.columns), &views.k, keys, None));
            b.barrier();
            let products = self.products(own, other);
            for (i, row) in self.rows().into_iter().enumerate() {
                for (j, column) in self.columns().into_iter().enumerate() {
                    let (key, query, row_values) = (from + column, queries[i], statistics[i]);
                    let (score, dp) = (products[i][j], dps[i][j]);
                    let pair = Pair { head: self.head, query, key, score, dp, row: row_values };
                    let ds = self.gradient(&pair).map(|[_, ds]| scores.store(row * g.columns + column, ds));
                    outcome = outcome.clone().and(ds);
                }
            }
            b.barrier();
            self.weigh(&sums, scores, other);
            b.barrier();
        });
        outcome?;
        self.store((0, rows), &sums, &|_| b.constant(self.a.scale.get()))
    }

    pub(super) fn grad_key_value(&self, saved: &[View; 3]) -> Result<(), KernelError> {
        let (b, g, views) = (self.b, self.geometry, self.views);
        let own = [self.tile("own_k", g.rows), self.tile("own_v", g.rows)];
        let other = [self.tile("other_q", g.columns), self.tile("other_dy", g.columns)];
        // Number of the tile that is weighed for each result (gradient of keys: 0, of values: 1).
        let kinds: Vec<usize> = views.results.iter().map(|(result, _)| *result).collect();
        let scores: Vec<Shared<'b>> =
            kinds.iter().map(|kind| self.scores(["gradients", "probabilities"][*kind])).collect();
        let keys = Rows { head: self.head, first: self.first, end: self.keys };
        self.fill((own[0], g.rows), &views.k, keys, None)?;
        self.fill((own[1], g.rows), &views.v, keys, None)?;
        let sums: Vec<_> = kinds.iter().map(|_| self.sums()).collect();
        let group = self.a.shape.group() as u32;
        let mut outcome = Ok(());
        let (start, end) = self.seeing();
        let mut one_head = |head: Expr<'b>| {
            b.for_("from", (start, end), g.columns, |from| {
                let rows = Rows { head, first: from, end: self.queries };
                let tile = || -> Result<(), KernelError> {
                    self.fill((other[0], g.columns), &views.q, rows, Some(self.a.scale.get()))?;
                    self.fill((other[1], g.columns), &saved[0], rows, None)?;
                    b.barrier();
                    let products = self.products(own[0], other[0]);
                    let dps = self.products(own[1], other[1]);
                    for (j, column) in self.columns().into_iter().enumerate() {
                        let query = from + column;
                        let statistics = self.statistics(saved, head, query)?;
                        for (i, row) in self.rows().into_iter().enumerate() {
                            let (score, dp) = (products[i][j], dps[i][j]);
                            let key = self.first + row;
                            let [p, ds] =
                                self.gradient(&Pair { head, query, key, score, dp, row: statistics })?;
                            for (kind, scores) in kinds.iter().zip(&scores) {
                                scores.store(row * g.columns + column, [ds, p][*kind]);
                            }
                        }
                    }
                    b.barrier();
                    for ((kind, scores), sums) in kinds.iter().zip(&scores).zip(&sums) {
                        self.weigh(sums, *scores, other[*kind]);
                    }
                    b.barrier();
                    Ok(())
                };
                outcome = outcome.clone().and(tile());
            });
        };
        if group == 1 {
            one_head(self.head);
        } else {
            b.for_("member", (0_u32, group), 1_u32, |member| one_head(self.head * group + member));
        }
        outcome?;
        let one = |_: Expr<'b>| b.constant(1.0_f32);
        (0..kinds.len()).try_for_each(|n| self.store((n, keys), &sums[n], &one))
    }
}

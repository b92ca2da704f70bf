//! Which pairs of a query and a key exist and are seen, the ranges a block runs over, and the bias of a pair.

use super::{Frame, WIDTH};
use crate::KernelError;
use crate::families::contract::point;
use crate::families::emit::decompose;
use crate::kir::Expr;

impl<'b> Frame<'_, 'b> {
    /// Whether a query sees a key that exists; `None`: certainly.
    pub(super) fn sees(&self, query: Expr<'b>, key: Expr<'b>) -> Option<Expr<'b>> {
        let (mine, theirs) = (query + self.keys, key + self.queries);
        let [back, ahead] = self.limits();
        let terms = [ahead.map(|n| theirs.le(mine + n)), back.map(|n| mine.le(theirs + n))];
        terms.into_iter().flatten().reduce(|x, y| x & y)
    }

    /// Whether all pairs of ranges of queries and keys, each first and count, are seen, if `exist` says that all are there.
    pub(super) fn all_seen(
        &self,
        (query, queries): (Expr<'b>, u32),
        (key, keys): (Expr<'b>, u32),
        exist: Expr<'b>,
    ) -> Expr<'b> {
        let [back, ahead] = self.limits();
        let (mine, theirs) = (query + self.keys, key + self.queries);
        let ahead = ahead.map(|n| (theirs + (keys - 1)).le(mine + n));
        let back = back.map(|n| (mine + (queries - 1)).le(theirs + n));
        [ahead, back].into_iter().flatten().fold(exist, |all, one| all & one)
    }

    /// How far queries see back and ahead, where that is limited.
    fn limits(&self) -> [Option<u32>; 2] {
        let s = self.a.shape;
        let most = s.queries + s.keys;
        self.a.mask.reach(most).map(|n| (n < most).then_some(n as u32))
    }

    /// The keys that any query of the block sees, as (first, end).
    pub(super) fn seen(&self) -> (Expr<'b>, Expr<'b>) {
        let last = (self.first + self.geometry.rows).native_min(self.queries) - 1;
        let [back, ahead] = self.limits();
        self.window((self.first + self.keys, last + self.keys), (back, ahead), (self.queries, self.keys))
    }

    /// The queries that see any key of the block, as (first, end).
    pub(super) fn seeing(&self) -> (Expr<'b>, Expr<'b>) {
        let last = (self.first + self.geometry.rows).native_min(self.keys) - 1;
        let [back, ahead] = self.limits();
        self.window(
            (self.first + self.queries, last + self.queries),
            (ahead, back),
            (self.keys, self.queries),
        )
    }

    /// `first - before - shift .. last + after + 1 - shift`, as far as it lies in `0..count`.
    fn window(
        &self,
        (first, last): (Expr<'b>, Expr<'b>),
        (before, after): (Option<u32>, Option<u32>),
        (shift, count): (Expr<'b>, Expr<'b>),
    ) -> (Expr<'b>, Expr<'b>) {
        let less = |x: Expr<'b>, y: Expr<'b>| x.native_max(y) - y;
        let start = before.map_or(self.b.constant(0_u32), |n| less(first, shift + n));
        let end = after.map_or(count, |n| less(last + (n + 1), shift).native_min(count));
        (start, end)
    }

    /// A score to the base 2 from the scaled product of a pair.
    pub(super) fn score(
        &self,
        product: Expr<'b>,
        head: Expr<'b>,
        (query, key): (Expr<'b>, Expr<'b>),
    ) -> Result<Expr<'b>, KernelError> {
        let Some(view) = &self.views.bias else { return Ok(product) };
        let (query, key) = (query.native_min(self.queries - 1), key.native_min(self.keys - 1));
        let mut axes = self.axes(view, head, query);
        axes.extend(decompose(self.b, key, &view.groups[WIDTH]));
        let bias = point::outputs(self.b, self.buffers, (view, None), &axes, &[])?[0];
        Ok(bias.fma(std::f32::consts::LOG2_E, product))
    }
}

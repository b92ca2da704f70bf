//! Scaled dot-product attention as one loop: no tensor of queries times keys exists.
//!
//! With `s(i, j) = scale q(i).k(j) + bias(i, j)` for the keys j that query i sees, and `lse(i) = log sum over j of exp(s(i, j))`:
//!
//! | variant | results |
//! |---|---|
//! | `Forward` | `y(i) = sum over j of exp(s - lse(i)) v(j)`, and `lse(i)` |
//! | `GradQuery` | `dq(i) = scale sum over j of ds(i, j) k(j)` |
//! | `GradKeyValue` | `dk(j) = scale sum over i of ds(i, j) q(i)`, `dv(j) = sum over i of p(i, j) dy(i)`, over all query heads of the group |
//!
//! with `p = exp(s - lse)` and `ds = p (dy(i).v(j) - delta(i))`. A query that sees nothing (or whose scores are all -inf)
//! has `y = 0`, `lse = -inf` and no influence on any gradient. A key that no query sees has gradient 0. What is not seen is
//! not part of a sum; whether a NaN or infinity in it passes through is not defined.

mod interpret;

use super::Body;
use crate::attr::F32;
use crate::index::Store;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which keys a query sees. Query i of `queries` stands at position `p = i + keys - queries`, so the last query stands at the
/// last key, as in decoding with a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttentionMask {
    /// Only keys `j <= p`.
    pub causal: bool,
    /// Only keys with `|p - j| < window`.
    pub window: Option<usize>,
}

impl AttentionMask {
    /// Every query sees every key.
    pub const FULL: Self = Self { causal: false, window: None };

    /// A query sees the keys up to its own position.
    pub const CAUSAL: Self = Self { causal: true, window: None };

    /// A query sees the `width` keys that end at its own position.
    #[must_use]
    pub const fn sliding_window(width: usize) -> Self {
        Self { causal: true, window: Some(width) }
    }

    /// How far a query sees back and ahead of its position; at most `most`.
    #[must_use]
    pub fn reach(self, most: usize) -> [usize; 2] {
        let window = self.window.map_or(most, |w| w.saturating_sub(1).min(most));
        [window, if self.causal { 0 } else { window }]
    }

    /// The keys that query `i` sees; they lie side by side.
    #[must_use]
    pub fn keys(self, i: usize, [queries, keys]: [usize; 2]) -> Range<usize> {
        let [back, ahead] = self.reach(queries + keys);
        let position = i + keys;
        let end = (position + ahead + 1).saturating_sub(queries).min(keys);
        position.saturating_sub(back + queries).min(end)..end
    }

    /// The queries that see key `j`; they lie side by side.
    #[must_use]
    pub fn queries(self, j: usize, [queries, keys]: [usize; 2]) -> Range<usize> {
        let [back, ahead] = self.reach(queries + keys);
        let position = j + queries;
        let end = (position + back + 1).saturating_sub(keys).min(queries);
        position.saturating_sub(ahead + keys).min(end)..end
    }
}

/// Which of the loops it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionVariant {
    /// Result and log-sum-exp.
    Forward,
    /// Gradient of the queries.
    GradQuery,
    /// Gradients of keys and values.
    GradKeyValue,
}

/// Extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttentionShape {
    /// Sequences.
    pub batch: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values: query head h uses head `h / (heads / kv_heads)`.
    pub kv_heads: usize,
    /// Queries of a sequence.
    pub queries: usize,
    /// Keys of a sequence.
    pub keys: usize,
    /// Elements of a head.
    pub width: usize,
}

impl AttentionShape {
    /// Query heads per head of keys and values.
    #[must_use]
    pub fn group(self) -> usize {
        self.heads / self.kv_heads.max(1)
    }

    /// Queries and keys.
    #[must_use]
    pub fn lengths(self) -> [usize; 2] {
        [self.queries, self.keys]
    }

    /// Extents of queries and what has their shape: `[batch, heads, queries, width]`.
    #[must_use]
    pub fn of_queries(self) -> Vec<usize> {
        vec![self.batch, self.heads, self.queries, self.width]
    }

    /// Extents of keys and values: `[batch, kv_heads, keys, width]`.
    #[must_use]
    pub fn of_keys(self) -> Vec<usize> {
        vec![self.batch, self.kv_heads, self.keys, self.width]
    }

    /// Extents of what every query has one of: `[batch, heads, queries]`.
    #[must_use]
    pub fn of_rows(self) -> Vec<usize> {
        vec![self.batch, self.heads, self.queries]
    }

    /// Extents of the scores: `[batch, heads, queries, keys]`.
    #[must_use]
    pub fn of_scores(self) -> Vec<usize> {
        vec![self.batch, self.heads, self.queries, self.keys]
    }
}

/// What the gradients take besides queries, keys and values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Saved {
    /// Gradient of the result, over the extents of queries.
    pub dy: Body,
    /// Log-sum-exp, over the extents of rows.
    pub lse: Body,
    /// `sum of dy y - dlse`, over the extents of rows.
    pub delta: Body,
}

/// One of the attention loops; every body has one `f32` output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attention {
    /// Which.
    pub variant: AttentionVariant,
    /// Extents.
    pub shape: AttentionShape,
    /// Factor of the products of queries and keys.
    pub scale: F32,
    /// Which keys a query sees.
    pub mask: AttentionMask,
    /// Queries.
    pub q: Body,
    /// Keys.
    pub k: Body,
    /// Values, over the extents of keys.
    pub v: Body,
    /// Added to the scores, over their extents.
    pub bias: Option<Body>,
    /// For the gradients.
    pub saved: Option<Saved>,
    /// Where each result goes, over the extents of [`Attention::domains`].
    pub stores: Vec<Store>,
}

impl Attention {
    /// Extents over which each result is stored.
    #[must_use]
    pub fn domains(&self) -> Vec<Vec<usize>> {
        match self.variant {
            AttentionVariant::Forward => vec![self.shape.of_queries(), self.shape.of_rows()],
            AttentionVariant::GradQuery => vec![self.shape.of_queries()],
            AttentionVariant::GradKeyValue => vec![self.shape.of_keys(), self.shape.of_keys()],
        }
    }

    /// All bodies, each with the extents of its axes: queries, keys, values, bias, gradient, log-sum-exp, delta.
    #[must_use]
    pub fn bodies(&self) -> Vec<(&Body, Vec<usize>)> {
        let s = self.shape;
        let mut all = vec![(&self.q, s.of_queries()), (&self.k, s.of_keys()), (&self.v, s.of_keys())];
        all.extend(self.bias.as_ref().map(|b| (b, s.of_scores())));
        if let Some(Saved { dy, lse, delta }) = &self.saved {
            all.extend([(dy, s.of_queries()), (lse, s.of_rows()), (delta, s.of_rows())]);
        }
        all
    }

    /// All bodies in the same order, mutably.
    pub fn bodies_mut(&mut self) -> Vec<&mut Body> {
        let mut all = vec![&mut self.q, &mut self.k, &mut self.v];
        all.extend(self.bias.as_mut());
        if let Some(Saved { dy, lse, delta }) = &mut self.saved {
            all.extend([dy, lse, delta]);
        }
        all
    }

    /// What is wrong with it besides its bodies and stores.
    pub(super) fn faults(&self) -> Vec<String> {
        let (s, mut faults) = (self.shape, Vec::new());
        if s.kv_heads == 0 || !s.heads.is_multiple_of(s.kv_heads) {
            faults.push(format!("{} heads of queries for {} of keys", s.heads, s.kv_heads));
        }
        if self.mask.window == Some(0) {
            faults.push("a window of 0 keys".into());
        }
        if self.saved.is_some() != (self.variant != AttentionVariant::Forward) {
            faults.push("gradients, and only they, take what the forward loop saved".into());
        }
        if self.stores.len() != self.domains().len() {
            faults.push(format!("{} stores for {} results", self.stores.len(), self.domains().len()));
        }
        for (i, (body, _)) in self.bodies().into_iter().enumerate() {
            let dtypes: Vec<_> = body.expr.outputs().iter().map(|o| body.expr.dtype(*o)).collect();
            if dtypes != [crate::types::DType::F32] {
                faults.push(format!("body {i} gives {dtypes:?} instead of one f32"));
            }
        }
        faults
    }
}

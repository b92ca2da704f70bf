//! The forward kernel on matrix units.
//!
//! Exponentials are taken less a *reference* of the row that need not be its maximum: only when a score is [`SLACK`] above it do the
//! rows of a strip take their maxima as new references and are the sums scaled anew. So weights are at most `2^SLACK`, which f16
//! holds with all its digits, and the sums, which are matrices, are seldom touched.

use super::super::Frame;
use super::super::tile::{Registers, Rows, Tile};
use super::{Own, StripSums, Strips};
use crate::KernelError;
use crate::families::contract::point;
use crate::families::contract::tiling::Units;
use crate::kir::{Expr, MATRIX, Scalar, Shared, Type, Var};
use griffinfly_ir::target::NumericClass;
use std::f32::consts::{LN_2, LOG2_E};

/// Bits of a NaN.
const NAN: u32 = 0x7fc0_0000;

/// How far above its reference a score (to the base 2) may be.
const SLACK: f32 = 10.0;

/// The running softmax of the invocation's row.
struct Softmax<'b> {
    /// A value of each invocation, for its neighbour.
    exchange: Shared<'b>,
    /// For each strip the tile that last had a score too large, counted from 1.
    flags: Shared<'b>,
    reference: Var<'b>,
    /// Of the invocation's columns.
    total: Var<'b>,
}

struct Block<'a, 'b> {
    queries: Own<'a, 'b>,
    others: [Tile<'a, 'b>; 2],
    next: [Registers<'b>; 2],
    strips: Strips<'b>,
    softmax: Softmax<'b>,
    sums: StripSums<'b>,
    start: Expr<'b>,
}

impl<'a, 'b> Frame<'a, 'b> {
    pub(in super::super) fn matrix_forward(&self) -> Result<(), KernelError> {
        let (b, g, views, class) = (self.b, self.geometry, self.views, NumericClass::F16);
        let factor = Some(self.a.scale.get() * LOG2_E);
        let strips = self.strips(class);
        let (places, halves) = (strips.places, strips.halves);
        let queries = self.rounded_tile((halves, places.own[0]), class, g.rows, (&views.q, factor));
        let tile =
            |i: usize, view| self.rounded_tile((halves, places.others[i]), class, g.columns, (view, None));
        let others = [tile(0, &views.k), tile(1, &views.v)];
        let softmax = Softmax {
            exchange: b.shared("exchange", Type::F32, g.invocations()),
            flags: b.shared("flags", Type::U32, g.flag_count()),
            reference: b.var("reference", f32::MIN),
            total: b.var("total", 0.0_f32),
        };
        let rows = Rows { head: self.head, first: self.first, end: self.queries };
        let (start, end) = self.seen();
        b.if_(b.local_index().lt(g.rows / MATRIX), || softmax.flags.store(b.local_index(), 0_u32));
        let tiles = [start, start + g.columns].map(|first| self.keys_from(first));
        let ([queries], next) = self.prepare([(queries, rows)], others, tiles)?;
        let block = Block { queries, others, next, strips, softmax, sums: self.strip_sums(), start };
        let mut outcome = Ok(());
        b.for_("from", (start, end), g.columns, |from| outcome = self.matrix_keys(&block, from));
        outcome?;
        let factor = self.finish_row(&block.softmax, rows)?;
        let sums = self.strip_registers(strips, block.sums);
        self.store((0, rows), &sums, &[factor])
    }

    /// Takes in one tile of keys and values.
    fn matrix_keys(&self, block: &Block<'a, 'b>, from: Expr<'b>) -> Result<(), KernelError> {
        let (b, step, s) = (self.b, self.geometry.columns, &block.softmax);
        let products = self.strip_products(block.strips, &block.queries, block.others[0]);
        let scores = self.strip_scores(&products, from)?;
        let most = scores.iter().copied().reduce(|x, y| x.native_max(y)).unwrap_or(s.reference.get());
        let is_over =
            self.any(s.flags, (from - block.start) / step + 1, (most - s.reference.get()).gt(SLACK));
        let body = || {
            let neighbour = self.neighbour(s.exchange, most);
            let old = s.reference.get();
            let reference = old.native_max(most).native_max(neighbour);
            let factor = (old - reference).native_exp2();
            s.reference.set(reference);
            s.total.set(s.total.get() * factor);
            b.if_uniform(from.differs(block.start), || self.rescale(block.strips, &block.sums, factor));
        };
        match self.units {
            Units::Matrix(_) => b.if_subgroup_uniform(is_over, body),
            Units::Plain => b.if_uniform(is_over, body),
        }
        let weights: Vec<Expr<'b>> =
            scores.iter().map(|score| (*score - s.reference.get()).native_exp2()).collect();
        s.total.set(weights.iter().fold(s.total.get(), |sum, weight| sum + *weight));
        let quads: Vec<Expr<'b>> = weights.chunks(4).map(|quad| b.vector(quad)).collect();
        self.put_strip_weights(block.strips, &quads);
        self.wait();
        self.weigh_strip(block.strips, &block.sums, block.others[1]);
        b.barrier();
        let following = [from + step, from + 2 * step].map(|first| self.keys_from(first));
        self.refill(block.others, &block.next, following)
    }

    /// Scores of the invocation's row and columns, -inf where a pair does not exist or is not seen.
    fn strip_scores(&self, products: &[Expr<'b>], from: Expr<'b>) -> Result<Vec<Expr<'b>>, KernelError> {
        let (g, query) = (self.geometry, self.first + self.place.0);
        let keys: Vec<Expr<'b>> = self.strip_columns().into_iter().map(|column| from + column).collect();
        let one = |(i, key): (usize, &Expr<'b>)| {
            // An operand beyond f16 must not pass for a key that is not seen.
            let product = products[i / 4].lane((i % 4) as u8);
            let is_over = product.equals(f32::NEG_INFINITY);
            let product = is_over.select(NAN, product.bitcast(Scalar::U32)).bitcast(Scalar::F32);
            self.score(product, self.head, (query, *key))
        };
        let scores = keys.iter().enumerate().map(one).collect::<Result<Vec<_>, KernelError>>()?;
        let exist = (from + g.columns).le(self.keys);
        let are_seen = self.all_seen((self.first, g.rows), (from, g.columns), exist);
        let sees = |i: usize| {
            let exists = keys[i].lt(self.keys);
            self.sees(query, keys[i]).map_or(exists, |sees| exists & sees)
        };
        Ok(self.masked(scores, are_seen, sees, f32::NEG_INFINITY))
    }

    /// Whether a condition holds for any invocation of the strip (of the workgroup, where there are no matrices), by a number that
    /// was not used before.
    fn any(&self, flags: Shared<'b>, number: Expr<'b>, condition: Expr<'b>) -> Expr<'b> {
        let slot = match self.units {
            Units::Matrix(_) => self.place.0 / MATRIX,
            Units::Plain => self.b.constant(0_u32),
        };
        self.b.if_(condition, || flags.store(slot, number));
        self.wait();
        flags.load(slot).equals(number)
    }

    /// The value of the other invocation of the row.
    fn neighbour(&self, exchange: Shared<'b>, value: Expr<'b>) -> Expr<'b> {
        let own = self.place.0 * 2 + self.place.1;
        exchange.store(own, value);
        self.wait();
        exchange.load(own ^ 1_u32)
    }

    /// Adds up the totals and writes the log-sum-exps; returns the factor of the row.
    fn finish_row(&self, s: &Softmax<'b>, rows: Rows<'b>) -> Result<Expr<'b>, KernelError> {
        let (b, view) = (self.b, &self.views.results[1].1);
        // The exchange may still be read for the last references.
        self.wait();
        let total = s.total.get() + self.neighbour(s.exchange, s.total.get());
        let at = rows.first + self.place.0;
        let mut outcome = Ok(());
        b.if_(at.lt(rows.end) & self.place.1.equals(0_u32), || {
            let lse = s.reference.get() * LN_2 + total.log();
            let axes = self.axes(view, rows.head, at);
            outcome = point::store(b, self.buffers, (view, None), &axes, &[lse]);
        });
        outcome?;
        // A row that sees nothing has sums of zero.
        Ok(1.0_f32 / total.equals(0.0_f32).select(1.0_f32, total))
    }
}

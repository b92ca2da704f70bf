//! Cross-entropy of logits with class ids.

use super::CrossEntropyGrad;
use crate::array::Array;
use crate::graph::{Graph, IdLimit, Value};
use crate::index::IndexExpr;
use crate::loops::{Body, Combine, Phase};
use crate::ops::indexing::{clamp, clamped};
use crate::ops::normalize::{Rows, row_of, row_statistics, shift, sum_of_exponentials, total};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// Per row: `loss = lse - x[id]` with `lse = m + log sum exp(x - m)`, m the row maximum; 0 where the id is `ignore`.
/// Inputs: logits `[.., C]`, ids i32 `[..]`. Results: loss `[..]`, lse `[..]`.
///
/// The loss is computed as `log sum exp(x - m) - (x[id] - m)`, so logits of 1e4 lose nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct CrossEntropy {
    pub(crate) ignore: Option<i32>,
}

/// Checks logits and ids; gives the number of classes.
pub(super) fn check(logits: &TensorType, ids: &TensorType) -> Result<usize, String> {
    need_dtype("the logits", logits, DType::F32)?;
    need_dtype("the ids", ids, DType::I32)?;
    match logits.dims.split_last() {
        Some((classes, rows)) if rows == ids.dims => Ok(*classes),
        _ => Err(format!("logits {logits} need one id per row, the ids are {ids}")),
    }
}

/// Which ids the rows may hold.
pub(super) fn limit(logits: &TensorType, ignore: Option<i32>) -> Option<IdLimit> {
    logits.dims.last().map(|&classes| IdLimit { limit: classes as i32, ignore })
}

/// Whether the column is the id of its row, in a body over `rows ++ [C]`; operand 1 holds the ids.
pub(super) fn is_target(body: &mut Body, io: &Signature<'_>, rows: &Rows) -> ScalarId {
    let id = body.load(1, &io.inputs[1], rows.statistic());
    let id = clamp(&mut body.expr, id, rows.cols.iter().product());
    let column = body.expr.index(IndexExpr::axis(rows.rows.len()));
    body.expr.binary(BinaryFn::Eq, column, id)
}

/// `value`, or 0 where the id of the row is ignored.
pub(super) fn unless_ignored(
    body: &mut Body,
    io: &Signature<'_>,
    rows: &Rows,
    ignore: Option<i32>,
    value: ScalarId,
) -> ScalarId {
    let Some(ignore) = ignore else { return value };
    let id = body.load(1, &io.inputs[1], rows.statistic());
    let (ignore, zero) = (body.expr.constant(Scalar::I32(ignore)), body.expr.f32(0.0));
    let ignored = body.expr.binary(BinaryFn::Eq, id, ignore);
    body.expr.select(ignored, zero, value)
}

impl Rule for CrossEntropy {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        check(&inputs[0], &inputs[1])?;
        let rows = TensorType::f32(inputs[1].dims.clone());
        Ok(vec![rows.clone(), rows])
    }

    /// [`CrossEntropyGrad`]; where the loss uses lse, `dx += dlse exp(x - lse)` in every row.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let [x, ids, lse] = [vjp.inputs[0], vjp.inputs[1], vjp.outputs[1]];
        let dy = vjp.grad();
        let op = CrossEntropyGrad { ignore: self.ignore };
        let mut dx = vjp.g.apply(Payload::CrossEntropyGrad(op), &[x, ids, lse, dy]);
        if let Some(u) = vjp.upstream[1] {
            let p = vjp.g.probabilities(x, lse);
            let u = vjp.g.per_row(u);
            let share = vjp.g.mul(u, p);
            dx = vjp.g.add(dx, share);
        }
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, ids) = (inputs[0], inputs[1]);
        let last = x.ty.rank() - 1;
        let row = |p: &[usize]| row_of(x, &[p, &[0]].concat(), last);
        let loss = Array::build(&outputs[0], |p| {
            let (row, id) = (row(p), ids.at(p).f64());
            let (m, sum) = row_statistics(row.iter().copied());
            let loss = sum.ln() - (row[clamped(id, row.len())] - m);
            R::of(if self.ignore.map(f64::from) == Some(id) { 0.0 } else { loss })
        });
        let lse = Array::build(&outputs[1], |p| {
            let (m, sum) = row_statistics(row(p).into_iter());
            R::of(m + sum.ln())
        });
        vec![loss, lse]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let rows = Rows::last(x);
        let mut first = Body::new();
        let v = first.load(0, x, rows.element());
        let mine = is_target(&mut first, io, &rows);
        let zero = first.expr.f32(0.0);
        let picked = first.expr.select(mine, v, zero);
        first.output(v);
        first.output(picked);
        let first = Phase { body: first, combines: vec![Combine::Max, Combine::Sum] };
        let phases = vec![first, sum_of_exponentials(x, &rows)];
        let mut body = Body::new();
        let e = &mut body.expr;
        let (m, target, sum) = (shift(e), e.carry(1, DType::F32), total(e, 2));
        let log = e.unary(UnaryFn::Log, sum);
        let below = e.sub(target, m);
        let (loss, lse) = (e.sub(log, below), e.add(m, log));
        let loss = unless_ignored(&mut body, io, &rows, self.ignore, loss);
        body.output(loss);
        body.output(lse);
        rows.lower(io, phases, [body, Body::new()])
    }

    fn id_limit(&self, input: usize, types: &[TensorType]) -> Option<IdLimit> {
        if input == 1 { limit(&types[0], self.ignore) } else { None }
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, ids) = (SampleInput::f32, SampleInput::ids);
        let s = |ignore| CrossEntropy { ignore };
        vec![
            (s(None), vec![f(&[1, 1]), ids(&[1], 1)]),
            (s(None), vec![f(&[7]), ids(&[], 7)]),
            (s(None), vec![f(&[5, 131]), ids(&[5], 131)]),
            (s(Some(2)), vec![f(&[3, 4, 5]), ids(&[3, 4], 5)]),
            (s(Some(-100)), vec![SampleInput::uniform(&[6, 3], -1e4, 1e4), ids(&[6], 3)]),
        ]
    }
}

impl Graph {
    /// `exp(x - lse)`.
    pub(super) fn probabilities(&mut self, x: Value, lse: Value) -> Value {
        let lse = self.per_row(lse);
        let d = self.sub(x, lse);
        self.exp(d)
    }

    /// Cross-entropy of every row of `logits [.., C]` with its class id: `[..]`; 0 where the id is `ignore`.
    #[track_caller]
    pub fn cross_entropy_rows(&mut self, logits: Value, ids: Value, ignore: Option<i32>) -> Value {
        self.apply(Payload::CrossEntropy(CrossEntropy { ignore }), &[logits, ids])
    }

    /// Mean over all rows of the cross-entropy of `logits [.., C]` with class ids i32 `[..]`: a scalar.
    #[track_caller]
    pub fn cross_entropy(&mut self, logits: Value, ids: Value) -> Value {
        let rows = self.cross_entropy_rows(logits, ids, None);
        self.mean_all(rows)
    }

    /// Mean of the cross-entropy over the rows whose id is not `ignore`, and the number of these rows (an `f32` scalar).
    /// With none left the loss is 0, its gradients are 0, and the count is 0.
    #[track_caller]
    pub fn cross_entropy_ignoring(&mut self, logits: Value, ids: Value, ignore: i32) -> (Value, Value) {
        let rows = self.cross_entropy_rows(logits, ids, Some(ignore));
        if rows.is_poison() {
            return (rows, rows);
        }
        let word = std::sync::Arc::from([ignore as u32]);
        let ignored = self.constant_words(word, TensorType::new(DType::I32, []));
        let counts = self.not_equal(ids, ignored);
        let (one, zero) = (self.scalar(1.0), self.scalar(0.0));
        let ones = self.select(counts, one, zero);
        let axes: Vec<isize> = (0..self.dims(rows).len() as isize).collect();
        let sum = |g: &mut Graph, v: Value| if axes.is_empty() { v } else { g.sum(v, &axes) };
        let (total, count) = (sum(self, rows), sum(self, ones));
        let divisor = self.maximum(count, one);
        (self.div(total, divisor), count)
    }
}

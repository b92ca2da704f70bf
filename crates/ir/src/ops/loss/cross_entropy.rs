//! Cross-entropy of logits with class ids.

use super::CrossEntropyGrad;
use crate::array::Array;
use crate::attr::F32;
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

/// Per row: `loss = lse - (1 - s) x[id] - s average(x)` with `lse = m + log sum exp(x - m)`, m the row maximum, s the
/// smoothing of the labels (Szegedy et al. 2016); 0 where the id is `ignore`.
/// Inputs: logits `[.., C]`, ids i32 `[..]`. Results: loss `[..]`, lse `[..]`.
///
/// The loss is computed from differences `x - m`, so logits of 1e4 lose nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct CrossEntropy {
    pub(crate) ignore: Option<i32>,
    pub(crate) smoothing: F32,
}

/// Checks the smoothing of labels.
pub(super) fn check_smoothing(smoothing: F32) -> Result<(), String> {
    let s = smoothing.get();
    if (0.0..=1.0).contains(&s) {
        Ok(())
    } else {
        Err(format!("label smoothing must be in 0..=1, it is {s}"))
    }
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
        check_smoothing(self.smoothing)?;
        let rows = TensorType::f32(inputs[1].dims.clone());
        Ok(vec![rows.clone(), rows])
    }

    /// [`CrossEntropyGrad`]; where the loss uses lse, `dx += dlse exp(x - lse)` in every row.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let [x, ids, lse] = [vjp.inputs[0], vjp.inputs[1], vjp.outputs[1]];
        let dy = vjp.grad();
        let op = CrossEntropyGrad { ignore: self.ignore, smoothing: self.smoothing };
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
            let s = f64::from(self.smoothing.get());
            let mut loss = sum.ln() - (1.0 - s) * (row[clamped(id, row.len())] - m);
            if s > 0.0 {
                loss -= s * row.iter().map(|x| x - m).sum::<f64>() / row.len() as f64;
            }
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
        let mut second = sum_of_exponentials(x, &rows);
        let smoothing = self.smoothing.get();
        if smoothing > 0.0 {
            let v = second.body.load(0, x, rows.element());
            let m = shift(&mut second.body.expr);
            let below = second.body.expr.sub(v, m);
            second.body.output(below);
            second.combines.push(Combine::Sum);
        }
        let phases = vec![first, second];
        let mut body = Body::new();
        let e = &mut body.expr;
        let (m, target, sum) = (shift(e), e.carry(1, DType::F32), total(e, 2));
        let log = e.unary(UnaryFn::Log, sum);
        let below = e.sub(target, m);
        let lse = e.add(m, log);
        let loss = if smoothing > 0.0 {
            let (keep, share) = (e.f32(1.0 - smoothing), e.f32(smoothing / x.dims[x.rank() - 1] as f32));
            let all = e.carry(3, DType::F32);
            let (own, rest) = (e.mul(keep, below), e.mul(share, all));
            let gain = e.add(own, rest);
            e.sub(log, gain)
        } else {
            e.sub(log, below)
        };
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
        let s = |ignore| CrossEntropy { ignore, smoothing: 0.0.into() };
        let smooth = |ignore, smoothing: f32| CrossEntropy { ignore, smoothing: smoothing.into() };
        vec![
            (s(None), vec![f(&[1, 1]), ids(&[1], 1)]),
            (s(None), vec![f(&[7]), ids(&[], 7)]),
            (s(None), vec![f(&[5, 131]), ids(&[5], 131)]),
            (s(Some(2)), vec![f(&[3, 4, 5]), ids(&[3, 4], 5)]),
            (s(Some(-100)), vec![SampleInput::uniform(&[6, 3], -1e4, 1e4), ids(&[6], 3)]),
            (smooth(None, 0.1), vec![f(&[5, 131]), ids(&[5], 131)]),
            (smooth(Some(1), 1.0), vec![f(&[2, 3, 5]), ids(&[2, 3], 5)]),
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
}

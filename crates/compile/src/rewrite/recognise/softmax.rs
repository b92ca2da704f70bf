//! Softmax and log-softmax written out.

use crate::rewrite::Site;
use crate::rewrite::pattern::{Kind, inputs, log_of_row, row_reduction, shifted_by_maximum, unary, view};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};

rules! {
    "softmax": "exp(x - max x) / sum exp(x - max x) = softmax x, with or without the maximum", Before, Real, softmax, |g| {
        let x = g.input("x", [2, 5, 3]);
        let d = less_maximum(g, x);
        let e = g.exp(d);
        let sum = g.sum_keep(e, &[1]);
        g.div(e, sum)
    };
    "log-of-softmax": "log softmax x = log_softmax x", Before, Real, log_of_softmax, |g| {
        let x = g.input("x", [2, 5, 3]);
        let y = g.softmax(x, 1);
        g.log(y)
    };
    "log-softmax": "(x - max x) - log sum exp(x - max x) = log_softmax x, with or without the maximum", Before, Real, log_softmax, |g| {
        let x = g.input("x", [2, 5, 3]);
        let d = less_maximum(g, x);
        let e = g.exp(d);
        let sum = g.sum(e, &[1]);
        let log = g.log(sum);
        let log = g.insert_axes(log, &[1]);
        g.sub(d, log)
    };
}

fn less_maximum(g: &mut Graph, x: Value) -> Value {
    let m = g.max(x, &[1]);
    let m = g.insert_axes(m, &[1]);
    g.sub(x, m)
}

/// The only reduced axis.
fn only(axes: &[usize]) -> Option<usize> {
    if let [axis] = axes { Some(*axis) } else { None }
}

/// A row of all -inf gives zeros, where the written-out form gives NaN.
fn softmax(s: &mut Site<'_>) -> Option<Value> {
    let [e, sum] = s.binary(BinaryFn::Div)?;
    let r = row_reduction(s.g, sum).filter(|r| r.kind == Kind::Sum && r.x == e)?;
    let (d, axis) = (unary(s.g, UnaryFn::Exp, e)?, only(&r.axes)?);
    let x = shifted_by_maximum(s.g, d, axis).unwrap_or(d);
    Some(s.g.softmax(x, axis as isize))
}

fn log_of_softmax(s: &mut Site<'_>) -> Option<Value> {
    let y = *s.inputs.first().filter(|_| s.view() == RuleView::Unary(UnaryFn::Log))?;
    let RuleView::Softmax { axis } = view(s.g, y) else { return None };
    let x = inputs(s.g, y)[0];
    Some(s.g.log_softmax(x, axis as isize))
}

fn log_softmax(s: &mut Site<'_>) -> Option<Value> {
    let [d, log] = s.binary(BinaryFn::Sub)?;
    let r = log_of_row(s.g, log).filter(|r| r.kind == Kind::Sum)?;
    let (exponent, axis) = (unary(s.g, UnaryFn::Exp, r.x)?, only(&r.axes)?);
    let x = shifted_by_maximum(s.g, d, axis).unwrap_or(d);
    (exponent == d).then(|| s.g.log_softmax(x, axis as isize))
}

//! What rules look for below a value of the new graph.

use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::{BinaryFn, Scalar, UnaryFn};

/// The inputs of the node behind a value.
pub(super) fn inputs(g: &Graph, v: Value) -> &[Value] {
    g.node(v.node()).inputs()
}

/// The operation behind a value.
pub(super) fn view(g: &Graph, v: Value) -> RuleView<'_> {
    g.view(v.node())
}

/// The operand, if the value is this function of it.
pub(super) fn unary(g: &Graph, f: UnaryFn, v: Value) -> Option<Value> {
    if view(g, v) == RuleView::Unary(f) { inputs(g, v).first().copied() } else { None }
}

/// The operand, if the value is its negation.
pub(super) fn negated(g: &Graph, v: Value) -> Option<Value> {
    unary(g, UnaryFn::Neg, v)
}

/// The operands, if the value is this function of them.
pub(super) fn binary(g: &Graph, f: BinaryFn, v: Value) -> Option<[Value; 2]> {
    match (view(g, v), inputs(g, v)) {
        (RuleView::Binary(own), [a, b]) if own == f => Some([*a, *b]),
        _ => None,
    }
}

/// The operands in both orders, if the value is this (commutative) function of them; none otherwise.
pub(super) fn commuted(g: &Graph, f: BinaryFn, v: Value) -> Vec<[Value; 2]> {
    binary(g, f, v).map_or(Vec::new(), |[a, b]| vec![[a, b], [b, a]])
}

/// The float every element is.
pub(super) fn number(g: &Graph, v: Value) -> Option<f32> {
    match g.as_splat(v)? {
        Scalar::F32(bits) => Some(f32::from_bits(bits)),
        _ => None,
    }
}

/// Whether every element is this small integer, in the value's dtype.
pub(super) fn is_integer(g: &Graph, v: Value, n: i32) -> bool {
    match g.as_splat(v) {
        Some(Scalar::F32(bits)) => bits == (n as f32).to_bits(),
        Some(Scalar::I32(x)) => x == n,
        Some(Scalar::U32(x)) => i64::from(x) == i64::from(n),
        _ => false,
    }
}

/// What a value is squared, if it is a square.
pub(super) fn squared(g: &Graph, v: Value) -> Option<Value> {
    match (binary(g, BinaryFn::Mul, v), binary(g, BinaryFn::Pow, v)) {
        (Some([a, b]), _) if a == b => Some(a),
        (_, Some([a, two])) if is_integer(g, two, 2) => Some(a),
        _ => None,
    }
}

/// A reduction whose axes stay with extent 1, so that it broadcasts along them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reduction {
    pub(super) kind: Kind,
    /// What is reduced.
    pub(super) x: Value,
    pub(super) axes: Vec<usize>,
}

/// How values are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sum,
    Mean,
    Max,
}

/// The reduction behind a value, kept axes or not, first result only.
fn reduction(g: &Graph, v: Value) -> Option<(Reduction, bool)> {
    let (kind, axes, keep) = match view(g, v) {
        RuleView::Sum { axes, keep, mean: false } => (Kind::Sum, axes, keep),
        RuleView::Sum { axes, keep, mean: true } => (Kind::Mean, axes, keep),
        RuleView::Extremum { axes, keep, max: true } if v.result() == 0 => (Kind::Max, axes, keep),
        _ => return None,
    };
    Some((Reduction { kind, x: *inputs(g, v).first()?, axes: axes.to_vec() }, keep))
}

/// Whether a value has the dimensions of `x` with these axes reduced to 1.
fn is_kept(g: &Graph, v: Value, x: Value, axes: &[usize]) -> bool {
    let one = |(i, d): (usize, &usize)| if axes.contains(&i) { 1 } else { *d };
    let kept: Vec<usize> = g.dims(x).iter().enumerate().map(one).collect();
    g.dims(v) == kept
}

/// The value below anything that only makes it broadcast, and stops of gradients where `stops` allows them.
fn below_views(g: &Graph, v: Value, stops: bool) -> Value {
    let mut v = v;
    loop {
        let through = match view(g, v) {
            RuleView::Reshape | RuleView::Expand(_) => true,
            RuleView::StopGradient => stops,
            _ => false,
        };
        match inputs(g, v).first() {
            Some(x) if through => v = *x,
            _ => return v,
        }
    }
}

/// The reduction that a value repeats along the reduced axes: a reduction with kept axes, or one without behind a reshape,
/// perhaps repeated. A maximum may have its gradient stopped: none passes in the patterns that look for it.
pub(super) fn row_reduction(g: &Graph, v: Value) -> Option<Reduction> {
    through_row(g, v, |_, v| Some(v))
}

/// As [`row_reduction`] with the logarithm of the reduction instead of it.
pub(super) fn log_of_row(g: &Graph, v: Value) -> Option<Reduction> {
    through_row(g, v, |g, v| Some(below_views(g, unary(g, UnaryFn::Log, v)?, false)))
}

fn through_row(g: &Graph, v: Value, under: fn(&Graph, Value) -> Option<Value>) -> Option<Reduction> {
    let unrepeated = match view(g, v) {
        RuleView::Expand(_) => *inputs(g, v).first()?,
        _ => v,
    };
    let (r, _) = reduction(g, under(g, below_views(g, v, true))?)?;
    let plain = r.kind == Kind::Max || below_views(g, v, true) == below_views(g, v, false);
    (plain && is_kept(g, unrepeated, r.x, &r.axes)).then_some(r)
}

/// `x`, if the value is `x - max x` along one axis.
pub(super) fn shifted_by_maximum(g: &Graph, v: Value, axis: usize) -> Option<Value> {
    let [x, m] = binary(g, BinaryFn::Sub, v)?;
    let r = row_reduction(g, m)?;
    (r.kind == Kind::Max && r.x == x && r.axes == [axis]).then_some(x)
}

/// `x`, if the value is `x - mean x` along the last axis.
pub(super) fn centred(g: &Graph, v: Value) -> Option<Value> {
    let [x, m] = binary(g, BinaryFn::Sub, v)?;
    let r = row_reduction(g, m)?;
    (r.kind == Kind::Mean && r.x == x && is_last(g, &r)).then_some(x)
}

/// Whether a reduction is over the last axis alone.
pub(super) fn is_last(g: &Graph, r: &Reduction) -> bool {
    r.axes.len() == 1 && r.axes[0] + 1 == g.dims(r.x).len()
}

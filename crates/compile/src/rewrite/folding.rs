//! Folding: what is known at compile time is computed at compile time.
//!
//! Results are those of the loop interpreter, in `f32` as a device computes them (sums in one fixed order among the many a
//! device may use). Constants of one number stay one number, whatever their dimensions: lowering writes them into the code.

use super::Site;
use super::pattern::{number, view};
use griffinfly_ir::graph::{ConstantData, Graph, Leaf, LeafKind, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::Scalar;
use griffinfly_ir::types::TensorType;
use std::borrow::Cow;

/// Most elements of a folded result; its operands together have at most four times as many.
const MOST_ELEMENTS: usize = 4096;

rules! {
    "fold-splats": "an elementwise operation of constants of one number is such a constant", After, Real, fold_splats, |g| {
        let x = g.input("x", [3, 4]);
        let (a, b) = (g.splat(2.0, [3, 1]), g.splat(0.5, [4]));
        let k = g.pow(a, b);
        g.mul(x, k)
    };
    "view-of-splat": "a view of a constant of one number is such a constant", After, Bits, view_of_splat, |g| {
        let (x, k) = (g.input("x", [3, 4]), g.splat(0.25, [1, 1]));
        let k = g.expand(k, &[(0, 3), (1, 4)]);
        g.add(x, k)
    };
    "sum-of-splat": "the mean of equal numbers, and a sum of integers below 2^24", After, Real, sum_of_splat, |g| {
        let (x, k) = (g.input("x", [3]), g.splat(2.0, [3, 7]));
        let k = g.sum(k, &[1]);
        g.add(x, k)
    };
    "equal-words": "a constant of equal words is a constant of one number", After, Bits, equal_words, |g| {
        let (x, k) = (g.input("x", [2, 3]), g.constant(&[0.5; 3], [3]));
        g.mul(x, k)
    };
    "fold-constants": "an operation of small constants is a constant", After, Real, fold_constants, |g| {
        let (x, k) = (g.input("x", [3]), g.constant(&[1.0, -2.0, 4.0, 8.0, 0.5, 3.0], [3, 2]));
        let k = g.slice(k, 1, 1, None);
        let k = g.drop_axes(k, &[1]);
        g.mul(x, k)
    };
}

/// A constant with every element this scalar.
fn splat(g: &mut Graph, dims: &[usize], k: Scalar) -> Value {
    let kind = LeafKind::Constant(ConstantData::Splat(k));
    g.add_leaf("", kind, TensorType::new(k.dtype(), dims))
}

/// The scalars of all operands, if each is a constant of one number.
fn splats(s: &Site<'_>) -> Option<Vec<Scalar>> {
    let all: Option<Vec<Scalar>> = s.inputs.iter().map(|v| s.g.as_splat(*v)).collect();
    all.filter(|k| !k.is_empty())
}

fn fold_splats(s: &mut Site<'_>) -> Option<Value> {
    let elementwise = matches!(
        s.view(),
        RuleView::Unary(_)
            | RuleView::Relu
            | RuleView::Silu
            | RuleView::Binary(_)
            | RuleView::Select
            | RuleView::StopGradient
    );
    let known = splats(s).filter(|_| elementwise)?;
    let words: Vec<u32> = known.iter().map(|k| k.bits()).collect();
    let operands: Vec<(TensorType, &[u32])> =
        known.iter().zip(words.chunks(1)).map(|(k, w)| (TensorType::new(k.dtype(), Vec::new()), w)).collect();
    let results = s.old.node(s.id).op().evaluate(&operands)?;
    let (ty, word) = (results.first()?.0.dtype, *results.first()?.1.first()?);
    Some(splat(s.g, s.dims(), Scalar::from_bits(ty, word)))
}

fn view_of_splat(s: &mut Site<'_>) -> Option<Value> {
    let known = splats(s)?;
    let (first, equal) = (known[0], known.iter().all(|k| *k == known[0]));
    let same = match s.view() {
        RuleView::Reshape | RuleView::Permute(_) | RuleView::Expand(_) | RuleView::Slice { .. } => true,
        RuleView::Concat { .. } => equal,
        RuleView::Pad { value, .. } => first == Scalar::f32(value),
        _ => false,
    };
    same.then(|| splat(s.g, s.dims(), first))
}

fn sum_of_splat(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Sum { axes, mean, .. }, [x]) = (s.view(), s.inputs) else { return None };
    let k = number(s.g, *x)?;
    let count: usize = axes.iter().map(|&a| s.g.dims(*x)[a]).product();
    let total = f64::from(k) * count as f64;
    let exact = k.fract() == 0.0 && total.abs() <= f64::from(1 << 24);
    let value = if mean && k.is_finite() { k } else { total as f32 };
    (mean || exact).then(|| splat(s.g, s.dims(), Scalar::f32(value)))
}

fn equal_words(s: &mut Site<'_>) -> Option<Value> {
    let RuleView::Leaf(Leaf { kind: LeafKind::Constant(ConstantData::Words(words)), ty, .. }) = s.view()
    else {
        return None;
    };
    let first = *words.first()?;
    let equal = words.iter().all(|w| *w == first);
    equal.then(|| splat(s.g, s.dims(), Scalar::from_bits(ty.dtype, first)))
}

/// The words of a constant.
fn words(g: &Graph, v: Value) -> Option<Cow<'_, [u32]>> {
    match view(g, v) {
        RuleView::Leaf(Leaf { kind: LeafKind::Constant(ConstantData::Words(w)), .. }) => {
            Some(Cow::Borrowed(w))
        }
        RuleView::Leaf(Leaf { kind: LeafKind::Constant(ConstantData::Splat(k)), ty, .. }) => {
            Some(Cow::Owned(vec![k.bits(); ty.elements()]))
        }
        _ => None,
    }
}

fn fold_constants(s: &mut Site<'_>) -> Option<Value> {
    let elements = |v: &Value| s.g.ty(*v).map_or(usize::MAX, TensorType::elements);
    let read = s.inputs.iter().map(elements).fold(0, usize::saturating_add);
    let written = s.old.node(s.id).types()[0].elements();
    if s.inputs.is_empty() || read > 4 * MOST_ELEMENTS || written > MOST_ELEMENTS {
        return None;
    }
    let known: Option<Vec<(TensorType, Cow<'_, [u32]>)>> =
        s.inputs.iter().map(|v| Some((s.g.ty(*v)?.clone(), words(s.g, *v)?))).collect();
    let known = known?;
    let operands: Vec<(TensorType, &[u32])> = known.iter().map(|(t, w)| (t.clone(), w.as_ref())).collect();
    let (ty, result) = s.old.node(s.id).op().evaluate(&operands)?.into_iter().next()?;
    Some(s.g.constant_words(result.into(), ty))
}

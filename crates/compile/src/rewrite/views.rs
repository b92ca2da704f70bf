//! Views: operations that move elements, alone, composed, and next to reductions and products.

use super::Site;
use super::pattern::{inputs, view};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::types::DType;

rules! {
    "identity-view": "a view with the dimensions and order of its operand is its operand", After, Bits, identity, |g| {
        let x = input(g);
        g.slice(x, 1, 0, None)
    };
    "permute-twice": "permute_p(permute_q(x)) = permute_{q[p]}(x)", After, Bits, permute_twice, |g| {
        let x = input(g);
        let y = g.permute(x, &[1, 2, 0]);
        g.permute(y, &[0, 2, 1])
    };
    "reshape-back": "a reshape to the dimensions before the last reshape undoes both", After, Bits, reshape_back, |g| {
        let x = input(g);
        let flat = g.flatten(x, 0);
        g.split_axis(flat, 0, &[2, 3, 4])
    };
    "expand-twice": "expand_a(expand_b(x)) = expand_ab(x)", After, Bits, expand_twice, |g| {
        let x = g.input("x", [1, 3, 1]);
        let y = g.expand(x, &[(0, 5)]);
        g.expand(y, &[(2, 4)])
    };
    "slice-of-concat": "a slice that is one operand of a concatenation is that operand", After, Bits, slice_of_concat, |g| {
        let (x, z) = (input(g), g.input("z", [2, 5, 4]));
        let both = g.concat(&[x, z], 1);
        g.slice(both, 1, 3, Some(8))
    };
    "slice-of-pad": "a slice that takes off the padding undoes it", After, Bits, slice_of_pad, |g| {
        let x = input(g);
        let padded = g.pad(x, 1, [2, 1], 0.5);
        g.slice(padded, 1, 2, Some(-1))
    };
    "reduce-one": "the sum or mean over axes of extent 1 is its operand", After, Real, reduce_one, |g| {
        let x = g.input("x", [3, 1, 4]);
        g.sum(x, &[1])
    };
    "reduce-repeats": "the sum of n repeats is n x, their mean is x", After, Real, reduce_repeats, |g| {
        let x = g.input("x", [1, 4, 1]);
        let y = g.expand(x, &[(0, 3), (2, 5)]);
        g.sum(y, &[0])
    };
    "matmul-of-transpose": "a^T b = matmul with the flag for a flipped, and the same for b", After, Bits, matmul_of_transpose, |g| {
        let (x, z) = (input(g), g.input("z", [5, 4]));
        let t = g.transpose(z);
        g.matmul(x, t)
    };
}

fn input(g: &mut Graph) -> Value {
    g.input("x", [2, 3, 4])
}

/// The only operand.
fn operand(s: &Site<'_>) -> Option<Value> {
    match s.inputs {
        [x] => Some(*x),
        _ => None,
    }
}

fn identity(s: &mut Site<'_>) -> Option<Value> {
    let x = operand(s)?;
    let same = match s.view() {
        RuleView::Permute(order) => order.iter().enumerate().all(|(i, o)| i == *o),
        RuleView::Reshape
        | RuleView::Expand(_)
        | RuleView::Slice { .. }
        | RuleView::Pad { .. }
        | RuleView::Concat { .. } => s.g.dims(x) == s.dims(),
        _ => false,
    };
    same.then_some(x)
}

fn permute_twice(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Permute(outer), y) = (s.view(), operand(s)?) else { return None };
    let RuleView::Permute(inner) = view(s.g, y) else { return None };
    let order: Vec<usize> = outer.iter().map(|&o| inner[o]).collect();
    let x = inputs(s.g, y)[0];
    Some(s.g.permute(x, &order))
}

fn reshape_back(s: &mut Site<'_>) -> Option<Value> {
    let y = operand(s).filter(|_| s.view() == RuleView::Reshape)?;
    let x = *inputs(s.g, y).first().filter(|_| view(s.g, y) == RuleView::Reshape)?;
    (s.g.dims(x) == s.dims()).then_some(x)
}

fn expand_twice(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Expand(_), y) = (s.view(), operand(s)?) else { return None };
    let RuleView::Expand(_) = view(s.g, y) else { return None };
    let x = inputs(s.g, y)[0];
    s.fit(x)
}

fn slice_of_concat(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Slice { axis, start, step: 1 }, y) = (s.view(), operand(s)?) else { return None };
    let RuleView::Concat { axis: joined } = view(s.g, y) else { return None };
    let mut at = 0;
    for x in inputs(s.g, y) {
        if joined == axis && at == start && s.g.dims(*x) == s.dims() {
            return Some(*x);
        }
        at += s.g.dims(*x)[joined];
    }
    None
}

fn slice_of_pad(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Slice { axis, start, step: 1 }, y) = (s.view(), operand(s)?) else { return None };
    let RuleView::Pad { axis: padded, spread: [before, _, 0], .. } = view(s.g, y) else { return None };
    let x = inputs(s.g, y)[0];
    (padded == axis && before == start && s.g.dims(x) == s.dims()).then_some(x)
}

/// `x`, with these axes of extent 1 dropped unless they are kept.
fn reduced(s: &mut Site<'_>, x: Value, axes: &[usize], keep: bool) -> Value {
    if keep { x } else { s.g.drop_axes(x, axes) }
}

/// The sign of a zero may change: the operation does not say what its sum starts from.
fn reduce_one(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Sum { axes, keep, .. }, x) = (s.view(), operand(s)?) else { return None };
    let single = axes.iter().all(|&a| s.g.dims(x)[a] == 1);
    single.then(|| reduced(s, x, axes, keep))
}

/// One rounding instead of n.
fn reduce_repeats(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Sum { axes, keep, mean }, y) = (s.view(), operand(s)?) else { return None };
    let RuleView::Expand(_) = view(s.g, y) else { return None };
    let x = inputs(s.g, y)[0];
    let (from, to) = (s.g.dims(x).to_vec(), s.g.dims(y).to_vec());
    if axes.iter().any(|&a| from[a] != 1) || s.g.ty(x).is_none_or(|t| t.dtype != DType::F32) {
        return None;
    }
    let others: Vec<(usize, usize)> =
        (0..to.len()).filter(|a| from[*a] != to[*a] && !axes.contains(a)).map(|a| (a, to[a])).collect();
    let count: usize = axes.iter().map(|&a| to[a]).product();
    let scaled = if mean { x } else { s.g.scale(x, count as f32) };
    let spread = if others.is_empty() { scaled } else { s.g.expand(scaled, &others) };
    Some(reduced(s, spread, axes, keep))
}

fn matmul_of_transpose(s: &mut Site<'_>) -> Option<Value> {
    let (RuleView::Matmul { mut transpose }, [a, b]) = (s.view(), s.inputs) else { return None };
    let mut operands = [*a, *b];
    for (v, t) in operands.iter_mut().zip(&mut transpose) {
        if let Some(x) = transposed(s.g, *v) {
            (*v, *t) = (x, !*t);
        }
    }
    (operands != [*a, *b]).then(|| s.g.matmul_with(operands[0], operands[1], transpose))
}

/// What has its last two axes swapped in this value.
fn transposed(g: &Graph, v: Value) -> Option<Value> {
    let RuleView::Permute(order) = view(g, v) else { return None };
    let n = order.len().checked_sub(2)?;
    let swaps = order[..n].iter().enumerate().all(|(i, o)| i == *o) && order[n..] == [n + 1, n];
    swaps.then(|| inputs(g, v)[0])
}

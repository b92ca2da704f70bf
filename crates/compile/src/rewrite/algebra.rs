//! Algebra of elementwise operations that holds for floats as they are: with signed zeros, infinities and NaN.

use super::Site;
use super::pattern::{is_integer, negated, number, unary, view};
use griffinfly_ir::graph::{ConstantData, Graph, LeafKind, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::{BinaryFn, Scalar, UnaryFn};
use griffinfly_ir::types::{DType, TensorType};

rules! {
    "multiply-by-one": "x 1 = x", Always, Bits, multiply_by_one, |g| {
        let (x, one) = (input(g), g.splat(1.0, [2, 3, 4]));
        g.mul(one, x)
    };
    "divide-by-one": "x / 1 = x", Always, Bits, divide_by_one, |g| {
        let (x, one) = (input(g), g.scalar(1.0));
        g.div(x, one)
    };
    "subtract-zero": "x - 0 = x", Always, Bits, subtract_zero, |g| {
        let (x, zero) = (input(g), g.scalar(0.0));
        g.sub(x, zero)
    };
    "add-negative-zero": "x + -0 = x, and x + 0 = x for integers", Always, Bits, add_zero, |g| {
        let (x, zero) = (input(g), g.scalar(-0.0));
        g.add(zero, x)
    };
    "negate-twice": "-(-x) = x", Always, Bits, negate_twice, |g| {
        let x = input(g);
        let n = g.neg(x);
        g.neg(n)
    };
    "add-negation": "a + (-b) = a - b", Always, Bits, add_negation, |g| {
        let (a, b) = (input(g), row(g));
        let n = g.neg(a);
        g.add(n, b)
    };
    "subtract-negation": "a - (-b) = a + b", Always, Bits, subtract_negation, |g| {
        let (a, b) = (input(g), row(g));
        let n = g.neg(b);
        g.sub(a, n)
    };
    "product-of-negations": "(-a) (-b) = a b, (-a) / (-b) = a / b", Always, Bits, product_of_negations, |g| {
        let (a, b) = (input(g), row(g));
        let (m, n) = (g.neg(a), g.neg(b));
        g.div(m, n)
    };
    "multiply-by-minus-one": "x (-1) = -x", Always, Bits, multiply_by_minus_one, |g| {
        let x = input(g);
        g.scale(x, -1.0)
    };
    "divide-by-power-of-two": "x / 2^k = x 2^-k", After, Bits, divide_by_power_of_two, |g| {
        let (x, k) = (input(g), g.scalar(8.0));
        g.div(x, k)
    };
    "small-powers": "x^1 = x, x^2 = x x", Always, Real, small_powers, |g| {
        let (x, two) = (input(g), g.scalar(2.0));
        g.pow(x, two)
    };
    "reciprocal-root": "1 / sqrt x = rsqrt x", Always, Real, reciprocal_root, |g| {
        let (x, one) = (input(g), g.scalar(1.0));
        let xx = g.mul(x, x);
        let root = g.sqrt(xx);
        g.div(one, root)
    };
    "equal-choices": "max(x, x) = min(x, x) = x, also for and, or", Always, Bits, equal_choices, |g| {
        let x = input(g);
        g.maximum(x, x)
    };
    "select-of-equals": "if c { a } else { a } = a", Always, Bits, select_of_equals, |g| {
        let (x, y) = (input(g), row(g));
        let c = g.lt(x, y);
        g.select(c, y, y)
    };
    "select-by-not": "if !c { a } else { b } = if c { b } else { a }", Always, Bits, select_by_not, |g| {
        let (x, y) = (input(g), row(g));
        let c = g.lt(x, y);
        let not = g.not(c);
        g.select(not, x, y)
    };
    "select-by-constant": "if true { a } else { b } = a", After, Bits, select_by_constant, |g| {
        let kind = LeafKind::Constant(ConstantData::Splat(Scalar::Bool(false)));
        let c = g.add_leaf("", kind, TensorType::new(DType::Bool, []));
        let (x, y) = (input(g), row(g));
        g.select(c, x, y)
    };
    "not-twice": "!(!c) = c", Always, Bits, not_twice, |g| {
        let (x, y) = (input(g), row(g));
        let c = g.lt(x, y);
        let n = g.not(c);
        g.not(n)
    };
    "relu-of-no-negative": "relu x = x where x is a relu, exp, sigmoid or |..|", Always, Bits, relu_of_no_negative, |g| {
        let x = input(g);
        let r = g.relu(x);
        g.relu(r)
    };
    "absolute-of-even": "| -x | = | |x| | = |x|", Always, Bits, absolute_of_even, |g| {
        let x = input(g);
        let n = g.neg(x);
        g.abs(n)
    };
    "maximum-with-zero": "max(x, 0) = relu x", After, Real, maximum_with_zero, |g| {
        let (x, zero) = (input(g), g.scalar(0.0));
        g.maximum(x, zero)
    };
    "stop-of-no-gradient": "stop_gradient x = x", After, Bits, stop_of_no_gradient, |g| {
        let x = input(g);
        g.stop_gradient(x)
    };
}

fn input(g: &mut Graph) -> Value {
    g.input("x", [3, 4])
}

fn row(g: &mut Graph) -> Value {
    g.input("row", [4])
}

/// The first operand of a two-operand node whose second is this constant.
fn with_second(s: &Site<'_>, f: BinaryFn, n: i32) -> Option<Value> {
    s.binary(f).filter(|[_, b]| is_integer(s.g, *b, n)).map(|[a, _]| a)
}

fn multiply_by_one(s: &mut Site<'_>) -> Option<Value> {
    let [x, _] = s.commuted(BinaryFn::Mul).into_iter().find(|[_, one]| is_integer(s.g, *one, 1))?;
    s.fit(x)
}

fn divide_by_one(s: &mut Site<'_>) -> Option<Value> {
    let x = with_second(s, BinaryFn::Div, 1)?;
    s.fit(x)
}

fn subtract_zero(s: &mut Site<'_>) -> Option<Value> {
    let x = with_second(s, BinaryFn::Sub, 0)?;
    s.fit(x)
}

fn add_zero(s: &mut Site<'_>) -> Option<Value> {
    let neutral = |v: Value| match s.g.as_splat(v) {
        Some(Scalar::F32(bits)) => bits == (-0.0f32).to_bits(),
        other => other.is_some_and(|k| k.bits() == 0),
    };
    let [x, _] = s.commuted(BinaryFn::Add).into_iter().find(|[_, zero]| neutral(*zero))?;
    s.fit(x)
}

/// The operand, if the node is this function of one operand.
fn operand(s: &Site<'_>, f: UnaryFn) -> Option<Value> {
    if s.view() == RuleView::Unary(f) { s.inputs.first().copied() } else { None }
}

fn negate_twice(s: &mut Site<'_>) -> Option<Value> {
    negated(s.g, operand(s, UnaryFn::Neg)?)
}

fn add_negation(s: &mut Site<'_>) -> Option<Value> {
    let found = s.commuted(BinaryFn::Add).into_iter().find_map(|[a, b]| Some((a, negated(s.g, b)?)));
    found.map(|(a, b)| s.g.sub(a, b))
}

fn subtract_negation(s: &mut Site<'_>) -> Option<Value> {
    let [a, b] = s.binary(BinaryFn::Sub)?;
    let b = negated(s.g, b)?;
    Some(s.g.add(a, b))
}

fn product_of_negations(s: &mut Site<'_>) -> Option<Value> {
    let product = s.binary(BinaryFn::Mul);
    let [a, b] = product.or_else(|| s.binary(BinaryFn::Div))?;
    let (a, b) = (negated(s.g, a)?, negated(s.g, b)?);
    Some(if product.is_some() { s.g.mul(a, b) } else { s.g.div(a, b) })
}

fn multiply_by_minus_one(s: &mut Site<'_>) -> Option<Value> {
    let [x, _] = s.commuted(BinaryFn::Mul).into_iter().find(|[_, k]| number(s.g, *k) == Some(-1.0))?;
    let n = s.g.neg(x);
    s.fit(n)
}

/// Both sides round the same real number. The reciprocal must be a normal number, on devices without subnormal ones too.
fn divide_by_power_of_two(s: &mut Site<'_>) -> Option<Value> {
    let [x, k] = s.binary(BinaryFn::Div)?;
    let reciprocal = 1.0 / number(s.g, k)?;
    let mantissa = reciprocal.to_bits() & 0x007f_ffff;
    if mantissa != 0 || !reciprocal.is_normal() || 1.0 / reciprocal != number(s.g, k)? {
        return None;
    }
    let dims = s.g.dims(k).to_vec();
    let reciprocal = s.g.splat(reciprocal, dims);
    Some(s.g.mul(x, reciprocal))
}

fn small_powers(s: &mut Site<'_>) -> Option<Value> {
    if let Some(x) = with_second(s, BinaryFn::Pow, 1) {
        return s.fit(x);
    }
    let x = with_second(s, BinaryFn::Pow, 2)?;
    let xx = s.g.mul(x, x);
    s.fit(xx)
}

fn reciprocal_root(s: &mut Site<'_>) -> Option<Value> {
    let [one, root] = s.binary(BinaryFn::Div)?;
    let x = unary(s.g, UnaryFn::Sqrt, root).filter(|_| is_integer(s.g, one, 1))?;
    let r = s.g.rsqrt(x);
    s.fit(r)
}

fn equal_choices(s: &mut Site<'_>) -> Option<Value> {
    let all = [BinaryFn::Max, BinaryFn::Min, BinaryFn::And, BinaryFn::Or];
    all.into_iter().find_map(|f| s.binary(f)).filter(|[a, b]| a == b).map(|[a, _]| a)
}

/// Condition and choices of a select.
fn choices(s: &Site<'_>) -> Option<[Value; 3]> {
    match (s.view(), s.inputs) {
        (RuleView::Select, [c, a, b]) => Some([*c, *a, *b]),
        _ => None,
    }
}

fn select_of_equals(s: &mut Site<'_>) -> Option<Value> {
    let [_, a, _] = choices(s).filter(|[_, a, b]| a == b)?;
    s.fit(a)
}

fn select_by_not(s: &mut Site<'_>) -> Option<Value> {
    let [c, a, b] = choices(s)?;
    let c = unary(s.g, UnaryFn::Not, c)?;
    Some(s.g.select(c, b, a))
}

fn select_by_constant(s: &mut Site<'_>) -> Option<Value> {
    let [c, a, b] = choices(s)?;
    match s.g.as_splat(c) {
        Some(Scalar::Bool(c)) => s.fit(if c { a } else { b }),
        _ => None,
    }
}

fn not_twice(s: &mut Site<'_>) -> Option<Value> {
    unary(s.g, UnaryFn::Not, operand(s, UnaryFn::Not)?)
}

/// The derivative of relu at 0 is 0: so is that of each of these functions where it is 0, or it is nowhere 0.
fn relu_of_no_negative(s: &mut Site<'_>) -> Option<Value> {
    let x = *s.inputs.first().filter(|_| s.view() == RuleView::Relu)?;
    let positive = [UnaryFn::Exp, UnaryFn::Sigmoid, UnaryFn::Abs].map(RuleView::Unary);
    (view(s.g, x) == RuleView::Relu || positive.contains(&view(s.g, x))).then_some(x)
}

fn absolute_of_even(s: &mut Site<'_>) -> Option<Value> {
    let x = operand(s, UnaryFn::Abs)?;
    if unary(s.g, UnaryFn::Abs, x).is_some() {
        return Some(x);
    }
    let x = negated(s.g, x)?;
    Some(s.g.abs(x))
}

/// A gradient of a tie goes to the first operand of max and nowhere in relu, so this waits for the second stage.
fn maximum_with_zero(s: &mut Site<'_>) -> Option<Value> {
    let [x, _] = s.commuted(BinaryFn::Max).into_iter().find(|[_, zero]| number(s.g, *zero) == Some(0.0))?;
    let r = s.g.relu(x);
    s.fit(r)
}

fn stop_of_no_gradient(s: &mut Site<'_>) -> Option<Value> {
    s.inputs.first().copied().filter(|_| s.view() == RuleView::StopGradient)
}

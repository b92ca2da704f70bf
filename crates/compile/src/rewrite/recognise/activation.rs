//! Activations written out.

use super::polynomial::{Polynomial, arithmetic_below};
use crate::rewrite::Site;
use crate::rewrite::pattern::{commuted, is_integer, negated, unary};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};

rules! {
    "sigmoid": "1 / (1 + exp(-x)) = sigmoid x", Before, Real, sigmoid, |g| {
        let (x, one) = (g.input("x", [3, 4]), g.scalar(1.0));
        let d = denominator(g, x);
        g.div(one, d)
    };
    "silu": "x sigmoid x = x / (1 + exp(-x)) = silu x", Before, Real, silu, |g| {
        let x = g.input("x", [3, 4]);
        let y = g.sigmoid(x);
        g.mul(y, x)
    };
    "relu": "max(0, x) = relu x", Before, Real, relu, |g| {
        let (x, zero) = (g.input("x", [3, 4]), g.scalar(0.0));
        g.maximum(zero, x)
    };
    "gelu": "x (1 + erf(x / sqrt 2)) / 2 = gelu x, in any form of the polynomial", Before, Real, gelu_erf, |g| {
        let x = g.input("x", [3, 4]);
        let (root, one) = (g.scalar(std::f32::consts::SQRT_2), g.scalar(1.0));
        let z = g.div(x, root);
        let e = g.erf(z);
        let e = g.add(e, one);
        let y = g.mul(x, e);
        g.scale(y, 0.5)
    };
    "gelu-tanh": "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 = gelu_tanh x, in any form of the polynomial", Before, Real, gelu_tanh, |g| {
        let (x, three) = (g.input("x", [3, 4]), g.scalar(3.0));
        let cube = g.pow(x, three);
        let cube = g.scale(cube, 0.044_715);
        let z = g.add(x, cube);
        let z = g.scale(z, 0.797_884_6);
        let (t, half) = (g.tanh(z), g.scale(x, 0.5));
        let product = g.mul(half, t);
        g.add(half, product)
    };
}

fn denominator(g: &mut Graph, x: Value) -> Value {
    let (n, one) = (g.neg(x), g.scalar(1.0));
    let e = g.exp(n);
    g.add(one, e)
}

/// `x`, if the value is `1 + exp(-x)`.
fn one_plus_exp(g: &Graph, v: Value) -> Option<Value> {
    let found = commuted(g, BinaryFn::Add, v).into_iter().find(|[one, _]| is_integer(g, *one, 1))?;
    negated(g, unary(g, UnaryFn::Exp, found[1])?)
}

fn sigmoid(s: &mut Site<'_>) -> Option<Value> {
    let [one, d] = s.binary(BinaryFn::Div)?;
    let x = one_plus_exp(s.g, d).filter(|_| is_integer(s.g, one, 1))?;
    let y = s.g.sigmoid(x);
    s.fit(y)
}

fn silu(s: &mut Site<'_>) -> Option<Value> {
    let mut products = s.commuted(BinaryFn::Mul).into_iter();
    let product = products.find(|[x, y]| unary(s.g, UnaryFn::Sigmoid, *y) == Some(*x));
    let quotient = || s.binary(BinaryFn::Div).filter(|[x, d]| one_plus_exp(s.g, *d) == Some(*x));
    let [x, _] = product.or_else(quotient)?;
    Some(s.g.silu(x))
}

/// With zero first: a tie sends its gradient to the first operand of max, and nowhere in relu.
fn relu(s: &mut Site<'_>) -> Option<Value> {
    let [_, x] = s.binary(BinaryFn::Max).filter(|[zero, _]| is_integer(s.g, *zero, 0))?;
    let y = s.g.relu(x);
    s.fit(y)
}

const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

fn gelu_erf(s: &mut Site<'_>) -> Option<Value> {
    let inner = Polynomial::of_x([0.0, std::f64::consts::FRAC_1_SQRT_2, 0.0, 0.0]);
    let x = gelu_operand(s, UnaryFn::Erf, &inner)?;
    Some(s.g.gelu(x))
}

fn gelu_tanh(s: &mut Site<'_>) -> Option<Value> {
    let inner = Polynomial::of_x([0.0, SQRT_2_OVER_PI, 0.0, 0.044_715 * SQRT_2_OVER_PI]);
    let x = gelu_operand(s, UnaryFn::Tanh, &inner)?;
    Some(s.g.gelu_tanh(x))
}

/// `x`, if the node is `x / 2 + x t / 2` with `t = curve(inner(x))`.
fn gelu_operand(s: &Site<'_>, curve: UnaryFn, inner: &Polynomial) -> Option<Value> {
    let root = Polynomial::operation(s.view())?;
    let below: Vec<Value> = s.inputs.iter().flat_map(|v| arithmetic_below(s.g, *v)).collect();
    let (t, argument) = below.iter().find_map(|t| Some((*t, unary(s.g, curve, *t)?)))?;
    let outer = Polynomial::x_and_xt(0.5, 0.5);
    arithmetic_below(s.g, argument).into_iter().find(|&x| {
        s.g.dims(x) == s.dims()
            && Polynomial::of(s.g, argument, [x, t]).is_some_and(|p| p.is_close(inner))
            && Polynomial::of_inputs(s.g, root, s.inputs, [x, t]).is_some_and(|p| p.is_close(&outer))
    })
}

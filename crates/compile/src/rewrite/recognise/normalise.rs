//! Layer norm and RMS norm written out.

use crate::rewrite::Site;
use crate::rewrite::pattern::{
    Kind, binary, centred, commuted, inputs, is_last, number, row_reduction, squared, unary, view,
};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};

rules! {
    "rms-norm": "x / sqrt(mean x^2 + eps) gamma = rms_norm(x, gamma), factors in any order", Before, Real, rms_norm, |g| {
        let (x, gamma) = (g.input("x", [2, 3, 8]), g.input("gamma", [8]));
        let xx = g.mul(x, x);
        let mean = g.mean_keep(xx, &[-1]);
        let eps = g.scalar(1e-5);
        let shifted = g.add(eps, mean);
        let r = g.rsqrt(shifted);
        let normal = g.mul(x, r);
        g.mul(gamma, normal)
    };
    "layer-norm": "rms_norm(x - mean x, gamma) + beta = layer_norm(x, gamma, beta)", Before, Real, layer_norm, |g| {
        let (x, gamma, beta) = (g.input("x", [2, 3, 8]), g.input("gamma", [8]), g.input("beta", [8]));
        let mean = g.mean(x, &[-1]);
        let mean = g.insert_axes(mean, &[2]);
        let d = g.sub(x, mean);
        let y = g.rms_norm(d, gamma, 1e-5);
        g.add(y, beta)
    };
}

/// A factor of a product.
#[derive(Clone, Copy)]
enum Factor {
    Value(Value),
    /// `1 / sqrt` of the value.
    InverseRoot(Value),
}

fn factor(g: &Graph, v: Value) -> Factor {
    unary(g, UnaryFn::Rsqrt, v).map_or(Factor::Value(v), Factor::InverseRoot)
}

/// The two factors of a product or of a quotient by a root, in both orders.
fn factors(g: &Graph, product: Option<[Value; 2]>, quotient: Option<[Value; 2]>) -> Vec<[Factor; 2]> {
    let pair = match (product, quotient) {
        (Some([a, b]), _) => Some([factor(g, a), factor(g, b)]),
        (_, Some([a, b])) => unary(g, UnaryFn::Sqrt, b).map(|x| [Factor::Value(a), Factor::InverseRoot(x)]),
        _ => None,
    };
    pair.map_or(Vec::new(), |[a, b]| vec![[a, b], [b, a]])
}

fn factors_of(g: &Graph, v: Value) -> Vec<[Factor; 2]> {
    factors(g, binary(g, BinaryFn::Mul, v), binary(g, BinaryFn::Div, v))
}

/// All readings of a node as `a b / sqrt(c)`.
fn readings(s: &Site<'_>) -> Vec<[Value; 3]> {
    let mut out = Vec::new();
    for outer in factors(s.g, s.binary(BinaryFn::Mul), s.binary(BinaryFn::Div)) {
        match outer {
            [Factor::InverseRoot(c), Factor::Value(ab)] => {
                out.extend(commuted(s.g, BinaryFn::Mul, ab).iter().map(|[a, b]| [*a, *b, c]));
            }
            [Factor::Value(a), Factor::Value(rest)] => {
                for inner in factors_of(s.g, rest) {
                    if let [Factor::Value(b), Factor::InverseRoot(c)] = inner {
                        out.extend([[a, b, c], [b, a, c]]);
                    }
                }
            }
            _ => {}
        }
    }
    out
}

/// `eps`, if the value is the mean square of `x` over its last axis plus `eps`.
fn mean_square_plus(g: &Graph, v: Value, x: Value) -> Option<f32> {
    commuted(g, BinaryFn::Add, v).into_iter().find_map(|[mean, eps]| {
        let eps = number(g, eps).filter(|e| *e >= 0.0 && e.is_finite())?;
        let r = row_reduction(g, mean).filter(|r| r.kind == Kind::Mean && is_last(g, r))?;
        (squared(g, r.x) == Some(x)).then_some(eps)
    })
}

/// Whether a value has one element per element of the last of these dimensions.
fn is_weight(g: &Graph, v: Value, dims: &[usize]) -> bool {
    dims.last().is_some_and(|&n| g.dims(v) == [n])
}

fn rms_norm(s: &mut Site<'_>) -> Option<Value> {
    let dims = s.dims();
    let found = readings(s).into_iter().find_map(|[x, gamma, c]| {
        let fits = s.g.dims(x) == dims && is_weight(s.g, gamma, dims);
        Some((x, gamma, mean_square_plus(s.g, c, x).filter(|_| fits)?))
    });
    let (x, gamma, eps) = found?;
    Some(s.g.rms_norm(x, gamma, eps))
}

fn layer_norm(s: &mut Site<'_>) -> Option<Value> {
    let dims = s.dims();
    let found = s.commuted(BinaryFn::Add).into_iter().find_map(|[y, beta]| {
        let RuleView::RmsNorm { eps } = view(s.g, y) else { return None };
        let [d, gamma] = [0, 1].map(|i| inputs(s.g, y)[i]);
        let x = centred(s.g, d)?;
        let fits = y.result() == 0 && s.g.dims(x) == dims && is_weight(s.g, beta, dims);
        fits.then_some((x, gamma, beta, eps))
    });
    let (x, gamma, beta, eps) = found?;
    Some(s.g.layer_norm(x, gamma, beta, eps))
}

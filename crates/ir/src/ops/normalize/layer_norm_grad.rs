//! The gradient of layer normalisation with respect to its operand.

use super::{Rows, leading, need_f32, row_of};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::ScalarId;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// With `n = (x - mean) rstd` and `h = dy gamma`: `dx = rstd (h - average(h) - n average(h n))` over the last axis.
/// Inputs: x `[.., C]`, mean `[..]`, rstd `[..]`, gamma `[C]`, dy `[.., C]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LayerNormGrad {}

/// `n` and `h` at one element, and `rstd` of its row.
fn element(body: &mut Body, io: &Signature<'_>, rows: &Rows) -> [ScalarId; 3] {
    let x = body.load(0, &io.inputs[0], rows.element());
    let [mean, rstd] = [1, 2].map(|i| body.load(i, &io.inputs[i], rows.statistic()));
    let gamma = body.load(3, &io.inputs[3], rows.weight());
    let dy = body.load(4, &io.inputs[4], rows.element());
    let centred = body.expr.sub(x, mean);
    let normal = body.expr.mul(centred, rstd);
    [normal, body.expr.mul(dy, gamma), rstd]
}

/// The same in primitive operations, from which second derivatives are made.
fn composed(g: &mut Graph, v: &[Value]) -> Vec<Value> {
    let (mean, rstd) = (g.per_row(v[1]), g.per_row(v[2]));
    let centred = g.sub(v[0], mean);
    let normal = g.mul(centred, rstd);
    let h = g.mul(v[4], v[3]);
    let hn = g.mul(h, normal);
    let (a, b) = (g.mean_keep(h, &[-1]), g.mean_keep(hn, &[-1]));
    let nb = g.mul(normal, b);
    let d = g.sub(h, a);
    let d = g.sub(d, nb);
    vec![g.mul(rstd, d)]
}

impl Rule for LayerNormGrad {
    fn arity(&self) -> Option<usize> {
        Some(5)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        let Some(&n) = x.dims.last() else {
            return Err("a scalar has no axis to normalise".into());
        };
        need_f32("the operand", x, &x.dims)?;
        need_f32("mean", &inputs[1], leading(x))?;
        need_f32("rstd", &inputs[2], leading(x))?;
        need_f32("gamma", &inputs[3], &[n])?;
        need_f32("the gradient", &inputs[4], &x.dims)?;
        Ok(vec![x.clone()])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        vjp.through(composed)
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let last = inputs[0].ty.rank() - 1;
        vec![Array::build(&outputs[0], |p| {
            let at = |i: usize, q: &[usize]| inputs[i].at(q).f64();
            let (mean, rstd) = (at(1, &p[..last]), at(2, &p[..last]));
            let (xs, ds) = (row_of(inputs[0], p, last), row_of(inputs[4], p, last));
            let n: Vec<f64> = xs.iter().map(|x| (x - mean) * rstd).collect();
            let h: Vec<f64> = ds.iter().zip(&inputs[3].data).map(|(d, g)| d * g.f64()).collect();
            let count = h.len() as f64;
            let a = h.iter().sum::<f64>() / count;
            let b = h.iter().zip(&n).map(|(h, n)| h * n).sum::<f64>() / count;
            R::of(rstd * (h[p[last]] - a - n[p[last]] * b))
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rows = Rows::last(&io.inputs[0]);
        let n: usize = rows.cols.iter().product();
        let mut sums = Body::new();
        let [normal, h, _] = element(&mut sums, io, &rows);
        let hn = sums.expr.mul(h, normal);
        sums.output(h);
        sums.output(hn);
        let mut body = Body::new();
        let [normal, h, rstd] = element(&mut body, io, &rows);
        let e = &mut body.expr;
        let per = e.f32(1.0 / n as f32);
        let [a, b] = [0, 1].map(|k| {
            let sum = e.carry(k, DType::F32);
            e.mul(sum, per)
        });
        let nb = e.mul(normal, b);
        let d = e.sub(h, a);
        let d = e.sub(d, nb);
        let dx = e.mul(rstd, d);
        body.output(dx);
        let phases = vec![Phase { body: sums, combines: vec![Combine::Sum; 2] }];
        rows.lower(io, phases, [Body::new(), body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let s = |dims: &[usize]| {
            let (rows, n) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
            let inputs = vec![f(dims), f(rows), SampleInput::uniform(rows, 0.5, 2.0), f(&[n]), f(dims)];
            (LayerNormGrad {}, inputs)
        };
        vec![s(&[1]), s(&[5, 67]), s(&[2, 3, 8])]
    }
}

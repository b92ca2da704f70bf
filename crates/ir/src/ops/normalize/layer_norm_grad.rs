//! The gradient of layer normalisation with respect to its operand.

use super::{Rows, infer_norm_grad, leading, row_of};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::ScalarId;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// With `d = x - mean`, `n = (d - average(d)) rstd` and `h = dy gamma`: `dx = rstd (h - average(h) - n average(h n))` over
/// the last axis. Inputs: x `[.., C]`, mean `[..]`, rstd `[..]`, gamma `[C]`, dy `[.., C]`. Results: dx `[.., C]` and the
/// average of d `[..]`.
///
/// The average of d is what rounding took from the saved mean: of a row near 1e4 that is 5e-4 in f32, which a deviation of
/// 1 would show in the gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LayerNormGrad {}

/// `d` and `h` at one element, and `rstd` of its row.
fn element(body: &mut Body, io: &Signature<'_>, rows: &Rows) -> [ScalarId; 3] {
    let x = body.load(0, &io.inputs[0], rows.element());
    let [mean, rstd] = [1, 2].map(|i| body.load(i, &io.inputs[i], rows.statistic()));
    let gamma = body.load(3, &io.inputs[3], rows.weight());
    let dy = body.load(4, &io.inputs[4], rows.element());
    let centred = body.expr.sub(x, mean);
    [centred, body.expr.mul(dy, gamma), rstd]
}

/// Averages of `h`, `h d rstd` and `d`, from the carries.
fn averages(body: &mut Body, n: usize) -> [ScalarId; 3] {
    let per = body.expr.f32(1.0 / n as f32);
    [0, 1, 2].map(|k| {
        let sum = body.expr.carry(k, DType::F32);
        body.expr.mul(sum, per)
    })
}

/// The same in primitive operations, from which second derivatives are made.
fn composed(g: &mut Graph, v: &[Value]) -> Vec<Value> {
    let (mean, rstd) = (g.per_row(v[1]), g.per_row(v[2]));
    let deviation = g.sub(v[0], mean);
    let offset = g.mean(deviation, &[-1]);
    let kept = g.per_row(offset);
    let centred = g.sub(deviation, kept);
    let normal = g.mul(centred, rstd);
    let h = g.mul(v[4], v[3]);
    let hn = g.mul(h, normal);
    let (a, b) = (g.mean_keep(h, &[-1]), g.mean_keep(hn, &[-1]));
    let nb = g.mul(normal, b);
    let d = g.sub(h, a);
    let d = g.sub(d, nb);
    vec![g.mul(rstd, d), offset]
}

impl Rule for LayerNormGrad {
    fn arity(&self) -> Option<usize> {
        Some(5)
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let mut results = infer_norm_grad(inputs, &["mean", "rstd"])?;
        results.push(TensorType::f32(leading(&inputs[0])));
        Ok(results)
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        vjp.through(composed)
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let last = inputs[0].ty.rank() - 1;
        let average = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let deviations = |p: &[usize]| {
            let mean = inputs[1].at(&p[..last]).f64();
            row_of(inputs[0], p, last).into_iter().map(|x| x - mean).collect::<Vec<f64>>()
        };
        let dx = Array::build(&outputs[0], |p| {
            let rstd = inputs[2].at(&p[..last]).f64();
            let d = deviations(p);
            let offset = average(&d);
            let n: Vec<f64> = d.iter().map(|d| (d - offset) * rstd).collect();
            let dy = row_of(inputs[4], p, last);
            let h: Vec<f64> = dy.iter().zip(&inputs[3].data).map(|(d, g)| d * g.f64()).collect();
            let hn: Vec<f64> = h.iter().zip(&n).map(|(h, n)| h * n).collect();
            R::of(rstd * (h[p[last]] - average(&h) - n[p[last]] * average(&hn)))
        });
        let offset = Array::build(&outputs[1], |p| R::of(average(&deviations(&[p, &[0]].concat()))));
        vec![dx, offset]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rows = Rows::last(&io.inputs[0]);
        let n: usize = rows.cols.iter().product();
        let mut sums = Body::new();
        let [d, h, rstd] = element(&mut sums, io, &rows);
        let normal = sums.expr.mul(d, rstd);
        let hn = sums.expr.mul(h, normal);
        [h, hn, d].into_iter().for_each(|output| sums.output(output));
        let mut row_body = Body::new();
        let [_, _, offset] = averages(&mut row_body, n);
        row_body.output(offset);
        let mut body = Body::new();
        let [d, h, rstd] = element(&mut body, io, &rows);
        let [a, b, offset] = averages(&mut body, n);
        let e = &mut body.expr;
        let centred = e.sub(d, offset);
        let normal = e.mul(centred, rstd);
        // The phase knew no offset: average(h n) is less by average(h) times the offset's share.
        let shift = e.mul(offset, rstd);
        let excess = e.mul(shift, a);
        let b = e.sub(b, excess);
        let nb = e.mul(normal, b);
        let d = e.sub(h, a);
        let d = e.sub(d, nb);
        let dx = e.mul(rstd, d);
        body.output(dx);
        let phases = vec![Phase { body: sums, combines: vec![Combine::Sum; 3] }];
        rows.lower(io, phases, [row_body, body])
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

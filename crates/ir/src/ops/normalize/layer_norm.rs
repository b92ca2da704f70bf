//! Layer normalisation over the last axis (Ba, Kiros and Hinton 2016), with weight and bias.

use super::{LayerNormGrad, Rows, check_norm, leading, row_of};
use crate::array::Array;
use crate::attr::F32;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, ScalarExpr, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = (x - mean) rstd gamma + beta` over the last axis, `rstd = 1 / sqrt(variance + eps)` with the biased variance.
/// Inputs: x `[.., C]`, gamma `[C]`, beta `[C]`. Results: y `[.., C]`, mean `[..]`, rstd `[..]`.
///
/// Mean and variance come from the corrected two-pass algorithm (Chan, Golub and LeVeque 1983): the second pass also sums
/// the deviations, whose mean is the rounding error of the first. A row of 1e4 plus tiny differences loses nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LayerNorm {
    pub(crate) eps: F32,
}

/// First estimate of the mean, its error (the mean deviation from it) and `rstd`, from the carries.
fn statistics(e: &mut ScalarExpr, n: usize, eps: f32) -> [ScalarId; 3] {
    let per = e.f32(1.0 / n as f32);
    let [estimate, error, square] = [0, 1, 2].map(|k| {
        let sum = e.carry(k, DType::F32);
        e.mul(sum, per)
    });
    let (ee, zero, eps) = (e.mul(error, error), e.f32(0.0), e.f32(eps));
    let variance = e.sub(square, ee);
    let variance = e.binary(BinaryFn::Max, variance, zero);
    let shifted = e.add(variance, eps);
    let rstd = e.unary(UnaryFn::Rsqrt, shifted);
    [estimate, error, rstd]
}

fn phases(x: &TensorType, rows: &Rows, n: usize) -> Vec<Phase> {
    let mut body = Body::new();
    let v = body.load(0, x, rows.element());
    let e = &mut body.expr;
    let (sum, per) = (e.carry(0, DType::F32), e.f32(1.0 / n as f32));
    let estimate = e.mul(sum, per);
    let d = e.sub(v, estimate);
    let dd = e.mul(d, d);
    body.output(d);
    body.output(dd);
    let first = Phase { body: Body::of_load(0, x, rows.element()), combines: vec![Combine::Sum] };
    vec![first, Phase { body, combines: vec![Combine::Sum; 2] }]
}

/// `d - average(d)` with `d = x - mean`; the average is given where it is known.
fn centred(g: &mut Graph, [x, mean]: [Value; 2], offset: Option<Value>) -> Value {
    let mean = g.per_row(mean);
    let deviation = g.sub(x, mean);
    let offset = match offset {
        Some(offset) => g.per_row(offset),
        None => g.mean_keep(deviation, &[-1]),
    };
    g.sub(deviation, offset)
}

impl Rule for LayerNorm {
    fn arity(&self) -> Option<usize> {
        Some(3)
    }

    fn results(&self) -> usize {
        3
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        check_norm(&inputs[0], &[("gamma", &inputs[1]), ("beta", &inputs[2])], self.eps)?;
        let rows = TensorType::f32(leading(&inputs[0]));
        Ok(vec![inputs[0].clone(), rows.clone(), rows])
    }

    /// `dx` as [`LayerNormGrad`], `dgamma = sum over rows of dy c rstd`, `dbeta = sum over rows of dy`; where the loss uses
    /// the statistics, `dx += dmean / n - drstd rstd^3 c / n`. Here `c = d - average(d)` with `d = x - mean`: the saved mean
    /// is rounded.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let [x, gamma, mean, rstd] = [vjp.inputs[0], vjp.inputs[1], vjp.outputs[1], vjp.outputs[2]];
        let dy = vjp.grad();
        let mut offset = None;
        if vjp.wants(0) {
            let op = Payload::LayerNormGrad(LayerNormGrad {});
            let results = vjp.g.apply_all(op, &[x, mean, rstd, gamma, dy]);
            let mut dx = results[0];
            offset = Some(results[1]);
            let per = 1.0 / vjp.g.dims(gamma)[0] as f32;
            if let Some(u) = vjp.upstream[1] {
                let share = vjp.g.scale(u, per);
                let share = vjp.g.per_row(share);
                dx = vjp.g.add(dx, share);
            }
            if let Some(u) = vjp.upstream[2] {
                let c = centred(vjp.g, [x, mean], offset);
                let share = vjp.g.rstd_share(u, rstd, per);
                let share = vjp.g.mul(c, share);
                dx = vjp.g.add(dx, share);
            }
            vjp.set(0, dx);
        }
        if vjp.wants(1) {
            let (c, r) = (centred(vjp.g, [x, mean], offset), vjp.g.per_row(rstd));
            let normal = vjp.g.mul(c, r);
            let d = vjp.g.mul(dy, normal);
            vjp.set_unbroadcast(1, d);
        }
        if vjp.wants(2) {
            vjp.set_unbroadcast(2, dy);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, last) = (inputs[0], inputs[0].ty.rank() - 1);
        let statistics = |p: &[usize]| {
            let row = row_of(x, &[p, &[0]].concat(), last);
            let n = row.len() as f64;
            let mean = row.iter().sum::<f64>() / n;
            let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
            (mean, 1.0 / (variance + f64::from(self.eps.get())).sqrt())
        };
        let mean = Array::build(&outputs[1], |p| R::of(statistics(p).0));
        let rstd = Array::build(&outputs[2], |p| R::of(statistics(p).1));
        let y = Array::build(&outputs[0], |p| {
            let (m, r) = statistics(&p[..last]);
            let (gamma, beta) = (inputs[1].at(&p[last..]).f64(), inputs[2].at(&p[last..]).f64());
            R::of((x.at(p).f64() - m) * r * gamma + beta)
        });
        vec![y, mean, rstd]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, rows) = (&io.inputs[0], Rows::last(&io.inputs[0]));
        let n: usize = rows.cols.iter().product();
        let phases = phases(x, &rows, n);
        let mut row_body = Body::new();
        let [estimate, error, rstd] = statistics(&mut row_body.expr, n, self.eps.get());
        let mean = row_body.expr.add(estimate, error);
        row_body.output(mean);
        row_body.output(rstd);
        let mut body = Body::new();
        let v = body.load(0, x, rows.element());
        let [gamma, beta] = [1, 2].map(|i| body.load(i, &io.inputs[i], rows.weight()));
        let e = &mut body.expr;
        let [estimate, error, rstd] = statistics(e, n, self.eps.get());
        let d = e.sub(v, estimate);
        let d = e.sub(d, error);
        let normal = e.mul(d, rstd);
        let scaled = e.mul(normal, gamma);
        let y = e.add(scaled, beta);
        body.output(y);
        rows.lower(io, phases, [row_body, body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let s = |eps: f32| LayerNorm { eps: eps.into() };
        vec![
            (s(1e-5), vec![f(&[1]), f(&[1]), f(&[1])]),
            (s(1e-5), vec![f(&[5, 67]), f(&[67]), f(&[67])]),
            (s(1e-3), vec![f(&[2, 3, 8]), f(&[8]), f(&[8])]),
            (s(1e-5), vec![SampleInput::uniform(&[2, 33], 9999.0, 10001.0), f(&[33]), f(&[33])]),
        ]
    }
}

impl Graph {
    /// What a gradient u of `rstd` adds per unit of a row's deviation: `-u rstd^3 / n`, shaped to broadcast along the row.
    pub(super) fn rstd_share(&mut self, u: Value, rstd: Value, per: f32) -> Value {
        let squared = self.mul(rstd, rstd);
        let cubed = self.mul(squared, rstd);
        let product = self.mul(u, cubed);
        let scaled = self.scale(product, -per);
        self.per_row(scaled)
    }

    /// Layer norm of `x [.., C]` over its last axis with `gamma [C]` and `beta [C]`; biased variance, as everywhere.
    #[track_caller]
    pub fn layer_norm(&mut self, x: Value, gamma: Value, beta: Value, eps: f32) -> Value {
        self.apply(Payload::LayerNorm(LayerNorm { eps: eps.into() }), &[x, gamma, beta])
    }
}

//! Layer, group and batch normalisation: the same formula over other rows.

use super::{Frame, NormGrad, Rows, Split, check_norm};
use crate::array::{Array, each_point};
use crate::attr::F32;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, ScalarExpr, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = (x - mean) rstd gamma + beta` with mean and biased variance of each row, `rstd = 1 / sqrt(variance + eps)`.
/// Inputs: x, gamma, beta, the last two with one element per weight. Results: y like x; mean and rstd, and for batch norm
/// the unbiased variance, with one element per row.
///
/// Mean and variance come from the corrected two-pass algorithm (Chan, Golub and LeVeque 1983): the second pass also sums
/// the deviations, whose mean is the rounding error of the first. A row of 1e4 plus tiny differences loses nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Norm<S> {
    pub(crate) eps: F32,
    #[serde(flatten)]
    pub(crate) split: S,
}

/// First estimate of the mean, its error (the mean deviation from it), `rstd` and the variance, from the carries.
fn statistics(e: &mut ScalarExpr, n: usize, eps: f32) -> [ScalarId; 4] {
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
    [estimate, error, rstd, variance]
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

/// `n / (n - 1)`: what makes a variance unbiased.
fn unbiased(n: usize) -> f64 {
    n as f64 / (n as f64 - 1.0)
}

/// `d - average(d)` with `d = x - mean`, as the view; the average is given where it is known.
fn centred(g: &mut Graph, frame: &Frame, [x, mean]: [Value; 2], offset: Option<Value>) -> Value {
    let (x, mean) = (frame.view(g, x), frame.spread(g, mean));
    let deviation = g.sub(x, mean);
    let offset = match offset {
        Some(offset) => frame.spread(g, offset),
        None => frame.mean(g, deviation),
    };
    g.sub(deviation, offset)
}

/// `dx` with what reaches x through the statistics: per row `dmean / n + (2 dvariance / (n - 1) - drstd rstd^3 / n) c`.
fn with_statistics(vjp: &mut Vjp<'_>, frame: &Frame, dx: Value, offset: Value) -> Value {
    let ([x, mean, rstd], n) = ([vjp.inputs[0], vjp.outputs[1], vjp.outputs[2]], frame.count() as f64);
    let upstream = |i: usize| vjp.upstream.get(i).copied().flatten();
    let [by_mean, by_rstd, by_variance] = [1, 2, 3].map(upstream);
    let g = &mut *vjp.g;
    let constant = by_mean.map(|u| g.scale(u, (1.0 / n) as f32));
    let by_rstd = by_rstd.map(|u| g.rstd_share(u, rstd, (1.0 / n) as f32));
    let by_variance = by_variance.map(|u| g.scale(u, (2.0 / (n - 1.0)) as f32));
    let slope = [by_rstd, by_variance].into_iter().flatten().reduce(|a, b| g.add(a, b));
    if constant.is_none() && slope.is_none() {
        return dx;
    }
    let mut dx = frame.view(g, dx);
    if let Some(constant) = constant {
        let share = frame.spread(g, constant);
        dx = g.add(dx, share);
    }
    if let Some(slope) = slope {
        let c = centred(g, frame, [x, mean], Some(offset));
        let slope = frame.spread(g, slope);
        let share = g.mul(c, slope);
        dx = g.add(dx, share);
    }
    frame.unview(g, dx)
}

impl<S: Split> Rule for Norm<S> {
    fn arity(&self) -> Option<usize> {
        Some(3)
    }

    fn results(&self) -> usize {
        if S::VARIANCE { 4 } else { 3 }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let frame = self.split.frame(&inputs[0])?;
        check_norm(&frame, &inputs[0], &[("gamma", &inputs[1]), ("beta", &inputs[2])], self.eps)?;
        let mut results = vec![frame.statistic(); self.results()];
        results[0] = inputs[0].clone();
        Ok(results)
    }

    /// `dx` as [`NormGrad`] and [`with_statistics`]; over what takes the same weight, `dgamma = sum of dy c rstd` and
    /// `dbeta = sum of dy`. Here `c = d - average(d)` with `d = x - mean`: the saved mean is rounded.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let [x, gamma, mean, rstd] = [vjp.inputs[0], vjp.inputs[1], vjp.outputs[1], vjp.outputs[2]];
        let frame = self.split.frame(vjp.g.ty(x).ok_or("the operand has no type")?)?;
        let dy = vjp.grad();
        let mut offset = None;
        if vjp.wants(0) {
            let op = S::gradient(NormGrad { split: self.split.clone() });
            let results = vjp.g.apply_all(op, &[x, mean, rstd, gamma, dy]);
            offset = Some(results[1]);
            let dx = with_statistics(vjp, &frame, results[0], results[1]);
            vjp.set(0, dx);
        }
        let dy = frame.view(vjp.g, dy);
        if vjp.wants(1) {
            let (c, r) = (centred(vjp.g, &frame, [x, mean], offset), frame.spread(vjp.g, rstd));
            let normal = vjp.g.mul(c, r);
            let d = vjp.g.mul(dy, normal);
            let dgamma = frame.sum_by_weight(vjp.g, d);
            vjp.set(1, dgamma);
        }
        if vjp.wants(2) {
            let dbeta = frame.sum_by_weight(vjp.g, dy);
            vjp.set(2, dbeta);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let x = inputs[0];
        let Ok(frame) = self.split.frame(&x.ty) else { return Vec::new() };
        let n = frame.count() as f64;
        let average = |f: &dyn Fn(f64, f64) -> f64, of: &Array<f64>| {
            let mut sums = Array::filled(&outputs[1], 0.0);
            each_point(x.dims(), |p| {
                let at = sums.offset(&frame.place(p).0);
                sums.data[at] += f(x.at(p).f64(), of.data[at]) / n;
            });
            sums
        };
        let mean = average(&|x, _| x, &Array::filled(&outputs[1], 0.0));
        let variance = average(&|x, mean| (x - mean) * (x - mean), &mean);
        let eps = f64::from(self.eps.get());
        let rstd = |v: f64| 1.0 / (v + eps).sqrt();
        let y = Array::build(&outputs[0], |p| {
            let (row, weight) = frame.place(p);
            let (gamma, beta) = (inputs[1].data[weight].f64(), inputs[2].data[weight].f64());
            R::of((x.at(p).f64() - mean.at(&row)) * rstd(variance.at(&row)) * gamma + beta)
        });
        let per_row = |of: &Array<f64>, f: &dyn Fn(f64) -> f64| Array {
            ty: outputs[1].clone(),
            data: of.data.iter().map(|v| R::of(f(*v))).collect(),
        };
        let mut results = vec![y, per_row(&mean, &|m| m), per_row(&variance, &rstd)];
        if S::VARIANCE {
            results.push(per_row(&variance, &|v| v * unbiased(frame.count())));
        }
        results
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let Ok(frame) = self.split.frame(x) else { return Lowering::Leaf };
        let (rows, n) = (frame.rows(), frame.count());
        let phases = phases(x, &rows, n);
        let mut row_body = Body::new();
        let e = &mut row_body.expr;
        let [estimate, error, rstd, variance] = statistics(e, n, self.eps.get());
        let mean = e.add(estimate, error);
        e.output(mean);
        e.output(rstd);
        if S::VARIANCE {
            let factor = e.f32(unbiased(n) as f32);
            let variance = e.mul(variance, factor);
            e.output(variance);
        }
        let mut body = Body::new();
        let v = body.load(0, x, rows.element());
        let [gamma, beta] = [1, 2].map(|i| body.load(i, &io.inputs[i], rows.weight()));
        let e = &mut body.expr;
        let [estimate, error, rstd, _] = statistics(e, n, self.eps.get());
        let d = e.sub(v, estimate);
        let d = e.sub(d, error);
        let normal = e.mul(d, rstd);
        let scaled = e.mul(normal, gamma);
        let y = e.add(scaled, beta);
        body.output(y);
        rows.lower(io, phases, [row_body, body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let mut all = Vec::new();
        for (i, (split, dims)) in S::shapes().into_iter().enumerate() {
            let eps = if i % 2 == 0 { 1e-5 } else { 1e-3 };
            let weights = split.frame(&TensorType::f32(dims.clone())).map_or(0, |f| f.weight_count());
            let weights = SampleInput::f32(&[weights]);
            let large = SampleInput::uniform(&dims, 9999.0, 10001.0);
            let sample = |x| {
                (
                    Norm { eps: F32::from(eps), split: split.clone() },
                    vec![x, weights.clone(), weights.clone()],
                )
            };
            all.push(sample(SampleInput::f32(&dims)));
            all.extend((i + 1 == S::shapes().len()).then(|| sample(large)));
        }
        all
    }
}

impl Graph {
    /// What a gradient u of `rstd` adds per unit of a row's deviation: `-u rstd^3 / n`.
    pub(super) fn rstd_share(&mut self, u: Value, rstd: Value, per: f32) -> Value {
        let squared = self.mul(rstd, rstd);
        let cubed = self.mul(squared, rstd);
        let product = self.mul(u, cubed);
        self.scale(product, -per)
    }
}

//! Root-mean-square normalisation over the last axis (Zhang and Sennrich 2019), with weight; and its gradient.

use super::{Frame, Rows, check_norm, infer_norm_grad, row_of};
use crate::array::Array;
use crate::attr::F32;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{ScalarExpr, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = x rstd gamma` over the last axis with `rstd = 1 / sqrt(average(x^2) + eps)`.
/// Inputs: x `[.., C]`, gamma `[C]`. Results: y `[.., C]`, rstd `[..]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct RmsNorm {
    pub(crate) eps: F32,
}

fn rstd(e: &mut ScalarExpr, n: usize, eps: f32) -> ScalarId {
    let (sum, per, eps) = (e.carry(0, DType::F32), e.f32(1.0 / n as f32), e.f32(eps));
    let average = e.mul(sum, per);
    let shifted = e.add(average, eps);
    e.unary(UnaryFn::Rsqrt, shifted)
}

impl Rule for RmsNorm {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let frame = Frame::last(&inputs[0])?;
        check_norm(&frame, &inputs[0], &[("gamma", &inputs[1])], self.eps)?;
        Ok(vec![inputs[0].clone(), frame.statistic()])
    }

    /// `dx` as [`RmsNormGrad`], `dgamma = sum over rows of dy x rstd`; where the loss uses rstd, `dx -= drstd rstd^3 x / n`.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let [x, gamma, rstd] = [vjp.inputs[0], vjp.inputs[1], vjp.outputs[1]];
        let dy = vjp.grad();
        if vjp.wants(0) {
            let mut dx = vjp.g.apply(Payload::RmsNormGrad(RmsNormGrad {}), &[x, rstd, gamma, dy]);
            if let Some(u) = vjp.upstream[1] {
                let per = 1.0 / vjp.g.dims(gamma)[0] as f32;
                let share = vjp.g.rstd_share(u, rstd, per);
                let share = vjp.g.per_row(share);
                let share = vjp.g.mul(x, share);
                dx = vjp.g.add(dx, share);
            }
            vjp.set(0, dx);
        }
        if vjp.wants(1) {
            let r = vjp.g.per_row(rstd);
            let normal = vjp.g.mul(x, r);
            let d = vjp.g.mul(dy, normal);
            vjp.set_unbroadcast(1, d);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, last) = (inputs[0], inputs[0].ty.rank() - 1);
        let rstd = Array::build(&outputs[1], |p| {
            let row = row_of(x, &[p, &[0]].concat(), last);
            let average = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
            R::of(1.0 / (average + f64::from(self.eps.get())).sqrt())
        });
        let y = Array::build(&outputs[0], |p| x.at(p) * rstd.at(&p[..last]) * inputs[1].at(&p[last..]));
        vec![y, rstd]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, rows) = (&io.inputs[0], Rows::last(&io.inputs[0]));
        let n: usize = rows.cols.iter().product();
        let mut squares = Body::new();
        let v = squares.load(0, x, rows.element());
        let vv = squares.expr.mul(v, v);
        squares.output(vv);
        let mut row_body = Body::new();
        let r = rstd(&mut row_body.expr, n, self.eps.get());
        row_body.output(r);
        let mut body = Body::new();
        let v = body.load(0, x, rows.element());
        let gamma = body.load(1, &io.inputs[1], rows.weight());
        let r = rstd(&mut body.expr, n, self.eps.get());
        let normal = body.expr.mul(v, r);
        let y = body.expr.mul(normal, gamma);
        body.output(y);
        let phases = vec![Phase { body: squares, combines: vec![Combine::Sum] }];
        rows.lower(io, phases, [row_body, body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let s = |eps: f32| RmsNorm { eps: eps.into() };
        vec![
            (s(1e-3), vec![f(&[1]), f(&[1])]),
            (s(1e-5), vec![f(&[5, 67]), f(&[67])]),
            (s(1e-6), vec![f(&[2, 3, 8]), f(&[8])]),
            (s(1e-5), vec![SampleInput::uniform(&[2, 33], 9999.0, 10001.0), f(&[33])]),
        ]
    }
}

/// With `n = x rstd` and `h = dy gamma`: `dx = rstd (h - n average(h n))` over the last axis.
/// Inputs: x `[.., C]`, rstd `[..]`, gamma `[C]`, dy `[.., C]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct RmsNormGrad {}

/// `n` and `h` at one element, and `rstd` of its row.
fn element(body: &mut Body, io: &Signature<'_>, rows: &Rows) -> [ScalarId; 3] {
    let x = body.load(0, &io.inputs[0], rows.element());
    let rstd = body.load(1, &io.inputs[1], rows.statistic());
    let gamma = body.load(2, &io.inputs[2], rows.weight());
    let dy = body.load(3, &io.inputs[3], rows.element());
    [body.expr.mul(x, rstd), body.expr.mul(dy, gamma), rstd]
}

/// The same in primitive operations, from which second derivatives are made.
fn composed(g: &mut Graph, v: &[Value]) -> Vec<Value> {
    let rstd = g.per_row(v[1]);
    let normal = g.mul(v[0], rstd);
    let h = g.mul(v[3], v[2]);
    let hn = g.mul(h, normal);
    let b = g.mean_keep(hn, &[-1]);
    let nb = g.mul(normal, b);
    let d = g.sub(h, nb);
    vec![g.mul(rstd, d)]
}

impl Rule for RmsNormGrad {
    fn arity(&self) -> Option<usize> {
        Some(4)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        infer_norm_grad(&Frame::last(&inputs[0])?, inputs, &["rstd"])?;
        Ok(vec![inputs[0].clone()])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        vjp.through(composed)
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let last = inputs[0].ty.rank() - 1;
        vec![Array::build(&outputs[0], |p| {
            let rstd = inputs[1].at(&p[..last]).f64();
            let (xs, ds) = (row_of(inputs[0], p, last), row_of(inputs[3], p, last));
            let h: Vec<f64> = ds.iter().zip(&inputs[2].data).map(|(d, g)| d * g.f64()).collect();
            let b = h.iter().zip(&xs).map(|(h, x)| h * x * rstd).sum::<f64>() / h.len() as f64;
            R::of(rstd * (h[p[last]] - xs[p[last]] * rstd * b))
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rows = Rows::last(&io.inputs[0]);
        let n: usize = rows.cols.iter().product();
        let mut sum = Body::new();
        let [normal, h, _] = element(&mut sum, io, &rows);
        let hn = sum.expr.mul(h, normal);
        sum.output(hn);
        let mut body = Body::new();
        let [normal, h, rstd] = element(&mut body, io, &rows);
        let e = &mut body.expr;
        let (total, per) = (e.carry(0, DType::F32), e.f32(1.0 / n as f32));
        let b = e.mul(total, per);
        let nb = e.mul(normal, b);
        let d = e.sub(h, nb);
        let dx = e.mul(rstd, d);
        body.output(dx);
        let phases = vec![Phase { body: sum, combines: vec![Combine::Sum] }];
        rows.lower(io, phases, [Body::new(), body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let s = |dims: &[usize]| {
            let (rows, n) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
            (RmsNormGrad {}, vec![f(dims), SampleInput::uniform(rows, 0.5, 2.0), f(&[n]), f(dims)])
        };
        vec![s(&[1]), s(&[5, 67]), s(&[2, 3, 8])]
    }
}

impl Graph {
    /// RMS norm of `x [.., C]` over its last axis with `gamma [C]`.
    #[track_caller]
    pub fn rms_norm(&mut self, x: Value, gamma: Value, eps: f32) -> Value {
        self.apply(Payload::RmsNorm(RmsNorm { eps: eps.into() }), &[x, gamma])
    }
}

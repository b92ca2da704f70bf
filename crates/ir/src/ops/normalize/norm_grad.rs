//! The gradient of layer, group and batch normalisation with respect to the operand.

use super::{Frame, Rows, Split, infer_norm_grad};
use crate::array::{Array, each_point};
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::ScalarId;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// With `d = x - mean`, `n = (d - average(d)) rstd` and `h = dy gamma`: `dx = rstd (h - average(h) - n average(h n))`, with
/// averages over rows. Inputs: x; mean and rstd with one element per row; gamma with one per weight; dy like x. Results: dx
/// like x and the average of d with one element per row.
///
/// The average of d is what rounding took from the saved mean: of a row near 1e4 that is 5e-4 in f32, which a deviation of
/// 1 would show in the gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct NormGrad<S> {
    #[serde(flatten)]
    pub(crate) split: S,
}

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
fn composed(g: &mut Graph, frame: &Frame, v: &[Value]) -> Vec<Value> {
    let (x, dy) = (frame.view(g, v[0]), frame.view(g, v[4]));
    let (mean, rstd) = (frame.spread(g, v[1]), frame.spread(g, v[2]));
    let deviation = g.sub(x, mean);
    let offset = frame.mean(g, deviation);
    let centred = g.sub(deviation, offset);
    let normal = g.mul(centred, rstd);
    let gamma = frame.weigh(g, v[3]);
    let h = g.mul(dy, gamma);
    let hn = g.mul(h, normal);
    let (a, b) = (frame.mean(g, h), frame.mean(g, hn));
    let nb = g.mul(normal, b);
    let d = g.sub(h, a);
    let d = g.sub(d, nb);
    let dx = g.mul(rstd, d);
    vec![frame.unview(g, dx), frame.unspread(g, offset)]
}

impl<S: Split> Rule for NormGrad<S> {
    fn arity(&self) -> Option<usize> {
        Some(5)
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let frame = self.split.frame(&inputs[0])?;
        infer_norm_grad(&frame, inputs, &["mean", "rstd"])?;
        Ok(vec![inputs[0].clone(), frame.statistic()])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let frame = self.split.frame(vjp.g.ty(vjp.inputs[0]).ok_or("the operand has no type")?)?;
        vjp.through(|g, v| composed(g, &frame, v))
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let x = inputs[0];
        let Ok(frame) = self.split.frame(&x.ty) else { return Vec::new() };
        let average = |f: &dyn Fn(&[usize]) -> f64| {
            let mut sums = Array::filled(&outputs[1], 0.0);
            each_point(x.dims(), |p| {
                let at = sums.offset(&frame.place(p).0);
                sums.data[at] += f(p) / frame.count() as f64;
            });
            sums
        };
        let at_row = |of: &Array<R>, p: &[usize]| of.at(&frame.place(p).0).f64();
        let deviation = |p: &[usize]| x.at(p).f64() - at_row(inputs[1], p);
        let offset = average(&deviation);
        let normal = |p: &[usize]| (deviation(p) - offset.at(&frame.place(p).0)) * at_row(inputs[2], p);
        let h = |p: &[usize]| inputs[4].at(p).f64() * inputs[3].data[frame.place(p).1].f64();
        let (a, b) = (average(&h), average(&|p| h(p) * normal(p)));
        let dx = Array::build(&outputs[0], |p| {
            let row = frame.place(p).0;
            R::of(at_row(inputs[2], p) * (h(p) - a.at(&row) - normal(p) * b.at(&row)))
        });
        vec![dx, Array { ty: outputs[1].clone(), data: offset.data.iter().map(|v| R::of(*v)).collect() }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let Ok(frame) = self.split.frame(&io.inputs[0]) else { return Lowering::Leaf };
        let (rows, n) = (frame.rows(), frame.count());
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
        let sample = |(split, dims): (S, Vec<usize>)| {
            let frame = split.frame(&TensorType::f32(dims.clone())).ok()?;
            let (x, row) = (SampleInput::f32(&dims), frame.statistic().dims);
            let (mean, rstd) = (SampleInput::f32(&row), SampleInput::uniform(&row, 0.5, 2.0));
            let gamma = SampleInput::f32(&[frame.weight_count()]);
            Some((NormGrad { split }, vec![x.clone(), mean, rstd, gamma, x]))
        };
        S::shapes().into_iter().filter_map(sample).collect()
    }
}

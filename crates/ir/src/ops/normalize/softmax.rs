//! Softmax along one axis and its gradient.

use super::{
    Rows, exponential, infer_softmax, infer_softmax_grad, row_of, row_statistics, softmax_phases, total,
};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = exp(x - m) / sum exp(x - m)` along `axis` with m the row maximum. A row of all -inf (fully masked) gives zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Softmax {
    pub(crate) axis: usize,
}

impl Rule for Softmax {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        infer_softmax(&inputs[0], self.axis)
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (y, dy) = (vjp.outputs[0], vjp.grad());
        let dx = vjp.g.apply(Payload::SoftmaxGrad(SoftmaxGrad { axis: self.axis }), &[y, dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| {
            let (m, sum) = row_statistics(row_of(inputs[0], p, self.axis).into_iter());
            R::of((inputs[0].at(p).f64() - m).exp() / sum)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let rows = Rows::along(x, self.axis);
        let phases = softmax_phases(x, &rows);
        let mut body = Body::new();
        let v = body.load(0, x, rows.element());
        let e = exponential(&mut body.expr, v);
        let sum = total(&mut body.expr, 1);
        let y = body.expr.div(e, sum);
        body.output(y);
        rows.lower(io, phases, [Body::new(), body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, s) = (SampleInput::f32, |axis| Softmax { axis });
        vec![
            (s(0), vec![f(&[1])]),
            (s(1), vec![f(&[7, 131])]),
            (s(0), vec![f(&[5, 3])]),
            (s(1), vec![f(&[2, 37, 3])]),
            (s(1), vec![SampleInput::uniform(&[3, 8], -1e4, 1e4)]),
        ]
    }
}

/// `dx = y (dy - sum y dy)` along `axis`, from the result y of softmax. Inputs: y, dy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct SoftmaxGrad {
    pub(crate) axis: usize,
}

impl Rule for SoftmaxGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        infer_softmax_grad(inputs, self.axis)
    }

    /// With u the upstream gradient: `ddy = y (u - sum y u)`, the operation itself;
    /// `dy = u (dy - sum y dy) - dy sum y u`.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (y, dy, u) = (vjp.inputs[0], vjp.inputs[1], vjp.grad());
        if vjp.wants(0) {
            let g = &mut *vjp.g;
            let inner = |g: &mut Graph, d: Value| {
                let p = g.mul(y, d);
                g.sum_keep(p, &[self.axis as isize])
            };
            let (s, t) = (inner(g, dy), inner(g, u));
            let centred = g.sub(dy, s);
            let (a, b) = (g.mul(u, centred), g.mul(dy, t));
            let d = g.sub(a, b);
            vjp.set(0, d);
        }
        if vjp.wants(1) {
            let d = vjp.g.apply(Payload::SoftmaxGrad(self.clone()), &[y, u]);
            vjp.set(1, d);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (y, dy) = (inputs[0], inputs[1]);
        vec![Array::build(&outputs[0], |p| {
            let (ys, ds) = (row_of(y, p, self.axis), row_of(dy, p, self.axis));
            let inner: f64 = ys.iter().zip(&ds).map(|(y, d)| y * d).sum();
            R::of(y.at(p).f64() * (dy.at(p).f64() - inner))
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rows = Rows::along(&io.inputs[0], self.axis);
        let load = |body: &mut Body| [0, 1].map(|i| body.load(i, &io.inputs[i], rows.element()));
        let mut sum = Body::new();
        let [y, dy] = load(&mut sum);
        let p = sum.expr.mul(y, dy);
        sum.output(p);
        let mut body = Body::new();
        let [y, dy] = load(&mut body);
        let inner = body.expr.carry(0, DType::F32);
        let centred = body.expr.sub(dy, inner);
        let dx = body.expr.mul(y, centred);
        body.output(dx);
        let phases = vec![Phase { body: sum, combines: vec![Combine::Sum] }];
        rows.lower(io, phases, [Body::new(), body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, s) = (SampleInput::f32, |axis| SoftmaxGrad { axis });
        vec![
            (s(0), vec![f(&[1]), f(&[1])]),
            (s(1), vec![f(&[5, 67]), f(&[5, 67])]),
            (s(0), vec![f(&[7, 3, 2]), f(&[7, 3, 2])]),
        ]
    }
}

impl Graph {
    /// Softmax along an axis (negative ones count from the end); a row of all -inf gives zeros and zero gradients.
    #[track_caller]
    pub fn softmax(&mut self, x: Value, axis: isize) -> Value {
        let axis = self.resolve_axes(x, &[axis])[0];
        self.apply(Payload::Softmax(Softmax { axis }), &[x])
    }
}

impl Value {
    /// Softmax along an axis (negative ones count from the end); a row of all -inf gives zeros and zero gradients.
    #[track_caller]
    #[must_use]
    pub fn softmax(self, g: &mut Graph, axis: isize) -> Value {
        g.softmax(self, axis)
    }
}

//! Log-softmax along one axis and its gradient.

use super::{Rows, infer_softmax, infer_softmax_grad, row_of, row_statistics, shift, softmax_phases, total};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::loops::{Body, Combine, Phase};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::UnaryFn;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = (x - m) - log sum exp(x - m)` along `axis` with m the row maximum. A row of all -inf stays -inf.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LogSoftmax {
    pub(crate) axis: usize,
}

impl Rule for LogSoftmax {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        infer_softmax(&inputs[0], self.axis)
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (y, dy) = (vjp.outputs[0], vjp.grad());
        let dx = vjp.g.apply(Payload::LogSoftmaxGrad(LogSoftmaxGrad { axis: self.axis }), &[y, dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| {
            let (m, sum) = row_statistics(row_of(inputs[0], p, self.axis).into_iter());
            R::of(inputs[0].at(p).f64() - m - sum.ln())
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let rows = Rows::along(x, self.axis);
        let phases = softmax_phases(x, &rows);
        let mut body = Body::new();
        let v = body.load(0, x, rows.element());
        let e = &mut body.expr;
        let (m, sum) = (shift(e), total(e, 1));
        let (shifted, log) = (e.sub(v, m), e.unary(UnaryFn::Log, sum));
        let y = e.sub(shifted, log);
        body.output(y);
        rows.lower(io, phases, [Body::new(), body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, s) = (SampleInput::f32, |axis| LogSoftmax { axis });
        vec![
            (s(0), vec![f(&[1])]),
            (s(1), vec![f(&[7, 131])]),
            (s(1), vec![f(&[2, 37, 3])]),
            (s(0), vec![SampleInput::uniform(&[8, 3], -1e4, 1e4)]),
        ]
    }
}

/// `dx = dy - exp(y) sum dy` along `axis`, from the result y of log-softmax. Inputs: y, dy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct LogSoftmaxGrad {
    pub(crate) axis: usize,
}

impl Rule for LogSoftmaxGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        infer_softmax_grad(inputs, self.axis)
    }

    /// With u the upstream gradient and `p = exp y`: `dy = -u p sum dy`, `ddy = u - sum p u`.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (y, dy, u) = (vjp.inputs[0], vjp.inputs[1], vjp.grad());
        let axis = [self.axis as isize];
        let p = vjp.g.exp(y);
        let up = vjp.g.mul(u, p);
        if vjp.wants(0) {
            let s = vjp.g.sum_keep(dy, &axis);
            let d = vjp.g.mul(up, s);
            let d = vjp.g.neg(d);
            vjp.set(0, d);
        }
        if vjp.wants(1) {
            let s = vjp.g.sum_keep(up, &axis);
            let d = vjp.g.sub(u, s);
            vjp.set(1, d);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (y, dy) = (inputs[0], inputs[1]);
        vec![Array::build(&outputs[0], |p| {
            let sum: f64 = row_of(dy, p, self.axis).iter().sum();
            R::of(dy.at(p).f64() - y.at(p).f64().exp() * sum)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rows = Rows::along(&io.inputs[0], self.axis);
        let sum =
            Phase { body: Body::of_load(1, &io.inputs[1], rows.element()), combines: vec![Combine::Sum] };
        let mut body = Body::new();
        let [y, dy] = [0, 1].map(|i| body.load(i, &io.inputs[i], rows.element()));
        let e = &mut body.expr;
        let (p, s) = (e.unary(UnaryFn::Exp, y), e.carry(0, DType::F32));
        let ps = e.mul(p, s);
        let dx = e.sub(dy, ps);
        body.output(dx);
        rows.lower(io, vec![sum], [Body::new(), body])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, s) = (SampleInput::f32, |axis| LogSoftmaxGrad { axis });
        vec![
            (s(0), vec![f(&[1]), f(&[1])]),
            (s(1), vec![f(&[5, 67]), f(&[5, 67])]),
            (s(0), vec![f(&[7, 3, 2]), f(&[7, 3, 2])]),
        ]
    }
}

impl Graph {
    /// Log-softmax along an axis (negative ones count from the end); finite for any finite logits.
    #[track_caller]
    pub fn log_softmax(&mut self, x: Value, axis: isize) -> Value {
        let axis = self.resolve_axes(x, &[axis])[0];
        self.apply(Payload::LogSoftmax(LogSoftmax { axis }), &[x])
    }
}

impl Value {
    /// Log-softmax along an axis (negative ones count from the end); finite for any finite logits.
    #[track_caller]
    #[must_use]
    pub fn log_softmax(self, g: &mut Graph, axis: isize) -> Value {
        g.log_softmax(self, axis)
    }
}

//! Stochastic gradient descent with momentum, Nesterov momentum and weight decay, as `torch.optim.SGD`.

use super::{body, check, in_range, no_gradient};
use crate::array::Array;
use crate::attr::F64;
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `d = g + weight_decay p`; with momentum `v' = momentum v + d` and `d = v'`, or `d + momentum v'` for Nesterov;
/// `p' = p - lr d`.
///
/// Inputs without momentum: p, g, lr; result p'. With momentum: p, g, v, lr; results p', v'.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Sgd {
    pub(crate) momentum: F64,
    pub(crate) nesterov: bool,
    pub(crate) weight_decay: F64,
}

impl Sgd {
    fn has_velocity(&self) -> bool {
        self.momentum.get() != 0.0
    }
}

impl Rule for Sgd {
    fn arity(&self) -> Option<usize> {
        Some(if self.has_velocity() { 4 } else { 3 })
    }

    fn results(&self) -> usize {
        if self.has_velocity() { 2 } else { 1 }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        in_range("momentum", self.momentum.get(), 1.0)?;
        in_range("weight decay", self.weight_decay.get(), f64::INFINITY)?;
        if self.nesterov && !self.has_velocity() {
            return Err("Nesterov momentum needs a momentum above 0".into());
        }
        let names = ["parameter", "gradient", "velocity", "learning rate"];
        let parameter = if self.has_velocity() {
            check(inputs, &names, 3)?
        } else {
            check(inputs, &[names[0], names[1], names[3]], 2)?
        };
        Ok(vec![parameter; self.results()])
    }

    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        no_gradient()
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (mu, decay) = (R::of(self.momentum.get()), R::of(self.weight_decay.get()));
        let direction = |p: &[usize]| inputs[1].at(p) + decay * inputs[0].at(p);
        let velocity = |p: &[usize]| mu * inputs[2].at(p) + direction(p);
        let lr = inputs[inputs.len() - 1].data[0];
        let step = |p: &[usize]| match (self.has_velocity(), self.nesterov) {
            (false, _) => direction(p),
            (true, false) => velocity(p),
            (true, true) => direction(p) + mu * velocity(p),
        };
        let mut results = vec![Array::build(&outputs[0], |p| inputs[0].at(p) - lr * step(p))];
        if self.has_velocity() {
            results.push(Array::build(&outputs[1], velocity));
        }
        results
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let tensors = io.inputs.len() - 1;
        let (mut body, x) = body(io, tensors);
        let e = &mut body.expr;
        let mut d = x[1];
        if self.weight_decay.get() != 0.0 {
            let decay = e.f32(self.weight_decay.get() as f32);
            let pull = e.mul(decay, x[0]);
            d = e.add(d, pull);
        }
        let mut velocity = None;
        if self.has_velocity() {
            let mu = e.f32(self.momentum.get() as f32);
            let kept = e.mul(mu, x[2]);
            let v = e.add(kept, d);
            let ahead = e.mul(mu, v);
            d = if self.nesterov { e.add(d, ahead) } else { v };
            velocity = Some(v);
        }
        let step = e.mul(x[tensors], d);
        let next = e.sub(x[0], step);
        body.output(next);
        velocity.into_iter().for_each(|v| body.output(v));
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, lr) = (SampleInput::f32, SampleInput::uniform(&[], 0.01, 0.1));
        let s = |momentum: f64, nesterov, weight_decay: f64| Sgd {
            momentum: momentum.into(),
            nesterov,
            weight_decay: weight_decay.into(),
        };
        vec![
            (s(0.0, false, 0.0), vec![f(&[1]), f(&[1]), lr.clone()]),
            (s(0.0, false, 0.1), vec![f(&[5, 13]), f(&[5, 13]), lr.clone()]),
            (s(0.9, false, 0.0), vec![f(&[3, 1, 7]), f(&[3, 1, 7]), f(&[3, 1, 7]), lr.clone()]),
            (s(0.9, true, 0.01), vec![f(&[131]), f(&[131]), f(&[131]), lr]),
        ]
    }
}

//! Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as `torch.optim.Adam` and `torch.optim.AdamW`.

use super::{body, check, in_range, no_gradient};
use crate::array::Array;
use crate::attr::F64;
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::UnaryFn;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `m' = beta1 m + (1 - beta1) g`, `v' = beta2 v + (1 - beta2) g^2`, `p' = p - lr (m' c1) / (sqrt(v' c2) + eps)` with the
/// bias corrections `c = 1 / (1 - beta^t)` of step t, from 1, given by the host.
///
/// Decoupled weight decay first takes `lr weight_decay p` from p; coupled decay adds `weight_decay p` to g.
/// Inputs: p, g, m, v, lr, c1, c2. Results: p', m', v'. `1 - beta` is formed in f64, as PyTorch does: 0.001 and not
/// 1 - 0.999f32.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Adam {
    pub(crate) beta1: F64,
    pub(crate) beta2: F64,
    pub(crate) eps: F64,
    pub(crate) weight_decay: F64,
    pub(crate) decoupled: bool,
}

const NAMES: [&str; 7] =
    ["parameter", "gradient", "first moment", "second moment", "learning rate", "correction", "correction"];

impl Rule for Adam {
    fn arity(&self) -> Option<usize> {
        Some(NAMES.len())
    }

    fn results(&self) -> usize {
        3
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        in_range("beta1", self.beta1.get(), 1.0)?;
        in_range("beta2", self.beta2.get(), 1.0)?;
        in_range("weight decay", self.weight_decay.get(), f64::INFINITY)?;
        in_range("eps", self.eps.get(), f64::INFINITY)?;
        if self.eps.get() as f32 == 0.0 {
            return Err(format!("eps {} is 0 in f32: zero gradients would divide 0 by 0", self.eps.get()));
        }
        Ok(vec![check(inputs, &NAMES, 4)?; 3])
    }

    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        no_gradient()
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let [lr, c1, c2] = [4, 5, 6].map(|i| inputs[i].data[0].f64());
        let (b1, b2) = (self.beta1.get(), self.beta2.get());
        let decay = self.weight_decay.get();
        let next = |at: &[usize]| {
            let [mut p, mut g, m, v] = [0, 1, 2, 3].map(|i| inputs[i].at(at).f64());
            if self.decoupled {
                p -= lr * decay * p;
            } else {
                g += decay * p;
            }
            let (m, v) = (b1 * m + (1.0 - b1) * g, b2 * v + (1.0 - b2) * g * g);
            [p - lr * (m * c1) / ((v * c2).sqrt() + self.eps.get()), m, v]
        };
        [0, 1, 2].map(|r| Array::build(&outputs[r], |at| R::of(next(at)[r]))).into()
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = body(io, 4);
        let e = &mut body.expr;
        let [mut p, mut g, m, v, lr, c1, c2] = [0, 1, 2, 3, 4, 5, 6].map(|i| x[i]);
        if self.weight_decay.get() != 0.0 {
            let decay = e.f32(self.weight_decay.get() as f32);
            let pull = e.mul(decay, p);
            if self.decoupled {
                let pull = e.mul(lr, pull);
                p = e.sub(p, pull);
            } else {
                g = e.add(g, pull);
            }
        }
        let gg = e.mul(g, g);
        let mut average = |beta: f64, old, new| {
            let (keep, take) = (e.f32(beta as f32), e.f32((1.0 - beta) as f32));
            let (a, b) = (e.mul(keep, old), e.mul(take, new));
            e.add(a, b)
        };
        let (m, v) = (average(self.beta1.get(), m, g), average(self.beta2.get(), v, gg));
        let (m_hat, v_hat) = (e.mul(m, c1), e.mul(v, c2));
        let (root, eps) = (e.unary(UnaryFn::Sqrt, v_hat), e.f32(self.eps.get() as f32));
        let scale = e.add(root, eps);
        let direction = e.div(m_hat, scale);
        let step = e.mul(lr, direction);
        let p = e.sub(p, step);
        [p, m, v].into_iter().for_each(|r| body.output(r));
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |dims: &[usize], weight_decay: f64, decoupled| {
            let op = Adam {
                beta1: 0.9.into(),
                beta2: 0.999.into(),
                eps: 1e-8.into(),
                weight_decay: weight_decay.into(),
                decoupled,
            };
            let (f, u) = (SampleInput::f32, SampleInput::uniform);
            let scalars = [u(&[], 0.001, 0.1), u(&[], 1.0, 10.0), u(&[], 1.0, 1000.0)];
            let tensors = [f(dims), f(dims), f(dims), u(dims, 0.1, 1.0)];
            (op, tensors.into_iter().chain(scalars).collect())
        };
        vec![
            s(&[1], 0.0, false),
            s(&[], 0.01, true),
            s(&[5, 1, 13], 0.01, true),
            s(&[131], 0.1, false),
            s(&[67, 3], 0.0, false),
        ]
    }
}

//! Dropout: a random part of the elements becomes 0, the others are scaled so that the mean stays.

use super::{check, reference_unit, reference_words, uniform};
use crate::array::Array;
use crate::attr::F32;
use crate::index::Access;
use crate::loops::Body;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::BinaryFn;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `y = x / (1 - p) where u >= p, else 0`, with u uniform in 0..1 drawn for each element. Inputs: x f32, the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Dropout {
    pub(crate) p: F32,
    pub(crate) stream: u32,
}

impl Dropout {
    fn scale(&self) -> f64 {
        let kept = 1.0 - f64::from(self.p.get());
        if kept > 0.0 { 1.0 / kept } else { 0.0 }
    }
}

impl Rule for Dropout {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        check(&inputs[0], &inputs[1])?;
        let p = self.p.get();
        if !(0.0..=1.0).contains(&p) {
            return Err(format!("the probability must be in 0..=1, it is {p}"));
        }
        Ok(vec![inputs[0].clone()])
    }

    /// The same elements of the gradient: they are drawn again from the same counters.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (key, dy) = (vjp.inputs[1], vjp.grad());
        let dx = vjp.g.apply(Payload::Dropout(self.clone()), &[dy, key]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (p, scale) = (f64::from(self.p.get()), R::of(self.scale()));
        let one = |(at, x): (usize, &R)| {
            let u = reference_unit(reference_words(at, inputs[1], self.stream)[at % 4]);
            if u >= p { *x * scale } else { R::of(0.0) }
        };
        vec![Array { ty: outputs[0].clone(), data: inputs[0].data.iter().enumerate().map(one).collect() }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let mut body = Body::new();
        let v = body.load(0, x, Access::identity(x.rank()));
        let u = uniform(&mut body, 1, &x.dims, self.stream);
        let e = &mut body.expr;
        let (p, scale, zero) = (e.f32(self.p.get()), e.f32(self.scale() as f32), e.f32(0.0));
        let (kept, scaled) = (e.binary(BinaryFn::Le, p, u), e.mul(v, scale));
        let y = e.select(kept, scaled, zero);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |p: f32, stream, dims: &[usize]| {
            (Dropout { p: p.into(), stream }, vec![SampleInput::f32(dims), SampleInput::words(&[4])])
        };
        vec![s(0.0, 0, &[1]), s(0.5, 1, &[7, 19]), s(0.1, 2, &[3, 1, 5]), s(1.0, 3, &[11])]
    }
}

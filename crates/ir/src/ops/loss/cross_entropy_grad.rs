//! The gradient of cross-entropy with respect to its logits.

use super::cross_entropy::{check, check_smoothing, is_target, limit, unless_ignored};
use crate::array::Array;
use crate::attr::F32;
use crate::graph::{Graph, IdLimit, Value};
use crate::loops::Body;
use crate::ops::indexing::clamped;
use crate::ops::normalize::Rows;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::UnaryFn;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `dx = (exp(x - lse) - (1 - s) [column = id] - s / C) d` with s the smoothing, 0 in rows whose id is `ignore`: a pointwise map.
/// Inputs: logits `[.., C]`, ids i32 `[..]`, lse `[..]`, the gradient d of each row's loss `[..]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct CrossEntropyGrad {
    pub(crate) ignore: Option<i32>,
    pub(crate) smoothing: F32,
}

impl CrossEntropyGrad {
    /// A value per row, 0 in ignored rows.
    fn masked(&self, g: &mut Graph, ids: Value, v: Value) -> Value {
        let Some(ignore) = self.ignore else { return v };
        let word = std::sync::Arc::from([ignore as u32]);
        let ignore = g.constant_words(word, TensorType::new(DType::I32, []));
        let (ignored, zero) = (g.equal(ids, ignore), g.scalar(0.0));
        g.select(ignored, zero, v)
    }
}

impl Rule for CrossEntropyGrad {
    fn arity(&self) -> Option<usize> {
        Some(4)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        check(&inputs[0], &inputs[1])?;
        check_smoothing(self.smoothing)?;
        for (what, t) in [("lse", &inputs[2]), ("the gradient", &inputs[3])] {
            if t.dtype != DType::F32 || t.dims != inputs[1].dims {
                return Err(format!(
                    "{what} must be f32 with one element per row of {}, it is {t}",
                    inputs[0]
                ));
            }
        }
        Ok(vec![inputs[0].clone()])
    }

    /// With u the upstream gradient, `p = exp(x - lse)` and d masked: `dx = u p d`, `dlse = -sum u p d`,
    /// `dd = sum u (p - (1 - s) [column = id] - s / C)`.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let [x, ids, lse, d] = [0, 1, 2, 3].map(|i| vjp.inputs[i]);
        let u = vjp.grad();
        let p = vjp.g.probabilities(x, lse);
        let weight = self.masked(vjp.g, ids, d);
        let weight = vjp.g.per_row(weight);
        let pd = vjp.g.mul(p, weight);
        let upd = vjp.g.mul(u, pd);
        vjp.set(0, upd);
        if vjp.wants(2) {
            let s = vjp.g.sum(upd, &[-1]);
            let s = vjp.g.neg(s);
            vjp.set(2, s);
        }
        if vjp.wants(3) {
            let dims = vjp.g.dims(d).to_vec();
            let ones = vjp.g.splat(1.0, dims);
            let unit = vjp.g.apply(Payload::CrossEntropyGrad(self.clone()), &[x, ids, lse, ones]);
            let weighted = vjp.g.mul(u, unit);
            let s = vjp.g.sum(weighted, &[-1]);
            vjp.set(3, s);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let last = inputs[0].ty.rank() - 1;
        let classes = inputs[0].dims()[last];
        vec![Array::build(&outputs[0], |p| {
            let [id, lse, d] = [1, 2, 3].map(|i| inputs[i].at(&p[..last]).f64());
            if self.ignore.map(f64::from) == Some(id) {
                return R::of(0.0);
            }
            let target = f64::from(u8::from(clamped(id, classes) == p[last]));
            let s = f64::from(self.smoothing.get());
            let target = (1.0 - s) * target + s / classes as f64;
            R::of(((inputs[0].at(p).f64() - lse).exp() - target) * d)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rows = Rows::last(&io.inputs[0]);
        let mut body = Body::new();
        let x = body.load(0, &io.inputs[0], rows.element());
        let [lse, d] = [2, 3].map(|i| body.load(i, &io.inputs[i], rows.statistic()));
        let mine = is_target(&mut body, io, &rows);
        let e = &mut body.expr;
        let smoothing = self.smoothing.get();
        let share = smoothing / rows.cols.iter().product::<usize>() as f32;
        let (own, other) = (e.f32(1.0 - smoothing + share), e.f32(share));
        let (shifted, target) = (e.sub(x, lse), e.select(mine, own, other));
        let p = e.unary(UnaryFn::Exp, shifted);
        let excess = e.sub(p, target);
        let dx = e.mul(excess, d);
        let dx = unless_ignored(&mut body, io, &rows, self.ignore, dx);
        body.output(dx);
        io.map(body)
    }

    fn id_limit(&self, input: usize, types: &[TensorType]) -> Option<IdLimit> {
        if input == 1 { limit(&types[0], self.ignore) } else { None }
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, ids) = (SampleInput::f32, SampleInput::ids);
        let s = |(ignore, smoothing): (Option<i32>, f32), rows: &[usize], classes: usize| {
            let logits = [rows, &[classes]].concat();
            let inputs =
                vec![f(&logits), ids(rows, classes as i32), SampleInput::uniform(rows, 0.5, 2.0), f(rows)];
            (CrossEntropyGrad { ignore, smoothing: smoothing.into() }, inputs)
        };
        let plain = (None, 0.0);
        let rest = [s((Some(2), 0.0), &[3, 4], 5), s((Some(2), 0.25), &[3, 4], 5)];
        [s(plain, &[1], 1), s(plain, &[], 7), s(plain, &[5], 67)].into_iter().chain(rest).collect()
    }
}

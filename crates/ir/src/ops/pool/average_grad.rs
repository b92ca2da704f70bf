//! Gradient of average pooling.

use super::average::{count, counted, undilated};
use super::{AvgPool2d, Pool, pool_samples};
use crate::array::Array;
use crate::loops::Body;
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `dx[n, c, r, s] = sum of dy[n, c, i, j] / count(i, j) over the windows (i, j) that see (r, s)`; dy is `[N, C, OH, OW]`,
/// the result `[N, C, size]`, the count that of [`AvgPool2d`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct AvgPool2dGrad {
    #[serde(flatten)]
    pub(crate) pool: Pool,
    pub(crate) count_padding: bool,
    /// Height and width of the pooling's input: several sizes give the same number of windows.
    pub(crate) size: [usize; 2],
}

impl Rule for AvgPool2dGrad {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        need_dtype("the gradient", &inputs[0], DType::F32)?;
        Ok(vec![TensorType::f32(undilated(self.pool.shape_of_result(&inputs[0], self.size)?)?.x())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let op = AvgPool2d { pool: self.pool, count_padding: self.count_padding };
        let up = vjp.grad();
        let d = vjp.g.apply(Payload::AvgPool2d(op), &[up]);
        vjp.set(0, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let mut dx = Array::filled(&outputs[0], R::of(0.0));
        if let Ok(s) = self.pool.shape_of_result(&inputs[0].ty, self.size) {
            s.each_tap(|window, _, input| {
                let at = dx.offset(input);
                dx.data[at] += inputs[0].at(window) / R::of(counted(&s, window, self.count_padding));
            });
        }
        vec![dx]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let dy = &io.inputs[0];
        let Ok(s) = self.pool.shape_of_result(dy, self.size) else { return Lowering::Leaf };
        let walk = s.over_inputs();
        let mut body = Body::new();
        let d = body.load(0, dy, walk.access(Scalar::f32(0.0)));
        let window = [&walk.coords[2], &walk.coords[3]];
        let n = count(&mut body, &s, self.count_padding, window, &walk.domain());
        let share = body.expr.div(d, n);
        body.output(share);
        io.loop_of(walk.sum(body))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(i, (pool, x)): (usize, (Pool, [usize; 4]))| {
            let y = pool.shape("x", &TensorType::f32(x)).ok()?.y();
            let op = AvgPool2dGrad { pool, count_padding: i % 2 == 1, size: [x[2], x[3]] };
            Some((op, vec![SampleInput::f32(&y)]))
        };
        pool_samples().into_iter().enumerate().filter_map(sample).collect()
    }
}

//! Gradient of maximum pooling.

use super::{MaxPool2dPick, Pool, PoolShape, pool_samples};
use crate::array::Array;
use crate::loops::Body;
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `dx[n, c, r, s] = sum of dy[n, c, i, j] over the windows (i, j) whose winning tap sees (r, s)`; inputs are the index
/// of the winning tap and dy, both `[N, C, OH, OW]`, the result is `[N, C, size]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct MaxPool2dGrad {
    #[serde(flatten)]
    pub(crate) pool: Pool,
    /// Height and width of the pooling's input: several sizes give the same number of windows.
    pub(crate) size: [usize; 2],
}

impl MaxPool2dGrad {
    fn shape(&self, index: &TensorType, dy: &TensorType) -> Result<PoolShape, String> {
        need_dtype("the index", index, DType::I32)?;
        need_dtype("the gradient", dy, DType::F32)?;
        if index.dims != dy.dims {
            return Err(format!("index {index} and gradient {dy} differ"));
        }
        self.pool.shape_of_result(dy, self.size)
    }
}

impl Rule for MaxPool2dGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(vec![TensorType::f32(self.shape(&inputs[0], &inputs[1])?.x())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (index, up) = (vjp.inputs[0], vjp.grad());
        let d = vjp.g.apply(Payload::MaxPool2dPick(MaxPool2dPick { pool: self.pool }), &[index, up]);
        vjp.set(1, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (index, dy) = (inputs[0], inputs[1]);
        let mut dx = Array::filled(&outputs[0], R::of(0.0));
        if let Ok(s) = self.shape(&index.ty, &dy.ty) {
            s.each_tap(|window, tap, input| {
                if index.at(window).f64() == tap as f64 {
                    let at = dx.offset(input);
                    dx.data[at] += dy.at(window);
                }
            });
        }
        vec![dx]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (index, dy) = (&io.inputs[0], &io.inputs[1]);
        let Ok(s) = self.shape(index, dy) else { return Lowering::Leaf };
        let walk = s.over_inputs();
        let mut body = Body::new();
        let winner = body.load(0, index, walk.access(Scalar::I32(-1)));
        let d = body.load(1, dy, walk.access(Scalar::f32(0.0)));
        let tap = body.expr.index(walk.tap(self.pool.kernel));
        let mine = body.expr.binary(BinaryFn::Eq, winner, tap);
        let zero = body.expr.f32(0.0);
        let d = body.expr.select(mine, d, zero);
        body.output(d);
        io.loop_of(walk.sum(body))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(pool, x): (Pool, [usize; 4])| {
            let y = pool.shape("x", &TensorType::f32(x)).ok()?.y();
            let taps = (pool.kernel[0] * pool.kernel[1]) as i32;
            let op = MaxPool2dGrad { pool, size: [x[2], x[3]] };
            Some((op, vec![SampleInput::ids(&y, taps), SampleInput::f32(&y)]))
        };
        pool_samples().into_iter().filter_map(sample).collect()
    }
}

//! The elements that maximum pooling chose: the gradient of its gradient.

use super::{MaxPool2dGrad, Pool, PoolShape, pool_samples};
use crate::array::Array;
use crate::loops::Body;
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[n, c, i, j] = u[n, c, r, s]` where the winning tap of window (i, j) sees (r, s), and 0 where it sees padding; inputs
/// are the index of the winning tap `[N, C, OH, OW]` and u `[N, C, H, W]`. The transpose of [`MaxPool2dGrad`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct MaxPool2dPick {
    #[serde(flatten)]
    pub(crate) pool: Pool,
}

impl MaxPool2dPick {
    fn shape(&self, index: &TensorType, u: &TensorType) -> Result<PoolShape, String> {
        need_dtype("the index", index, DType::I32)?;
        let shape = self.pool.shape("the input", u)?;
        if index.dims == shape.y() {
            return Ok(shape);
        }
        Err(format!("the index is {index}, the windows of {u} are {:?}", shape.y()))
    }
}

impl Rule for MaxPool2dPick {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(vec![TensorType::f32(self.shape(&inputs[0], &inputs[1])?.y())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[1]);
        let op = MaxPool2dGrad { pool: self.pool, size: [dims[2], dims[3]] };
        let (index, up) = (vjp.inputs[0], vjp.grad());
        let d = vjp.g.apply(Payload::MaxPool2dGrad(op), &[index, up]);
        vjp.set(1, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (index, u) = (inputs[0], inputs[1]);
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        if let Ok(s) = self.shape(&index.ty, &u.ty) {
            s.each_tap(|window, tap, input| {
                if index.at(window).f64() == tap as f64 {
                    let at = y.offset(window);
                    y.data[at] = u.at(input);
                }
            });
        }
        vec![y]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (index, u) = (&io.inputs[0], &io.inputs[1]);
        let Ok(s) = self.shape(index, u) else { return Lowering::Leaf };
        let walk = s.over_windows();
        let mut body = Body::new();
        let own = crate::index::Access::broadcast(&index.dims, &walk.rows);
        let winner = body.load(0, index, own);
        let x = body.load(1, u, walk.access(Scalar::f32(0.0)));
        let tap = body.expr.index(walk.tap(self.pool.kernel));
        let mine = body.expr.binary(BinaryFn::Eq, winner, tap);
        let zero = body.expr.f32(0.0);
        let x = body.expr.select(mine, x, zero);
        body.output(x);
        io.loop_of(walk.sum(body))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(pool, x): (Pool, [usize; 4])| {
            let y = pool.shape("x", &TensorType::f32(x)).ok()?.y();
            let taps = (pool.kernel[0] * pool.kernel[1]) as i32;
            Some((MaxPool2dPick { pool }, vec![SampleInput::ids(&y, taps), SampleInput::f32(&x)]))
        };
        pool_samples().into_iter().filter_map(sample).collect()
    }
}

//! Gradient of a convolution with respect to its weight.

use super::carried;
use super::conv2d::{Conv, ConvShape, conv_samples, need_image};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr, Store};
use crate::loops::{Body, Contract, LoopKind};
use crate::ops::contraction::{Conv2d, Conv2dInputGrad};
use crate::ops::window::{axis, require};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `dw[o, c, k, l] = sum over n, i, j of dy[n, o, i, j] x[n, first + c, s i + d k - p, t j + e l - q]`, where x is 0 in the
/// padding; inputs are x `[N, C, H, W]` and dy `[N, O, OH, OW]`, the result is `[O, C / groups, kernel]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Conv2dWeightGrad {
    #[serde(flatten)]
    pub(crate) kind: Conv,
    /// Height and width of the weight: with a stride, several give the same number of windows.
    pub(crate) kernel: [usize; 2],
}

impl Conv2dWeightGrad {
    /// The gradient `like` a convolution's weight, from `[x, dy]`.
    #[track_caller]
    pub(crate) fn apply(g: &mut Graph, kind: Conv, x_dy: [Value; 2], like: Value) -> Value {
        let dims = g.dims(like);
        let kernel = [dims[2], dims[3]];
        g.apply(Payload::Conv2dWeightGrad(Conv2dWeightGrad { kind, kernel }), &x_dy)
    }

    fn shape(&self, x: &TensorType, dy: &TensorType) -> Result<ConvShape, String> {
        let (i, d) = (need_image("the input", x)?, need_image("the gradient", dy)?);
        let channels = i[1] / self.kind.groups.max(1);
        let shape = ConvShape::new(&self.kind, i, [d[1], channels, self.kernel[0], self.kernel[1]])?;
        shape.check_result(dy).map(|()| shape)
    }
}

impl Rule for Conv2dWeightGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(vec![TensorType::f32(self.shape(&inputs[0], &inputs[1])?.w())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (x, dy, up) = (vjp.inputs[0], vjp.inputs[1], vjp.grad());
        if vjp.wants(0) {
            let d = Conv2dInputGrad::apply(vjp.g, self.kind, [dy, up], x);
            vjp.set(0, d);
        }
        if vjp.wants(1) {
            let d = vjp.g.apply(Payload::Conv2d(Conv2d { kind: self.kind }), &[x, up]);
            vjp.set(1, d);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, dy) = (inputs[0], inputs[1]);
        let mut dw = Array::filled(&outputs[0], R::of(0.0));
        if let Ok(s) = self.shape(&x.ty, &dy.ty) {
            s.each_product(|xi, wi, yi| dw.data[wi] += x.data[xi] * dy.data[yi]);
        }
        vec![dw]
    }

    /// Implicit GEMM with m = output channels, n = (input channels, taps), k = (batch, height, width).
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, dy) = (&io.inputs[0], &io.inputs[1]);
        let Ok(s) = self.shape(x, dy) else { return Lowering::Leaf };
        let ([h, v], batch) = (s.spans, s.batch());
        let b = batch.len();
        let (m, n, k) = (vec![s.o], vec![s.c, h.kernel, v.kernel], vec![s.n, h.output, v.output]);
        let ya = [batch.as_slice(), &m, &k].concat();
        let xa = [batch.as_slice(), &n, &k].concat();
        let wa = [batch.as_slice(), &m, &n].concat();
        let at = |i: usize| axis(&xa, b + i);
        let rows = [h.position_index(&at(4), &at(1)), v.position_index(&at(5), &at(2))];
        let mut valid = Vec::new();
        for (r, span) in rows.iter().zip(&s.spans) {
            require(&mut valid, r, span.input, &xa);
        }
        let [row, col] = rows;
        let x_access = Access::at(vec![at(3), s.channel(&xa, b), row, col]).when(valid, Scalar::f32(0.0));
        let [image, i, j] = [1, 2, 3].map(|i| axis(&ya, b + i));
        let y_access = Access::at(vec![image, s.channel(&ya, b), i, j]);
        let mut coords: Vec<IndexExpr> = (b..b + 4).map(IndexExpr::axis).collect();
        coords[0] = s.channel(&wa, b);
        io.loop_of(LoopKind::Contract(Contract {
            a: Body::of_load(1, dy, y_access),
            b: Body::of_load(0, x, x_access),
            batch,
            m,
            n,
            k,
            more: Vec::new(),
            epilogue: carried(),
            stores: vec![Store { result: 0, coords }],
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(kind, x, w): (Conv, [usize; 4], [usize; 4])| {
            let shape = ConvShape::new(&kind, x, w).ok()?;
            let op = Conv2dWeightGrad { kind, kernel: [w[2], w[3]] };
            Some((op, vec![SampleInput::f32(&x), SampleInput::f32(&shape.y())]))
        };
        conv_samples().into_iter().filter_map(sample).collect()
    }
}

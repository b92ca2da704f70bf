//! Maximum pooling.

use super::{MaxPool2dGrad, Pool, PoolShape, pool_samples};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Domain, IndexExpr};
use crate::loops::{Body, Combine};
use crate::ops::window::Window2d;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar, ScalarId};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[n, c, i, j] = max over k, l of x[n, c, s i + d k - p, t j + e l - q]`, over the inputs alone: padding never wins.
///
/// Results: the maximum, and the row-major number `k KW + l` of the tap that sees its first occurrence. NaN wins, the
/// first one. x is `[N, C, H, W]`, the results `[N, C, OH, OW]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct MaxPool2d {
    #[serde(flatten)]
    pub(crate) pool: Pool,
}

/// Number of the first tap of a window that sees an input: before it lies the padding, `(p - s i) / d` taps of it, if any.
fn first_tap(body: &mut Body, s: &PoolShape) -> ScalarId {
    let first = |body: &mut Body, i: usize| {
        let span = s.spans[i];
        let zero = body.expr.constant(Scalar::I32(0));
        if span.before == 0 {
            return zero;
        }
        let outside = IndexExpr::axis(2 + i).times(-(span.stride as i64)).plus_constant(span.before as i64);
        let spacing = span.dilation as i64;
        let taps = outside.plus_constant(spacing - 1).div(spacing, Domain::of(&s.y()));
        let padded = body.expr.index(taps);
        body.expr.binary(BinaryFn::Max, padded, zero)
    };
    let (row, col) = (first(body, 0), first(body, 1));
    let width = body.expr.constant(Scalar::I32(s.spans[1].kernel as i32));
    let row = body.expr.mul(row, width);
    body.expr.add(row, col)
}

impl Rule for MaxPool2d {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let dims = self.pool.shape("the input", &inputs[0])?.y();
        Ok(vec![TensorType::f32(dims), TensorType::new(DType::I32, dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[0]);
        let op = MaxPool2dGrad { pool: self.pool, size: [dims[2], dims[3]] };
        let (index, dy) = (vjp.outputs[1], vjp.grad());
        let dx = vjp.g.apply(Payload::MaxPool2dGrad(op), &[index, dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        let mut index = Array::filled(&outputs[1], R::of(-1.0));
        if let Ok(s) = self.pool.shape("x", &inputs[0].ty) {
            s.each_tap(|window, tap, input| {
                let (at, v) = (y.offset(window), inputs[0].at(input));
                let old = y.data[at].f64();
                let first = index.data[at].f64() < 0.0;
                if first || (!old.is_nan() && (v.f64() > old || v.f64().is_nan())) {
                    y.data[at] = v;
                    index.data[at] = R::of(tap as f64);
                }
            });
        }
        vec![y, index]
    }

    /// Padding reads as -inf. It can come first only in a window whose inputs are all -inf, and then the first tap that
    /// sees an input is the answer.
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let Ok(s) = self.pool.shape("x", x) else { return Lowering::Leaf };
        let walk = s.over_windows();
        let lowest = Scalar::f32(f32::NEG_INFINITY);
        let body = Body::of_load(0, x, walk.access(lowest));
        let mut row_body = Body::new();
        let (y, mut index) = (row_body.expr.carry(0, DType::F32), row_body.expr.carry(1, DType::I32));
        if s.spans.iter().any(|span| span.before > 0) {
            let first = first_tap(&mut row_body, &s);
            let lowest = row_body.expr.constant(lowest);
            let nothing_above = row_body.expr.binary(BinaryFn::Eq, y, lowest);
            index = row_body.expr.select(nothing_above, first, index);
        }
        row_body.output(y);
        row_body.output(index);
        io.loop_of(walk.reduce(body, Combine::MaxIndex, row_body))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(pool, x): (Pool, [usize; 4])| (MaxPool2d { pool }, vec![SampleInput::distinct(&x)]);
        pool_samples().into_iter().map(sample).collect()
    }
}

impl Graph {
    /// Maximum over windows of `[N, C, H, W]`, and the number `k KW + l` (`i32`) of the tap with its first occurrence.
    ///
    /// Recorded as errors: another rank or dtype, a kernel, stride or dilation of 0, a window larger than the padded input,
    /// padding so wide that a window would see nothing else.
    #[track_caller]
    pub fn max_pool2d_indices(&mut self, x: Value, kernel: [usize; 2], window: Window2d) -> (Value, Value) {
        let op = MaxPool2d { pool: Pool { kernel, window } };
        let all = self.apply_all(Payload::MaxPool2d(op), &[x]);
        (all[0], all[1])
    }

    /// Maximum over windows of `[N, C, H, W]`; NaN wins, padding never does, and the gradient goes to the first maximum.
    /// Errors as [`Graph::max_pool2d_indices`].
    #[track_caller]
    pub fn max_pool2d(&mut self, x: Value, kernel: [usize; 2], window: Window2d) -> Value {
        self.max_pool2d_indices(x, kernel, window).0
    }

    /// Maximum over windows of `[N, C, L]`; of `window` only the numbers for the width count. Otherwise as
    /// [`Graph::max_pool2d`].
    #[track_caller]
    pub fn max_pool1d(&mut self, x: Value, kernel: usize, window: Window2d) -> Value {
        let image = self.with_height("max_pool1d", x);
        let y = self.max_pool2d(image, [1, kernel], window.along_width());
        self.drop_axes(y, &[2])
    }

    /// Maximum over all of height and width: `[N, C, H, W]` to `[N, C, 1, 1]`; NaN wins, and the gradient goes to the
    /// first maximum.
    #[track_caller]
    pub fn global_max_pool2d(&mut self, x: Value) -> Value {
        let y = self.max(x, &[-2, -1]);
        let rank = self.dims(y).len();
        self.insert_axes(y, &[rank, rank + 1])
    }
}

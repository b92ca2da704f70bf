//! Average pooling.

use super::{AvgPool2dGrad, Pool, PoolShape, pool_samples};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Domain, IndexExpr};
use crate::loops::{Body, Combine};
use crate::ops::window::{Span, Window2d, axis};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar, ScalarId};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[n, c, i, j] = sum over k, l of x[n, c, s i + k - p, t j + l - q] / count`, where x is 0 in the padding and the count
/// is the part of the window inside the padded input if padding counts (`KH KW` unless a window of ceil mode ends beyond
/// it), else the number of inputs the window sees. x is `[N, C, H, W]`, y `[N, C, OH, OW]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct AvgPool2d {
    #[serde(flatten)]
    pub(crate) pool: Pool,
    pub(crate) count_padding: bool,
}

/// The extents of an average pooling: taps side by side.
pub(super) fn undilated(shape: PoolShape) -> Result<PoolShape, String> {
    match shape.spans.iter().find(|span| span.dilation > 1) {
        Some(span) => Err(format!("averages are over neighbours, the dilation is {}", span.dilation)),
        None => Ok(shape),
    }
}

/// What the sum of a window is divided by; counted tap by tap, for references.
pub(super) fn counted(s: &PoolShape, window: &[usize], count_padding: bool) -> f64 {
    let counts = |span: &Span, o: usize| {
        let padded = span.before + span.input + span.after;
        let inside = |k: &usize| span.position(o, *k).is_some();
        let within = |k: &usize| span.stride * o + k < padded;
        (0..span.kernel).filter(|k| if count_padding { within(k) } else { inside(k) }).count()
    };
    (counts(&s.spans[0], window[2]) * counts(&s.spans[1], window[3])) as f64
}

/// What the sum of the window at these coordinates is divided by, over the axes of `domain`; at least 1 where the
/// coordinates are no window.
pub(super) fn count(
    body: &mut Body,
    s: &PoolShape,
    count_padding: bool,
    window: [&IndexExpr; 2],
    domain: &[usize],
) -> ScalarId {
    let [h, w] = [0, 1].map(|i| extent(body, s.spans[i], window[i], count_padding, domain));
    match (h, w) {
        (Extent::Known(h), Extent::Known(w)) => body.expr.f32((h * w) as f32),
        (h, w) => {
            let [h, w] = [h, w].map(|e| match e {
                Extent::Known(n) => body.expr.constant(Scalar::I32(n as i32)),
                Extent::Varies(n) => n,
            });
            let area = body.expr.mul(h, w);
            body.expr.cast(DType::F32, area)
        }
    }
}

/// How many positions of a window count along one axis.
enum Extent {
    Known(usize),
    Varies(ScalarId),
}

/// `min(start + kernel, last) - max(start, first)`, at least 1, with `start = stride o - before`, where `first..last` is the
/// input, with its padding if that counts; each limit only where it is ever reached.
fn extent(body: &mut Body, span: Span, o: &IndexExpr, count_padding: bool, domain: &[usize]) -> Extent {
    let [before, after] = if count_padding { [span.before, span.after] } else { [0; 2] };
    let (first, last) = (-(before as i64), (span.input + after) as i64);
    let start = span.position_index(o, &IndexExpr::constant(0));
    let end = start.plus_constant(span.kernel as i64);
    let furthest = (span.stride * (span.output - 1) + span.kernel) as i64 - span.before as i64;
    let (starts_outside, ends_outside) = (span.before > before, furthest > last);
    if !starts_outside && !ends_outside {
        return Extent::Known(span.kernel);
    }
    let (mut from, mut to) = (body.expr.index(start), body.expr.index(end));
    let limit = |body: &mut Body, f: BinaryFn, x: ScalarId, limit: i64| {
        let limit = body.expr.constant(Scalar::I32(limit as i32));
        body.expr.binary(f, x, limit)
    };
    if starts_outside {
        from = limit(body, BinaryFn::Max, from, first);
    }
    if ends_outside {
        to = limit(body, BinaryFn::Min, to, last);
    }
    let seen = body.expr.sub(to, from);
    let (low, high) = o.range(Domain::of(domain));
    let is_window = low >= 0 && high < span.output as i64;
    Extent::Varies(if is_window { seen } else { limit(body, BinaryFn::Max, seen, 1) })
}

impl Rule for AvgPool2d {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(vec![TensorType::f32(undilated(self.pool.shape("the input", &inputs[0])?)?.y())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[0]);
        let (pool, count_padding, size) = (self.pool, self.count_padding, [dims[2], dims[3]]);
        let dy = vjp.grad();
        let dx = vjp.g.apply(Payload::AvgPool2dGrad(AvgPool2dGrad { pool, count_padding, size }), &[dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        if let Ok(s) = self.pool.shape("x", &inputs[0].ty) {
            s.each_tap(|window, _, input| {
                let at = y.offset(window);
                y.data[at] += inputs[0].at(input);
            });
            let sums = y;
            y = Array::build(&outputs[0], |p| sums.at(p) / R::of(counted(&s, p, self.count_padding)));
        }
        vec![y]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let Ok(s) = self.pool.shape("x", x) else { return Lowering::Leaf };
        let walk = s.over_windows();
        let body = Body::of_load(0, x, walk.access(Scalar::f32(0.0)));
        let mut row_body = Body::new();
        let sum = row_body.expr.carry(0, DType::F32);
        let window = [2, 3].map(|i| axis(&walk.rows, i));
        let n = count(&mut row_body, &s, self.count_padding, [&window[0], &window[1]], &walk.rows);
        let y = row_body.expr.div(sum, n);
        row_body.output(y);
        io.loop_of(walk.reduce(body, Combine::Sum, row_body))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(i, (pool, x)): (usize, (Pool, [usize; 4]))| {
            let both = if i % 3 == 0 { vec![true, false] } else { vec![i % 3 == 1] };
            both.into_iter()
                .map(move |count_padding| (AvgPool2d { pool, count_padding }, vec![SampleInput::f32(&x)]))
        };
        pool_samples().into_iter().enumerate().flat_map(sample).collect()
    }
}

impl Graph {
    /// Average over windows of `[N, C, H, W]`. With `count_padding`, the padding counts as zeros that were averaged
    /// (PyTorch's default); without, the sum is divided by the number of inputs the window sees.
    ///
    /// A window of ceil mode never counts what lies beyond the padding.
    ///
    /// Recorded as errors: another rank or dtype, a kernel or stride of 0, a kernel larger than the padded input, padding
    /// not less than the kernel, a dilation.
    #[track_caller]
    pub fn avg_pool2d(
        &mut self,
        x: Value,
        kernel: [usize; 2],
        window: Window2d,
        count_padding: bool,
    ) -> Value {
        self.apply(Payload::AvgPool2d(AvgPool2d { pool: Pool { kernel, window }, count_padding }), &[x])
    }

    /// Average over windows of `[N, C, L]`; of `window` only the numbers for the width count. Otherwise as
    /// [`Graph::avg_pool2d`].
    #[track_caller]
    pub fn avg_pool1d(&mut self, x: Value, kernel: usize, window: Window2d, count_padding: bool) -> Value {
        let image = self.with_height("avg_pool1d", x);
        let y = self.avg_pool2d(image, [1, kernel], window.along_width(), count_padding);
        self.drop_axes(y, &[2])
    }

    /// Average over all of height and width: `[N, C, H, W]` to `[N, C, 1, 1]`.
    #[track_caller]
    pub fn global_avg_pool2d(&mut self, x: Value) -> Value {
        self.mean_keep(x, &[-2, -1])
    }
}

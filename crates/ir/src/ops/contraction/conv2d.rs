//! Two-dimensional convolution (cross-correlation, as everywhere in deep learning).

use super::carried;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr, Store};
use crate::loops::{Body, Contract, LoopKind};
use crate::ops::contraction::{Conv2dInputGrad, Conv2dWeightGrad};
use crate::ops::rule::need_dtype;
use crate::ops::window::{Span, Window2d, axis, require};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[n, o, i, j] = sum over c, k, l of x[n, first + c, s i + d k - p, t j + e l - q] w[o, c, k, l]`, where x is 0 in the
/// padding; x is `[N, C, H, W]`, w `[O, C / groups, KH, KW]`, y `[N, O, OH, OW]` with
/// `OH = floor((H + padding - d (KH - 1) - 1) / s) + 1`. `first` is the first channel of the group that o lies in: each group
/// of `O / groups` outputs sees `C / groups` channels.
///
/// The operation is bilinear. With its two gradients it is closed under differentiation: all three are partial sums of the
/// same products `x w y`, see [`ConvShape`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Conv2d {
    #[serde(flatten)]
    pub(crate) kind: Conv,
}

/// What a convolution and its gradients have in common: windows, and groups of channels that do not see each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Conv {
    #[serde(flatten)]
    pub(crate) window: Window2d,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) groups: usize,
}

fn one() -> usize {
    1
}

fn is_one(n: &usize) -> bool {
    *n == 1
}

/// The extents of a convolution: batch, groups, output and input channels of one group, height and width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvShape {
    pub(crate) n: usize,
    groups: usize,
    pub(crate) o: usize,
    pub(crate) c: usize,
    pub(crate) spans: [Span; 2],
}

/// Fails unless a type is `f32` with four dimensions.
pub(super) fn need_image(what: &str, ty: &TensorType) -> Result<[usize; 4], String> {
    need_dtype(what, ty, DType::F32)?;
    let dims = ty.dims.as_slice().try_into();
    dims.map_err(|_| format!("{what} must have four dimensions, it is {ty}"))
}

impl ConvShape {
    /// The extents, from those of input and weight.
    pub(super) fn new(kind: &Conv, x: [usize; 4], w: [usize; 4]) -> Result<Self, String> {
        let groups = kind.groups;
        if groups == 0 || !x[1].is_multiple_of(groups) || !w[0].is_multiple_of(groups) {
            return Err(format!(
                "{} input and {} output channels do not split into {groups} groups",
                x[1], w[0]
            ));
        }
        if x[1] / groups != w[1] {
            let share = if groups == 1 { String::new() } else { format!(", {} per group", x[1] / groups) };
            return Err(format!("the input has {} channels{share}, the weight takes {}", x[1], w[1]));
        }
        if kind.window.ceil {
            return Err("ceil mode is for poolings".into());
        }
        let spans = kind.window.spans([x[2], x[3]], [w[2], w[3]])?;
        Ok(ConvShape { n: x[0], groups, o: w[0] / groups, c: w[1], spans })
    }

    /// Dimensions of the input.
    pub(super) fn x(&self) -> [usize; 4] {
        [self.n, self.groups * self.c, self.spans[0].input, self.spans[1].input]
    }

    /// Dimensions of the weight.
    pub(super) fn w(&self) -> [usize; 4] {
        [self.groups * self.o, self.c, self.spans[0].kernel, self.spans[1].kernel]
    }

    /// Dimensions of the result.
    pub(super) fn y(&self) -> [usize; 4] {
        [self.n, self.groups * self.o, self.spans[0].output, self.spans[1].output]
    }

    /// Batch extents of the contraction: the groups, if there are several.
    pub(super) fn batch(&self) -> Vec<usize> {
        if self.groups == 1 { Vec::new() } else { vec![self.groups] }
    }

    /// Channel number, among those of all groups, of the one along axis `i` of these extents; the group is axis 0.
    pub(super) fn channel(&self, extents: &[usize], i: usize) -> IndexExpr {
        let own = axis(extents, i);
        if self.groups == 1 { own } else { own.plus(&IndexExpr::axis(0).times(extents[i] as i64)) }
    }

    /// Fails unless a gradient has the dimensions of the result.
    pub(super) fn check_result(&self, dy: &TensorType) -> Result<(), String> {
        if dy.dims == self.y() {
            return Ok(());
        }
        Err(format!("the gradient is {dy}, the result it belongs to {}", TensorType::f32(self.y())))
    }

    /// Calls `f` with the flat offsets in x, w and y of every product of the convolution outside the padding.
    pub(super) fn each_product(&self, mut f: impl FnMut(usize, usize, usize)) {
        let ([h, w], at) =
            (self.spans, |d: [usize; 4], p: [usize; 4]| ((p[0] * d[1] + p[1]) * d[2] + p[2]) * d[3] + p[3]);
        crate::array::each_point(&[self.n, self.groups * self.o, self.c, h.output, w.output], |p| {
            let [n, o, c, i, j] = [p[0], p[1], p[2], p[3], p[4]];
            let channel = o / self.o * self.c + c;
            for k in 0..h.kernel {
                for l in 0..w.kernel {
                    if let (Some(r), Some(s)) = (h.position(i, k), w.position(j, l)) {
                        f(
                            at(self.x(), [n, channel, r, s]),
                            at(self.w(), [o, c, k, l]),
                            at(self.y(), [n, o, i, j]),
                        );
                    }
                }
            }
        });
    }
}

impl Rule for Conv2d {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (x, w) = (need_image("the input", &inputs[0])?, need_image("the weight", &inputs[1])?);
        Ok(vec![TensorType::f32(ConvShape::new(&self.kind, x, w)?.y())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (x, w, dy) = (vjp.inputs[0], vjp.inputs[1], vjp.grad());
        if vjp.wants(0) {
            let dx = Conv2dInputGrad::apply(vjp.g, self.kind, [dy, w], x);
            vjp.set(0, dx);
        }
        if vjp.wants(1) {
            let dw = Conv2dWeightGrad::apply(vjp.g, self.kind, [x, dy], w);
            vjp.set(1, dw);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, w) = (inputs[0], inputs[1]);
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        let shape =
            need_image("x", &x.ty).and_then(|d| ConvShape::new(&self.kind, d, need_image("w", &w.ty)?));
        if let Ok(s) = shape {
            s.each_product(|xi, wi, yi| y.data[yi] += x.data[xi] * w.data[wi]);
        }
        vec![y]
    }

    /// Implicit GEMM with m = output channels, so that n = (batch, height, width) runs along the rows of x and y.
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, w) = (&io.inputs[0], &io.inputs[1]);
        let shape = need_image("x", x).and_then(|d| ConvShape::new(&self.kind, d, need_image("w", w)?));
        let Ok(s) = shape else { return Lowering::Leaf };
        let ([h, v], batch) = (s.spans, s.batch());
        let b = batch.len();
        let (m, n, k) = (vec![s.o], vec![s.n, h.output, v.output], vec![s.c, h.kernel, v.kernel]);
        let wa = [batch.as_slice(), &m, &k].concat();
        let xa = [batch.as_slice(), &n, &k].concat();
        let at = |i: usize| axis(&xa, b + i);
        let rows = [h.position_index(&at(1), &at(4)), v.position_index(&at(2), &at(5))];
        let mut valid = Vec::new();
        for (r, span) in rows.iter().zip(&s.spans) {
            require(&mut valid, r, span.input, &xa);
        }
        let [row, col] = rows;
        let x_access = Access::at(vec![at(0), s.channel(&xa, b + 3), row, col]).when(valid, Scalar::f32(0.0));
        let [c, kh, kw] = [1, 2, 3].map(|i| axis(&wa, b + i));
        let (epilogue, ya) = (carried(), [batch.as_slice(), &m, &n].concat());
        let [image, i, j] = [1, 2, 3].map(|i| axis(&ya, b + i));
        io.loop_of(LoopKind::Contract(Contract {
            a: Body::of_load(1, w, Access::at(vec![s.channel(&wa, b), c, kh, kw])),
            b: Body::of_load(0, x, x_access),
            stores: vec![Store { result: 0, coords: vec![image, s.channel(&ya, b), i, j] }],
            batch,
            m,
            n,
            k,
            more: Vec::new(),
            epilogue,
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample =
            |(kind, x, w): ConvSample| (Conv2d { kind }, vec![SampleInput::f32(&x), SampleInput::f32(&w)]);
        conv_samples().into_iter().map(sample).collect()
    }
}

type ConvSample = (Conv, [usize; 4], [usize; 4]);

/// Windows and groups with dimensions of input and weight, for the samples of the three operations.
pub(super) fn conv_samples() -> Vec<ConvSample> {
    let w = |stride, padding| Window2d { stride, padding, ..Window2d::default() };
    let (one, two, three) = (Window2d::strided(1), Window2d::strided(2), Window2d::strided(3));
    let uneven = Window2d { dilation: [3, 2], ..w([2, 4], [[2, 1], [0, 3]]) };
    let all = vec![
        (one, 1, [1, 1, 1, 1], [1, 1, 1, 1]),
        (one, 1, [2, 3, 5, 7], [4, 3, 1, 1]),
        (one, 1, [1, 1, 6, 5], [1, 1, 3, 3]),
        (one.padded(1), 1, [2, 3, 5, 7], [5, 3, 3, 3]),
        (Window2d::same([2, 3]), 1, [1, 2, 4, 7], [3, 2, 2, 3]),
        (one.padded(4), 1, [1, 1, 3, 2], [2, 1, 5, 5]),
        (two, 1, [2, 3, 7, 9], [2, 3, 1, 1]),
        (two, 1, [1, 3, 4, 6], [2, 3, 1, 1]),
        (two.padded(1), 1, [2, 3, 8, 6], [4, 3, 3, 3]),
        (two.padded(1), 1, [1, 2, 7, 8], [3, 2, 3, 3]),
        (two.padded(2), 1, [1, 3, 8, 11], [2, 3, 5, 5]),
        (three, 1, [1, 2, 9, 12], [2, 2, 2, 3]),
        (three.padded(2), 1, [2, 1, 11, 9], [3, 1, 5, 5]),
        (w([2, 3], [[0, 1], [2, 0]]), 1, [1, 3, 6, 9], [2, 3, 2, 3]),
        (w([3, 1], [[1, 0], [0, 3]]), 1, [2, 2, 7, 5], [3, 2, 3, 2]),
        (w([3, 3], [[1, 0], [2, 1]]), 1, [1, 2, 1, 1], [2, 2, 1, 1]),
        (w([1, 2], [[3, 0], [0, 5]]), 1, [1, 1, 2, 4], [1, 1, 2, 3]),
        (one.padded(1), 1, [3, 9, 8, 8], [33, 9, 3, 3]),
        (two.padded(1), 1, [3, 13, 10, 10], [17, 13, 3, 3]),
        (one.padded(2).dilated(2), 1, [1, 2, 6, 7], [3, 2, 3, 3]),
        (two.padded(2).dilated(3), 1, [2, 2, 8, 9], [2, 2, 3, 2]),
        (uneven, 1, [1, 2, 9, 8], [3, 2, 2, 3]),
        (one.padded(1), 3, [2, 3, 5, 4], [3, 1, 3, 3]),
        (two.padded(1), 5, [1, 5, 8, 6], [10, 1, 3, 3]),
        (one, 2, [2, 6, 4, 5], [4, 3, 2, 1]),
        (uneven, 2, [1, 4, 10, 8], [6, 2, 2, 3]),
    ];
    all.into_iter().map(|(window, groups, x, w)| (Conv { window, groups }, x, w)).collect()
}

impl Graph {
    /// Convolution of `x` `[N, C, H, W]` with `w` `[O, C, KH, KW]`, giving `[N, O, OH, OW]`.
    ///
    /// Recorded as errors: other ranks or dtypes, differing channels, a stride or dilation of 0, a kernel larger than the
    /// padded input.
    #[track_caller]
    pub fn conv2d(&mut self, x: Value, w: Value, window: Window2d) -> Value {
        self.conv2d_grouped(x, w, window, 1)
    }

    /// Convolution of `x` `[N, C, H, W]` with `w` `[O, C / groups, KH, KW]`: each of the `groups` groups of neighbouring
    /// outputs sees its own group of channels; depthwise with `groups = C`. Errors as [`Graph::conv2d`], and channels that
    /// do not divide into the groups.
    #[track_caller]
    pub fn conv2d_grouped(&mut self, x: Value, w: Value, window: Window2d, groups: usize) -> Value {
        self.apply(Payload::Conv2d(Conv2d { kind: Conv { window, groups } }), &[x, w])
    }

    /// Convolution of `x` `[N, C, L]` with `w` `[O, C / groups, K]`; of `window` only the numbers for the width count.
    /// Otherwise as [`Graph::conv2d_grouped`].
    #[track_caller]
    pub fn conv1d(&mut self, x: Value, w: Value, window: Window2d, groups: usize) -> Value {
        let x = self.with_height("conv1d", x);
        let w = if x.is_poison() { x } else { self.with_height("conv1d", w) };
        let y = self.conv2d_grouped(x, w, window.along_width(), groups);
        self.drop_axes(y, &[2])
    }

    /// `[N, C, L]` as `[N, C, 1, L]`, for the operation of this name.
    #[track_caller]
    pub(crate) fn with_height(&mut self, op: &str, v: Value) -> Value {
        match self.ty(v) {
            Some(ty) if ty.rank() != 3 => {
                let reason = format!("takes three dimensions, given {ty}");
                self.fail(op, &[v], reason)
            }
            _ => self.insert_axes(v, &[2]),
        }
    }
}

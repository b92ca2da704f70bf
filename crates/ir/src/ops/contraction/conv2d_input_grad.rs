//! Gradient of a convolution with respect to its input, which is transposed convolution.

use super::carried;
use super::conv2d::{Conv, ConvShape, conv_samples, need_image};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Domain, IndexExpr, Store};
use crate::loops::{Body, Contract, LoopKind};
use crate::ops::contraction::{Conv2d, Conv2dWeightGrad};
use crate::ops::window::{Span, Window2d, axis, require};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `dx[n, c, r, s] = sum of dy[n, o, i, j] w[o, c, k, l] over all o of c's group and all windows (i, j) that see (r, s) with
/// tap (k, l)`; inputs are dy `[N, O, OH, OW]` and w `[O, C / groups, KH, KW]`, the result is `[N, C, H, W]` with
/// `H = s (OH - 1) + d (KH - 1) + 1 - padding + output_padding`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Conv2dInputGrad {
    #[serde(flatten)]
    pub(crate) kind: Conv,
    /// What the last windows leave over of height and width, less than the stride: several sizes give the same number of
    /// windows.
    pub(crate) output_padding: [usize; 2],
}

impl Conv2dInputGrad {
    /// The gradient `like` a convolution's input, from `[dy, w]`.
    #[track_caller]
    pub(crate) fn apply(g: &mut Graph, kind: Conv, dy_w: [Value; 2], like: Value) -> Value {
        let (x, w, window) = (g.dims(like), g.dims(dy_w[1]), kind.window);
        let output_padding = [0, 1].map(|i| {
            let reach = window.dilation[i] * (w[2 + i] - 1) + 1;
            (x[2 + i] + window.padding[i][0] + window.padding[i][1] - reach) % window.stride[i]
        });
        g.apply(Payload::Conv2dInputGrad(Conv2dInputGrad { kind, output_padding }), &dy_w)
    }

    fn shape(&self, dy: &TensorType, w: &TensorType) -> Result<ConvShape, String> {
        let (d, k) = (need_image("the gradient", dy)?, need_image("the weight", w)?);
        let mut size = [0; 2];
        for i in 0..2 {
            let Window2d { stride, padding, dilation, .. } = self.kind.window;
            let ([before, after], rest) = (padding[i], self.output_padding[i]);
            if rest >= stride[i] && rest > 0 {
                let name = ["height", "width"][i];
                return Err(format!(
                    "{name}: output padding {rest} must be less than the stride of {}",
                    stride[i]
                ));
            }
            let windows = d[2 + i].saturating_sub(1).saturating_mul(stride[i]);
            let taps = k[2 + i].saturating_sub(1).saturating_mul(dilation[i]);
            let padded = windows.saturating_add(taps).saturating_add(1 + rest);
            size[i] = padded.saturating_sub(before.saturating_add(after));
        }
        let channels = k[1].saturating_mul(self.kind.groups);
        let shape = ConvShape::new(&self.kind, [d[0], channels, size[0], size[1]], k)?;
        shape.check_result(dy).map(|()| shape)
    }
}

/// Where the loop finds one spatial axis: the axis numbers of position and tap in each body, and how positions split.
struct Route {
    span: Span,
    /// The batch axis over the positions modulo the stride, if the stride divides the input.
    phase: Option<usize>,
    /// Loop extent of the positions.
    positions: usize,
    /// Loop extent of the taps.
    taps: usize,
}

impl Route {
    /// Splits the axis by phases where that leaves no position over: positions of one phase meet only every `stride`-th
    /// tap, so nothing is multiplied by the zeros between the windows.
    fn new(span: Span, batch: &mut Vec<usize>) -> Self {
        if span.stride == 1 || !span.input.is_multiple_of(span.stride) {
            return Route { span, phase: None, positions: span.input, taps: span.kernel };
        }
        batch.push(span.stride);
        let (phase, positions) = (Some(batch.len() - 1), span.input / span.stride);
        Route { span, phase, positions, taps: span.taps() }
    }

    /// Position in dx of loop position `q`.
    fn position(&self, q: &IndexExpr) -> IndexExpr {
        match self.phase {
            Some(r) => q.times(self.span.stride as i64).plus(&IndexExpr::axis(r)),
            None => q.clone(),
        }
    }

    /// Window and tap for loop position `q` and loop tap `t`, and the remainder that must be 0 for them to meet.
    fn meet(&self, q: &IndexExpr, t: &IndexExpr, domain: Domain<'_>) -> (IndexExpr, IndexExpr, IndexExpr) {
        let s = self.span;
        match self.phase {
            // With phase r: q windows after the one that sees position r; without dilation that is window
            // q - t + floor((r + before) / s) with tap s t + (r + before) mod s.
            Some(r) => {
                let [window, tap, rest] = s.window_index(&IndexExpr::axis(r), t, domain);
                (window.plus(q), tap, rest)
            }
            // s window = position + before - d tap.
            None => {
                let moved = q.plus(&t.times(-(s.dilation as i64))).plus_constant(s.before as i64);
                let n = s.stride as i64;
                (moved.div(n, domain), t.clone(), moved.rem(n, domain))
            }
        }
    }
}

impl Rule for Conv2dInputGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        Ok(vec![TensorType::f32(self.shape(&inputs[0], &inputs[1])?.x())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (dy, w, up) = (vjp.inputs[0], vjp.inputs[1], vjp.grad());
        if vjp.wants(0) {
            let d = vjp.g.apply(Payload::Conv2d(Conv2d { kind: self.kind }), &[up, w]);
            vjp.set(0, d);
        }
        if vjp.wants(1) {
            let d = Conv2dWeightGrad::apply(vjp.g, self.kind, [up, dy], w);
            vjp.set(1, d);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (dy, w) = (inputs[0], inputs[1]);
        let mut dx = Array::filled(&outputs[0], R::of(0.0));
        if let Ok(s) = self.shape(&dy.ty, &w.ty) {
            s.each_product(|xi, wi, yi| dx.data[xi] += dy.data[yi] * w.data[wi]);
        }
        vec![dx]
    }

    /// Implicit GEMM with m = input channels, n = (batch, height, width), k = (output channels, taps).
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (dy, w) = (&io.inputs[0], &io.inputs[1]);
        let Ok(s) = self.shape(dy, w) else { return Lowering::Leaf };
        let mut batch = s.batch();
        let routes = s.spans.map(|span| Route::new(span, &mut batch));
        let (m, n) = (vec![s.c], vec![s.n, routes[0].positions, routes[1].positions]);
        let k = vec![s.o, routes[0].taps, routes[1].taps];
        let b = batch.len();
        let wa = [batch.as_slice(), &m, &k].concat();
        let ya = [batch.as_slice(), &n, &k].concat();
        let xa = [batch.as_slice(), &m, &n].concat();
        let mut w_coords = vec![s.channel(&wa, b + 1), axis(&wa, b)];
        let mut y_coords = vec![axis(&ya, b), s.channel(&ya, b + 3)];
        let mut x_coords = vec![axis(&xa, b + 1), s.channel(&xa, b)];
        let (mut w_valid, mut y_valid) = (Vec::new(), Vec::new());
        for (i, route) in routes.iter().enumerate() {
            let (span, q) = (route.span, axis(&ya, b + 1 + i));
            let tap = route.meet(&IndexExpr::constant(0), &axis(&wa, b + 2 + i), Domain::of(&wa)).1;
            require(&mut w_valid, &tap, span.kernel, &wa);
            w_coords.push(tap);
            let (window, tap, rest) = route.meet(&q, &axis(&ya, b + 4 + i), Domain::of(&ya));
            require(&mut y_valid, &window, span.output, &ya);
            require(&mut y_valid, &tap, span.kernel, &ya);
            require(&mut y_valid, &rest, 1, &ya);
            y_coords.push(window);
            x_coords.push(route.position(&axis(&xa, b + 2 + i)));
        }
        let zero = Scalar::f32(0.0);
        io.loop_of(LoopKind::Contract(Contract {
            a: Body::of_load(1, w, Access::at(w_coords).when(w_valid, zero)),
            b: Body::of_load(0, dy, Access::at(y_coords).when(y_valid, zero)),
            batch,
            m,
            n,
            k,
            more: Vec::new(),
            epilogue: carried(),
            stores: vec![Store { result: 0, coords: x_coords }],
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(kind, x, w): (Conv, [usize; 4], [usize; 4])| {
            let y = ConvShape::new(&kind, x, w).ok()?.y();
            let rest = |i: usize| {
                let (window, padded) =
                    (&kind.window, x[2 + i] + kind.window.padding[i].iter().sum::<usize>());
                (padded - window.dilation[i] * (w[2 + i] - 1) - 1) % window.stride[i]
            };
            let op = Conv2dInputGrad { kind, output_padding: [rest(0), rest(1)] };
            Some((op, vec![SampleInput::f32(&y), SampleInput::f32(&w)]))
        };
        conv_samples().into_iter().filter_map(sample).collect()
    }
}

impl Graph {
    /// Transposed convolution of `x` `[N, C, H, W]` with `w` `[C, O / groups, KH, KW]`, giving `[N, O, OH, OW]` with
    /// `OH = stride (H - 1) + dilation (KH - 1) + 1 - padding + output_padding`: the gradient that a convolution with these
    /// windows has with respect to its input.
    ///
    /// Recorded as errors: other ranks or dtypes, channels that do not fit or divide, an output padding not less than the
    /// stride, padding that leaves nothing.
    #[track_caller]
    pub fn conv_transpose2d(
        &mut self,
        [x, w]: [Value; 2],
        window: Window2d,
        output_padding: [usize; 2],
        groups: usize,
    ) -> Value {
        let op = Conv2dInputGrad { kind: Conv { window, groups }, output_padding };
        self.apply(Payload::Conv2dInputGrad(op), &[x, w])
    }

    /// Transposed convolution of `x` `[N, C, L]` with `w` `[C, O / groups, K]`; of `window` only the numbers for the width
    /// count. Otherwise as [`Graph::conv_transpose2d`].
    #[track_caller]
    pub fn conv_transpose1d(
        &mut self,
        [x, w]: [Value; 2],
        window: Window2d,
        output_padding: usize,
        groups: usize,
    ) -> Value {
        let x = self.with_height("conv_transpose1d", x);
        let w = if x.is_poison() { x } else { self.with_height("conv_transpose1d", w) };
        let y = self.conv_transpose2d([x, w], window.along_width(), [0, output_padding], groups);
        self.drop_axes(y, &[2])
    }
}

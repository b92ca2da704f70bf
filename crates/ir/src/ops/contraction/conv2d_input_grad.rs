//! Gradient of a convolution with respect to its input (also known as transposed convolution).

use super::carried;
use super::conv2d::{ConvShape, conv_samples, need_image};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Domain, IndexExpr, Store};
use crate::loops::{Body, Contract, LoopKind};
use crate::ops::contraction::Conv2dWeightGrad;
use crate::ops::window::{Span, Window2d, axis, require};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `dx[n, c, r, s] = sum of dy[n, o, i, j] w[o, c, k, l] over all o and all windows (i, j) that see (r, s) with tap (k, l)`;
/// inputs are dy `[N, O, OH, OW]` and w `[O, C, KH, KW]`, the result is `[N, C, size]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Conv2dInputGrad {
    #[serde(flatten)]
    pub(crate) window: Window2d,
    /// Height and width of the convolution's input: several sizes give the same number of windows.
    pub(crate) size: [usize; 2],
}

impl Conv2dInputGrad {
    /// The gradient `like` a convolution's input, from `[dy, w]`.
    #[track_caller]
    pub(crate) fn apply(g: &mut Graph, window: Window2d, dy_w: [Value; 2], like: Value) -> Value {
        let dims = g.dims(like);
        let size = [dims[2], dims[3]];
        g.apply(Payload::Conv2dInputGrad(Conv2dInputGrad { window, size }), &dy_w)
    }

    fn shape(&self, dy: &TensorType, w: &TensorType) -> Result<ConvShape, String> {
        let (d, k) = (need_image("the gradient", dy)?, need_image("the weight", w)?);
        let shape = ConvShape::new(&self.window, [d[0], k[1], self.size[0], self.size[1]], k)?;
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
            // With phase r: window q - t + floor((r + before) / s), tap s t + (r + before) mod s.
            Some(r) => {
                let [window, tap] = s.window_index(&IndexExpr::axis(r), t, domain);
                (window.plus(q), tap, IndexExpr::constant(0))
            }
            // s window = position + before - tap.
            None => {
                let moved = q.plus(&t.times(-1)).plus_constant(s.before as i64);
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
            let d = vjp.g.conv2d(up, w, self.window);
            vjp.set(0, d);
        }
        if vjp.wants(1) {
            let d = Conv2dWeightGrad::apply(vjp.g, self.window, [up, dy], w);
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
        let mut batch = Vec::new();
        let routes = s.spans.map(|span| Route::new(span, &mut batch));
        let (m, n) = (vec![s.c], vec![s.n, routes[0].positions, routes[1].positions]);
        let k = vec![s.o, routes[0].taps, routes[1].taps];
        let b = batch.len();
        let wa = [batch.as_slice(), &m, &k].concat();
        let ya = [batch.as_slice(), &n, &k].concat();
        let xa = [batch.as_slice(), &m, &n].concat();
        let mut w_coords = vec![axis(&wa, b + 1), axis(&wa, b)];
        let mut y_coords = vec![axis(&ya, b), axis(&ya, b + 3)];
        let mut x_coords = vec![axis(&xa, b + 1), axis(&xa, b)];
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
            epilogue: carried(),
            stores: vec![Store { result: 0, coords: x_coords }],
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(window, x, w): (Window2d, [usize; 4], [usize; 4])| {
            let shape = ConvShape::new(&window, x, w).ok()?;
            let op = Conv2dInputGrad { window, size: [x[2], x[3]] };
            Some((op, vec![SampleInput::f32(&shape.y()), SampleInput::f32(&w)]))
        };
        conv_samples().into_iter().filter_map(sample).collect()
    }
}

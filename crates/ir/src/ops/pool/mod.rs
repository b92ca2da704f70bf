//! Pooling over windows of the two last axes of `[N, C, H, W]`, with exact gradients.
//!
//! Every operation here walks either the windows (each over its taps) or the inputs (each over the windows that see it),
//! so all are reductions that own what they write: no scatter, a fixed order, the same bits every time.

mod average;
mod average_grad;
mod max;
mod max_grad;
mod max_pick;

pub(crate) use average::AvgPool2d;
pub(crate) use average_grad::AvgPool2dGrad;
pub(crate) use max::MaxPool2d;
pub(crate) use max_grad::MaxPool2dGrad;
pub(crate) use max_pick::MaxPool2dPick;

use super::rule::need_dtype;
use super::window::{Span, Window2d, axis, require, sum_along};
use crate::index::{Access, Bound, Domain, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::scalar::Scalar;
use crate::types::{DType, MAX_ELEMENTS, TensorType};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// The attributes of a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Pool {
    pub(crate) kernel: [usize; 2],
    #[serde(flatten)]
    pub(crate) window: Window2d,
}

impl Pool {
    /// The extents over an input of this type.
    fn shape(&self, what: &str, x: &TensorType) -> Result<PoolShape, String> {
        need_dtype(what, x, DType::F32)?;
        let [n, c, h, w] = x.dims[..] else {
            return Err(format!("{what} must have four dimensions, it is {x}"));
        };
        let [kh, kw] = self.kernel;
        if kh.saturating_mul(kw) > MAX_ELEMENTS {
            return Err(format!("the kernel of {kh} by {kw} has more than {MAX_ELEMENTS} taps"));
        }
        let spans = self.window.spans([h, w], self.kernel)?;
        for Span { input, kernel, dilation, before, after, .. } in spans {
            if before.max(after) > dilation * (kernel - 1) || (before > 0 && dilation > input) {
                return Err(format!(
                    "padding {before} and {after} of {input} must be less than the kernel of {kernel} and taps at most \
                     {input} apart, they are {dilation}: a window would see padding only"
                ));
            }
        }
        Ok(PoolShape { n, c, spans })
    }

    /// The extents, from the gradient of the result and the height and width of the input.
    fn shape_of_result(&self, dy: &TensorType, size: [usize; 2]) -> Result<PoolShape, String> {
        let [n, c, ..] = dy.dims[..] else {
            return Err(format!("the gradient must have four dimensions, it is {dy}"));
        };
        let shape = self.shape("the input", &TensorType::f32([n, c, size[0], size[1]]))?;
        if dy.dims == shape.y() {
            return Ok(shape);
        }
        Err(format!("the gradient is {dy}, the result it belongs to {}", TensorType::f32(shape.y())))
    }
}

/// The extents of a pooling: batch, channels, height and width. Every window sees at least one input.
#[derive(Clone, Copy, Debug)]
struct PoolShape {
    n: usize,
    c: usize,
    spans: [Span; 2],
}

impl PoolShape {
    fn x(&self) -> [usize; 4] {
        [self.n, self.c, self.spans[0].input, self.spans[1].input]
    }

    fn y(&self) -> [usize; 4] {
        [self.n, self.c, self.spans[0].output, self.spans[1].output]
    }

    /// Calls `f` with the point of every window, the row-major number of every tap that sees an input, and that input.
    fn each_tap(&self, mut f: impl FnMut(&[usize], usize, &[usize])) {
        let [h, w] = self.spans;
        crate::array::each_point(&self.y(), |p| {
            for k in 0..h.kernel {
                for l in 0..w.kernel {
                    if let (Some(r), Some(s)) = (h.position(p[2], k), w.position(p[3], l)) {
                        f(p, k * w.kernel + l, &[p[0], p[1], r, s]);
                    }
                }
            }
        });
    }

    /// All windows, each over all its taps.
    fn over_windows(&self) -> Walk {
        let [h, w] = self.spans;
        let (rows, cols) = (self.y(), vec![h.kernel, w.kernel]);
        let domain = [rows.as_slice(), &cols].concat();
        let at = |i: usize| axis(&domain, i);
        let mut walk = Walk::new(rows, cols, [at(0), at(1)]);
        for (i, span) in self.spans.iter().enumerate() {
            let position = span.position_index(&at(2 + i), &at(4 + i));
            require(&mut walk.valid, &position, span.input, &domain);
            walk.coords.push(position);
            walk.taps.push(at(4 + i));
        }
        walk
    }

    /// All inputs, each over the windows that see it.
    fn over_inputs(&self) -> Walk {
        let (rows, cols) = (self.x(), self.spans.iter().map(Span::taps).collect::<Vec<_>>());
        let domain = [rows.as_slice(), &cols].concat();
        let at = |i: usize| axis(&domain, i);
        let mut walk = Walk::new(rows, cols, [at(0), at(1)]);
        for (i, span) in self.spans.iter().enumerate() {
            let [window, tap, rest] = span.window_index(&at(2 + i), &at(4 + i), Domain::of(&domain));
            require(&mut walk.valid, &window, span.output, &domain);
            require(&mut walk.valid, &tap, span.kernel, &domain);
            require(&mut walk.valid, &rest, 1, &domain);
            walk.coords.push(window);
            walk.taps.push(tap);
        }
        walk
    }
}

/// A reduction over pairs of window and input: rows are one of the two, columns lead to the other.
struct Walk {
    rows: Vec<usize>,
    cols: Vec<usize>,
    /// Coordinates of the other one.
    coords: Vec<IndexExpr>,
    /// Where there is another one.
    valid: Vec<Bound>,
    /// Tap along height and width with which they meet.
    taps: Vec<IndexExpr>,
}

impl Walk {
    fn new(rows: [usize; 4], cols: Vec<usize>, image: [IndexExpr; 2]) -> Self {
        Walk { rows: rows.to_vec(), cols, coords: image.to_vec(), valid: Vec::new(), taps: Vec::new() }
    }

    fn domain(&self) -> Vec<usize> {
        [self.rows.as_slice(), &self.cols].concat()
    }

    /// Reads the other one.
    fn access(&self, fill: Scalar) -> Access {
        Access::at(self.coords.clone()).when(self.valid.clone(), fill)
    }

    /// Row-major number of the tap.
    fn tap(&self, kernel: [usize; 2]) -> IndexExpr {
        IndexExpr::flatten(&self.taps, &kernel)
    }

    /// The loop; every output of `row_body` is stored in place.
    fn reduce(self, body: Body, combine: Combine, row_body: Body) -> LoopKind {
        let coords: Vec<IndexExpr> = (0..4).map(|i| axis(&self.rows, i)).collect();
        let store = |result| Store { result, coords: coords.clone() };
        LoopKind::Row(Row {
            row_stores: (0..row_body.expr.outputs().len()).map(store).collect(),
            rows: self.rows,
            cols: self.cols,
            phases: vec![Phase { body, combines: vec![combine] }],
            row_body,
            col_body: Body::new(),
            col_stores: Vec::new(),
        })
    }

    /// The sum of `body`, stored in place.
    fn sum(self, body: Body) -> LoopKind {
        sum_along(self.rows, self.cols, body)
    }
}

/// Poolings with dimensions of the input, for the samples of all operations.
fn pool_samples() -> Vec<(Pool, [usize; 4])> {
    let p = |kernel, window| Pool { kernel, window };
    let w = |stride, padding| Window2d { stride, padding, ..Window2d::default() };
    let (one, two, three) = (Window2d::strided(1), Window2d::strided(2), Window2d::strided(3));
    vec![
        (p([1, 1], one), [1, 1, 1, 1]),
        (p([2, 2], two), [2, 3, 4, 6]),
        (p([2, 2], two), [1, 2, 7, 5]),
        (p([3, 3], two.padded(1)), [2, 3, 7, 9]),
        (p([3, 3], one.padded(1)), [1, 2, 5, 4]),
        (p([2, 3], one), [1, 1, 5, 7]),
        (p([5, 5], three.padded(4)), [1, 2, 7, 5]),
        (p([1, 2], three), [2, 1, 7, 8]),
        (p([2, 3], w([3, 2], [[1, 0], [0, 2]])), [1, 3, 8, 5]),
        (p([3, 2], w([1, 3], [[0, 2], [1, 1]])), [2, 1, 3, 11]),
        (p([4, 7], two.padded(3)), [1, 2, 1, 1]),
        (p([3, 3], two.padded(1)), [3, 17, 11, 11]),
        (p([2, 3], three.ceil()), [1, 2, 7, 5]),
        (p([3, 2], w([2, 3], [[1, 1], [0, 1]]).ceil()), [2, 1, 6, 6]),
    ]
}

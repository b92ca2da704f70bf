//! Interpolation of a tensor along axes.

use super::{InterpolateGrad, Interpolation, Line, each_share};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Domain, IndexExpr};
use crate::loops::Body;
use crate::ops::reduce::check_axes;
use crate::ops::rule::need_dtype;
use crate::ops::window::require;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{Scalar, ScalarId};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// What an axis becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// This extent.
    Size(usize),
    /// So many times its extent.
    Scale(usize),
}

impl Extent {
    fn of(self, input: usize) -> usize {
        match self {
            Extent::Size(n) => n,
            Extent::Scale(n) => input.saturating_mul(n),
        }
    }
}

/// `y[.., i, ..] = sum over j of weight(i, j) x[.., j, ..]` along each of the sorted axes; see [`Interpolation`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Interpolate {
    pub(crate) to: Vec<(usize, Extent)>,
    pub(crate) mode: Interpolation,
}

/// One of the elements that a result takes: coordinates and the product of the weights so far.
type Corner = (Vec<IndexExpr>, Option<ScalarId>);

impl Interpolate {
    fn axes(&self) -> Vec<usize> {
        self.to.iter().map(|t| t.0).collect()
    }

    fn lines(&self, x: &TensorType) -> Result<Vec<Line>, String> {
        need_dtype("the operand", x, DType::F32)?;
        check_axes(&self.axes(), x)?;
        self.to.iter().map(|(axis, to)| Line::new(self.mode, x.dims[*axis], to.of(x.dims[*axis]))).collect()
    }

    /// The elements that a result takes, neighbour by neighbour along each axis.
    fn corners(&self, body: &mut Body, lines: &[Line], y: &[usize]) -> Vec<Corner> {
        let mut corners: Vec<Corner> = vec![((0..y.len()).map(IndexExpr::axis).collect(), None)];
        for (line, axis) in lines.iter().zip(self.axes()) {
            let i = IndexExpr::axis(axis);
            let low = line.position(&i).div(line.d, Domain::of(y));
            let neighbours =
                if line.is_weighted() { vec![low.clone(), low.plus_constant(1)] } else { vec![low] };
            let weighted: Vec<(IndexExpr, Option<ScalarId>)> = neighbours
                .into_iter()
                .map(|j| (j.clone(), line.is_weighted().then(|| line.weight(body, &i, &j))))
                .collect();
            let mut next = Vec::new();
            for (coords, weight) in corners {
                for (j, share) in &weighted {
                    let mut coords = coords.clone();
                    coords[axis] = j.clone();
                    next.push((coords, product(body, weight, *share)));
                }
            }
            corners = next;
        }
        corners
    }
}

/// The product of what is there.
pub(super) fn product(body: &mut Body, a: Option<ScalarId>, b: Option<ScalarId>) -> Option<ScalarId> {
    match (a, b) {
        (Some(a), Some(b)) => Some(body.expr.mul(a, b)),
        (a, b) => a.or(b),
    }
}

impl Rule for Interpolate {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let mut y = inputs[0].clone();
        for (line, axis) in self.lines(&y)?.iter().zip(self.axes()) {
            y.dims[axis] = line.output;
        }
        Ok(vec![y])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[0]);
        let sizes = self.axes().into_iter().map(|a| (a, dims[a])).collect();
        let dy = vjp.grad();
        let op = InterpolateGrad { sizes, mode: self.mode };
        let dx = vjp.g.apply(Payload::InterpolateGrad(op), &[dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, mut y) = (inputs[0], Array::filled(&outputs[0], R::of(0.0)));
        each_share(self.mode, [x.dims(), &outputs[0].dims], &self.axes(), |p, q, w| {
            let at = y.offset(p);
            y.data[at] += x.at(q) * R::of(w);
        });
        vec![y]
    }

    /// A map over the results; a view where each takes one element.
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, y) = (&io.inputs[0], &io.outputs[0].dims);
        let Ok(lines) = self.lines(x) else { return Lowering::Leaf };
        let mut body = Body::new();
        let mut sum: Option<ScalarId> = None;
        for (coords, weight) in self.corners(&mut body, &lines, y) {
            let mut valid = Vec::new();
            for axis in self.axes() {
                require(&mut valid, &coords[axis], x.dims[axis], y);
            }
            let v = body.load(0, x, Access::at(coords).when(valid, Scalar::f32(0.0)));
            let part = weight.map_or(v, |w| body.expr.mul(w, v));
            sum = Some(sum.map_or(part, |sum| body.expr.add(sum, part)));
        }
        sum.into_iter().for_each(|sum| body.output(sum));
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample =
            |(mode, dims, to): super::grad::Case| (Interpolate { to, mode }, vec![SampleInput::f32(&dims)]);
        super::grad::cases().into_iter().map(sample).collect()
    }
}

impl Graph {
    /// `x` resampled along axes, each `(axis, extent)`; see [`Interpolation`].
    ///
    /// Recorded as errors: another dtype, axes that repeat, are out of order or do not exist, an extent of 0, extents whose
    /// exact positions do not fit in 31 bits.
    #[track_caller]
    pub fn interpolate(&mut self, x: Value, to: &[(usize, Extent)], mode: Interpolation) -> Value {
        self.apply(Payload::Interpolate(Interpolate { to: to.to_vec(), mode }), &[x])
    }

    /// `x [N, C, H, W]` with height and width so many times as large.
    #[track_caller]
    pub fn upsample2d(&mut self, x: Value, scale: [usize; 2], mode: Interpolation) -> Value {
        self.interpolate(x, &[(2, Extent::Scale(scale[0])), (3, Extent::Scale(scale[1]))], mode)
    }

    /// `x [N, C, H, W]` as `[N, C, size]`.
    #[track_caller]
    pub fn resize2d(&mut self, x: Value, size: [usize; 2], mode: Interpolation) -> Value {
        self.interpolate(x, &[(2, Extent::Size(size[0])), (3, Extent::Size(size[1]))], mode)
    }
}

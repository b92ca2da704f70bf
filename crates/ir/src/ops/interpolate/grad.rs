//! Gradient of interpolation.

use super::sample::product;
use super::{Extent, Interpolate, Interpolation, Line, each_share};
use crate::array::Array;
use crate::index::{Access, Domain, IndexExpr};
use crate::loops::Body;
use crate::ops::reduce::check_axes;
use crate::ops::rule::need_dtype;
use crate::ops::window::{axis as along, require, sum_along};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `dx[.., j, ..] = sum over i of weight(i, j) dy[.., i, ..]`, the transpose of [`Interpolate`]; `sizes` are the extents of x
/// along the sorted axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct InterpolateGrad {
    pub(crate) sizes: Vec<(usize, usize)>,
    pub(crate) mode: Interpolation,
}

impl InterpolateGrad {
    fn axes(&self) -> Vec<usize> {
        self.sizes.iter().map(|s| s.0).collect()
    }

    fn lines(&self, dy: &TensorType) -> Result<Vec<Line>, String> {
        need_dtype("the gradient", dy, DType::F32)?;
        check_axes(&self.axes(), dy)?;
        self.sizes.iter().map(|(axis, size)| Line::new(self.mode, *size, dy.dims[*axis])).collect()
    }
}

impl Rule for InterpolateGrad {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let mut x = inputs[0].clone();
        for (line, axis) in self.lines(&x)?.iter().zip(self.axes()) {
            x.dims[axis] = line.input;
        }
        Ok(vec![x])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[0]);
        let to = self.axes().into_iter().map(|a| (a, Extent::Size(dims[a]))).collect();
        let up = vjp.grad();
        let d = vjp.g.apply(Payload::Interpolate(Interpolate { to, mode: self.mode }), &[up]);
        vjp.set(0, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (dy, mut dx) = (inputs[0], Array::filled(&outputs[0], R::of(0.0)));
        each_share(self.mode, [&outputs[0].dims, dy.dims()], &self.axes(), |p, q, w| {
            let at = dx.offset(q);
            dx.data[at] += dy.at(p) * R::of(w);
        });
        vec![dx]
    }

    /// A sum over the results that may have taken an element.
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (dy, rows) = (&io.inputs[0], io.outputs[0].dims.clone());
        let Ok(lines) = self.lines(dy) else { return Lowering::Leaf };
        let cols: Vec<usize> = lines.iter().map(Line::most_takers).collect();
        let domain = [rows.as_slice(), &cols].concat();
        let mut coords: Vec<IndexExpr> = (0..rows.len()).map(IndexExpr::axis).collect();
        let (mut body, mut valid, mut weight) = (Body::new(), Vec::new(), None);
        for (k, (line, axis)) in lines.iter().zip(self.axes()).enumerate() {
            let j = IndexExpr::axis(axis);
            let i = line.first_taker(&j, &domain).plus(&along(&domain, rows.len() + k));
            require(&mut valid, &i, line.output, &domain);
            let takes = line.takes(&i, &j);
            let (low, high) = takes.expr.range(Domain::of(&domain));
            if low < takes.lo || high >= takes.hi {
                valid.push(takes);
            }
            if line.is_weighted() {
                let share = Some(line.weight(&mut body, &i, &j));
                weight = product(&mut body, weight, share);
            }
            coords[axis] = i;
        }
        let d = body.load(0, dy, Access::at(coords).when(valid, Scalar::f32(0.0)));
        let share = weight.map_or(d, |w| body.expr.mul(w, d));
        body.output(share);
        io.loop_of(sum_along(rows, cols, body))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let sample = |(mode, dims, to): Case| {
            let sizes = to.iter().map(|(axis, _)| (*axis, dims[*axis])).collect();
            let y = Interpolate { to, mode }.infer(&[TensorType::f32(dims)]).ok()?.remove(0);
            Some((InterpolateGrad { sizes, mode }, vec![SampleInput::f32(&y.dims)]))
        };
        cases().into_iter().filter_map(sample).collect()
    }
}

/// A way to interpolate an operand of these dimensions.
pub(super) type Case = (Interpolation, Vec<usize>, Vec<(usize, Extent)>);

/// The samples of both operations.
pub(super) fn cases() -> Vec<Case> {
    let [half, corners] = [false, true].map(|align_corners| Interpolation::Linear { align_corners });
    let size = |h, w| vec![(2, Extent::Size(h)), (3, Extent::Size(w))];
    let scale = |h, w| vec![(2, Extent::Scale(h)), (3, Extent::Scale(w))];
    let mut all = vec![
        (Interpolation::Nearest, vec![2, 3, 4, 5], scale(2, 3)),
        (Interpolation::Nearest, vec![1, 2, 5, 7], size(8, 3)),
        (half, vec![1, 2, 7, 5], vec![(2, Extent::Size(5))]),
        (corners, vec![3, 8], vec![(1, Extent::Scale(2))]),
    ];
    for mode in [half, corners] {
        all.push((mode, vec![1, 2, 3, 4], scale(2, 2)));
        all.push((mode, vec![2, 1, 5, 7], size(7, 4)));
        all.push((mode, vec![1, 3, 1, 6], size(4, 1)));
    }
    all
}

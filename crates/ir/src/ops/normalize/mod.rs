//! Normalisation along rows: softmax, log-softmax, layer, group, batch and RMS norm, and their gradients.
//!
//! All lower to one row loop each, so a device may keep a row on chip, stream it, or split it into statistics and apply.

mod batch_norm;
mod group_norm;
mod layer_norm;
mod log_softmax;
mod norm;
mod norm_grad;
mod rms_norm;
mod running;
mod softmax;
mod split;

pub(crate) use batch_norm::Channels;
pub(crate) use group_norm::Groups;
pub(crate) use layer_norm::Last;
pub(crate) use log_softmax::{LogSoftmax, LogSoftmaxGrad};
pub(crate) use norm::Norm;
pub(crate) use norm_grad::NormGrad;
pub(crate) use rms_norm::{RmsNorm, RmsNormGrad};
pub(crate) use softmax::{Softmax, SoftmaxGrad};
pub(crate) use split::{Frame, Split};

use super::reduce::{check_axes, row_split};
use super::rule::need_dtype;
use super::{Lowering, Signature};
use crate::array::Array;
use crate::attr::F32;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::real::Real;
use crate::scalar::{BinaryFn, ScalarExpr, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};

/// The iteration of a row operation: extents of rows and columns, and the coordinates, over `rows ++ cols`, of an element
/// of the tensor whose rows they are and of its weight.
pub(crate) struct Rows {
    pub(crate) rows: Vec<usize>,
    pub(crate) cols: Vec<usize>,
    pub(crate) coords: Vec<IndexExpr>,
    pub(crate) weight: IndexExpr,
}

impl Rows {
    /// Rows of `x` along one axis.
    pub(crate) fn along(x: &TensorType, axis: usize) -> Self {
        let (rows, cols, coords) = row_split(&x.dims, &[axis]);
        let weight = IndexExpr::axis(rows.len());
        Self { rows, cols, coords, weight }
    }

    /// Rows of `x` along its last axis.
    pub(crate) fn last(x: &TensorType) -> Self {
        Self::along(x, x.rank().saturating_sub(1))
    }

    /// The element of the tensor the rows belong to.
    pub(crate) fn element(&self) -> Access {
        Access::at(self.coords.clone())
    }

    /// The element of a tensor that has one element per row.
    pub(crate) fn statistic(&self) -> Access {
        Access::identity(self.rows.len())
    }

    /// The element of a tensor that has one element per weight: per column, if rows have one axis.
    pub(crate) fn weight(&self) -> Access {
        Access::at(vec![self.weight.clone()])
    }

    /// The row loop with these outputs: result 0 per element, the following results per row. Without a column body the
    /// results are per row only, from result 0 on.
    pub(crate) fn lower(
        self,
        io: &Signature<'_>,
        phases: Vec<Phase>,
        [row_body, col_body]: [Body; 2],
    ) -> Lowering {
        let per_element = col_body.expr.outputs().len();
        let row_stores = (0..row_body.expr.outputs().len())
            .map(|i| Store::identity(per_element + i, self.rows.len()))
            .collect();
        let col_stores =
            (0..per_element).map(|result| Store { result, coords: self.coords.clone() }).collect();
        let (rows, cols) = (self.rows, self.cols);
        io.loop_of(LoopKind::Row(Row { rows, cols, phases, row_body, row_stores, col_body, col_stores }))
    }
}

/// `max(m, lowest finite)` with m the row maximum in carry 0: what exponentials are shifted by. For a row of all -inf
/// every shifted element is then -inf instead of NaN.
pub(crate) fn shift(e: &mut ScalarExpr) -> ScalarId {
    let (m, lowest) = (e.carry(0, DType::F32), e.f32(f32::MIN));
    e.binary(BinaryFn::Max, m, lowest)
}

/// The phase that sums `exp(x - shift)` of operand 0.
pub(crate) fn sum_of_exponentials(x: &TensorType, rows: &Rows) -> Phase {
    let mut body = Body::new();
    let v = body.load(0, x, rows.element());
    let e = exponential(&mut body.expr, v);
    body.output(e);
    Phase { body, combines: vec![Combine::Sum] }
}

/// The phases of softmax and log-softmax of operand 0: maximum (carry 0), then sum of exponentials (carry 1).
fn softmax_phases(x: &TensorType, rows: &Rows) -> Vec<Phase> {
    let max = Phase { body: Body::of_load(0, x, rows.element()), combines: vec![Combine::Max] };
    vec![max, sum_of_exponentials(x, rows)]
}

/// `exp(x - shift)`.
pub(crate) fn exponential(e: &mut ScalarExpr, x: ScalarId) -> ScalarId {
    let m = shift(e);
    let d = e.sub(x, m);
    e.unary(UnaryFn::Exp, d)
}

/// The sum of exponentials in a carry, at least 1: the largest element gives 1 unless the whole row is -inf.
pub(crate) fn total(e: &mut ScalarExpr, carry: usize) -> ScalarId {
    let (sum, one) = (e.carry(carry, DType::F32), e.f32(1.0));
    e.binary(BinaryFn::Max, sum, one)
}

/// What the references of the softmax family need of one row: shift and total.
pub(crate) fn row_statistics(row: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let larger = |m: f64, x: f64| if m.is_nan() || x.is_nan() { f64::NAN } else { m.max(x) };
    let m = row.clone().fold(f64::from(f32::MIN), larger);
    let sum: f64 = row.map(|x| (x - m).exp()).sum();
    (m, if sum < 1.0 { 1.0 } else { sum })
}

/// The row of `x` along `axis` that `point` lies in.
pub(crate) fn row_of<R: Real>(x: &Array<R>, point: &[usize], axis: usize) -> Vec<f64> {
    let mut q = point.to_vec();
    (0..x.dims()[axis])
        .map(|i| {
            q[axis] = i;
            x.at(&q).f64()
        })
        .collect()
}

/// The type of softmax or log-softmax of an operand along an axis.
fn infer_softmax(x: &TensorType, axis: usize) -> Result<Vec<TensorType>, String> {
    need_dtype("the operand", x, DType::F32)?;
    check_axes(&[axis], x)?;
    Ok(vec![x.clone()])
}

/// The type of the gradient of softmax or log-softmax along an axis, from its inputs: the result and its gradient.
fn infer_softmax_grad(inputs: &[TensorType], axis: usize) -> Result<Vec<TensorType>, String> {
    let y = &inputs[0];
    check_axes(&[axis], y)?;
    need_f32("the result", y, &y.dims)?;
    need_f32("the gradient", &inputs[1], &y.dims)?;
    Ok(vec![y.clone()])
}

/// Checks rows of `f32` to normalise, with weights.
fn check_norm(
    frame: &Frame,
    x: &TensorType,
    weights: &[(&str, &TensorType)],
    eps: F32,
) -> Result<(), String> {
    need_dtype("the operand", x, DType::F32)?;
    weights.iter().try_for_each(|(what, w)| frame.check_weight(what, w))?;
    if !(eps.get() >= 0.0 && eps.get().is_finite()) {
        return Err(format!("eps must be finite and not negative, it is {}", eps.get()));
    }
    Ok(())
}

/// Checks the inputs of the gradient of a norm with respect to its operand: the operand, the named statistics with one
/// element per row, gamma, and the gradient of the result.
fn infer_norm_grad(frame: &Frame, inputs: &[TensorType], statistics: &[&str]) -> Result<(), String> {
    let (x, after) = (&inputs[0], 1 + statistics.len());
    need_f32("the operand", x, &x.dims)?;
    for (what, statistic) in statistics.iter().zip(&inputs[1..after]) {
        need_f32(what, statistic, &frame.statistic().dims)?;
    }
    frame.check_weight("gamma", &inputs[after])?;
    need_f32("the gradient", &inputs[after + 1], &x.dims)
}

/// Checks that a tensor is `f32` of these dimensions.
fn need_f32(what: &str, ty: &TensorType, dims: &[usize]) -> Result<(), String> {
    let wanted = TensorType::f32(dims);
    if *ty == wanted { Ok(()) } else { Err(format!("{what} must be {wanted}, it is {ty}")) }
}

impl Graph {
    /// A tensor with one element per row, with a last axis of 1 so that it broadcasts along the row.
    pub(crate) fn per_row(&mut self, x: Value) -> Value {
        let rank = self.dims(x).len();
        self.insert_axes(x, &[rank])
    }
}

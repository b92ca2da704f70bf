//! Sum and mean.

use super::{check_axes, reduced_dims, result_coords, row_split};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::ops::elementwise::wrapped;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y = sum of x over axes`, divided by their number of elements if `mean`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub(crate) axes: Vec<usize>,
    pub(crate) keep: bool,
    pub(crate) mean: bool,
}

impl Sum {
    fn count(&self, x: &TensorType) -> usize {
        self.axes.iter().map(|&a| x.dims[a]).product()
    }
}

impl Rule for Sum {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        check_axes(&self.axes, x)?;
        if x.dtype == DType::Bool || (self.mean && x.dtype != DType::F32) {
            return Err(format!("does not take {}", x.dtype));
        }
        Ok(vec![TensorType::new(x.dtype, reduced_dims(&x.dims, &self.axes, self.keep))])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let x = vjp.inputs[0];
        let dims = vjp.g.dims(x).to_vec();
        let mut dy = vjp.grad();
        if !self.keep {
            dy = vjp.g.insert_axes(dy, &self.axes);
        }
        if self.mean {
            let n: usize = self.axes.iter().map(|&a| dims[a]).product();
            let n = vjp.g.scalar(n as f32);
            dy = vjp.g.div(dy, n);
        }
        let spread: Vec<(usize, usize)> = self.axes.iter().map(|&a| (a, dims[a])).collect();
        let dx = vjp.g.expand(dy, &spread);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let x = inputs[0];
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        crate::array::each_point(x.dims(), |p| {
            let q: Vec<usize> = (0..p.len())
                .filter(|i| self.keep || !self.axes.contains(i))
                .map(|i| if self.axes.contains(&i) { 0 } else { p[i] })
                .collect();
            let at = y.offset(&q);
            y.data[at] += x.at(p);
        });
        if self.mean {
            let n = R::of(self.count(&x.ty) as f64);
            y.data.iter_mut().for_each(|v| *v = *v / n);
        }
        if x.ty.dtype != DType::F32 {
            y.data.iter_mut().for_each(|v| *v = v.via(|sum| wrapped(x.ty.dtype, sum as i64)));
        }
        vec![y]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let (rows, cols, coords) = row_split(&x.dims, &self.axes);
        let phase = Phase { body: Body::of_load(0, x, Access::at(coords)), combines: vec![Combine::Sum] };
        let mut row_body = Body::new();
        let mut y = row_body.expr.carry(0, x.dtype);
        if self.mean {
            let n = row_body.expr.f32(self.count(x) as f32);
            y = row_body.expr.div(y, n);
        }
        row_body.output(y);
        let store = Store { result: 0, coords: result_coords(x.rank(), &self.axes, self.keep) };
        io.loop_of(LoopKind::Row(Row {
            rows,
            cols,
            phases: vec![phase],
            row_body,
            row_stores: vec![store],
            col_body: Body::new(),
            col_stores: Vec::new(),
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |axes: &[usize], keep, mean| Sum { axes: axes.to_vec(), keep, mean };
        vec![
            (s(&[0], false, false), vec![SampleInput::f32(&[1])]),
            (s(&[1], false, true), vec![SampleInput::f32(&[5, 131])]),
            (s(&[0], true, false), vec![SampleInput::f32(&[67, 9])]),
            (s(&[0, 2], false, true), vec![SampleInput::f32(&[3, 4, 5])]),
            (s(&[1, 2], true, false), vec![SampleInput::f32(&[2, 7, 3, 2])]),
            (s(&[0, 1], false, false), vec![SampleInput::f32(&[70, 300])]),
        ]
    }
}

impl Graph {
    #[track_caller]
    fn reduce(&mut self, x: Value, axes: &[isize], keep: bool, mean: bool) -> Value {
        let axes = self.resolve_axes(x, axes);
        self.apply(Payload::Sum(Sum { axes, keep, mean }), &[x])
    }

    /// Sum over axes (negative ones count from the end); the axes disappear.
    #[track_caller]
    pub fn sum(&mut self, x: Value, axes: &[isize]) -> Value {
        self.reduce(x, axes, false, false)
    }

    /// Sum over axes, which stay with extent 1.
    #[track_caller]
    pub fn sum_keep(&mut self, x: Value, axes: &[isize]) -> Value {
        self.reduce(x, axes, true, false)
    }

    /// Mean over axes; the axes disappear.
    #[track_caller]
    pub fn mean(&mut self, x: Value, axes: &[isize]) -> Value {
        self.reduce(x, axes, false, true)
    }

    /// Mean over axes, which stay with extent 1.
    #[track_caller]
    pub fn mean_keep(&mut self, x: Value, axes: &[isize]) -> Value {
        self.reduce(x, axes, true, true)
    }

    /// Sum over all axes: a scalar.
    #[track_caller]
    pub fn sum_all(&mut self, x: Value) -> Value {
        let axes: Vec<isize> = (0..self.dims(x).len() as isize).collect();
        if axes.is_empty() { x } else { self.sum(x, &axes) }
    }

    /// Mean over all axes: a scalar.
    #[track_caller]
    pub fn mean_all(&mut self, x: Value) -> Value {
        let axes: Vec<isize> = (0..self.dims(x).len() as isize).collect();
        if axes.is_empty() { x } else { self.mean(x, &axes) }
    }

    /// Sums `x` over the axes along which a tensor of `dims` was broadcast to the shape of `x`.
    pub(crate) fn sum_to(&mut self, x: Value, dims: &[usize]) -> Value {
        let from = self.dims(x).to_vec();
        if from == dims || from.len() < dims.len() {
            return if from == dims { x } else { self.expand_to(x, dims) };
        }
        let lead = from.len() - dims.len();
        let spread = |i: usize| i < lead || (dims[i - lead] == 1 && from[i] != 1);
        let axes: Vec<isize> = (0..from.len()).filter(|&i| spread(i)).map(|i| i as isize).collect();
        let summed = if axes.is_empty() { x } else { self.sum_keep(x, &axes) };
        let dropped: Vec<usize> = (0..lead).collect();
        let out = if dropped.is_empty() { summed } else { self.drop_axes(summed, &dropped) };
        if self.dims(out) == dims { out } else { self.expand_to(out, dims) }
    }
}

//! Maximum and minimum over axes, with the position of the first winner; and their gradient.

use super::{check_axes, reduced_dims, result_coords, row_split};
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::BinaryFn;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// Results: the extremum, and the row-major index, within the reduced axes, of its first occurrence. NaN wins.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Extremum {
    pub(crate) axes: Vec<usize>,
    pub(crate) keep: bool,
    pub(crate) max: bool,
}

impl Rule for Extremum {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn results(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        check_axes(&self.axes, x)?;
        need_dtype("the operand", x, DType::F32)?;
        let dims = reduced_dims(&x.dims, &self.axes, self.keep);
        Ok(vec![TensorType::f32(dims.clone()), TensorType::new(DType::I32, dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[0]).to_vec();
        let (mut dy, mut index) = (vjp.grad(), vjp.outputs[1]);
        if !self.keep {
            dy = vjp.g.insert_axes(dy, &self.axes);
            index = vjp.g.insert_axes(index, &self.axes);
        }
        let extents = self.axes.iter().map(|&a| dims[a]).collect();
        let op = ExtremumGrad { axes: self.axes.clone(), extents };
        let dx = vjp.g.apply(Payload::ExtremumGrad(op), &[index, dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let x = inputs[0];
        let mut y: Array<R> = Array::filled(&outputs[0], R::of(0.0));
        let mut index: Array<R> = Array::filled(&outputs[1], R::of(-1.0));
        crate::array::each_point(x.dims(), |p| {
            let q: Vec<usize> = (0..p.len())
                .filter(|i| self.keep || !self.axes.contains(i))
                .map(|i| if self.axes.contains(&i) { 0 } else { p[i] })
                .collect();
            let flat = self.axes.iter().fold(0, |n, &a| n * x.dims()[a] + p[a]);
            let (at, v) = (y.offset(&q), x.at(p));
            let (old, first) = (y.data[at].f64(), index.data[at].f64() < 0.0);
            let better = if self.max { v.f64() > old } else { v.f64() < old };
            if first || (!old.is_nan() && (better || v.f64().is_nan())) {
                y.data[at] = v;
                index.data[at] = R::of(flat as f64);
            }
        });
        vec![y, index]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let (rows, cols, coords) = row_split(&x.dims, &self.axes);
        let combine = if self.max { Combine::MaxIndex } else { Combine::MinIndex };
        let phase = Phase { body: Body::of_load(0, x, Access::at(coords)), combines: vec![combine] };
        let mut row_body = Body::new();
        let (y, i) = (row_body.expr.carry(0, DType::F32), row_body.expr.carry(1, DType::I32));
        row_body.output(y);
        row_body.output(i);
        let coords = result_coords(x.rank(), &self.axes, self.keep);
        let row_stores = (0..2).map(|result| Store { result, coords: coords.clone() }).collect();
        io.loop_of(LoopKind::Row(Row {
            rows,
            cols,
            phases: vec![phase],
            row_body,
            row_stores,
            col_body: Body::new(),
            col_stores: Vec::new(),
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |axes: &[usize], keep, max| Extremum { axes: axes.to_vec(), keep, max };
        vec![
            (s(&[0], false, true), vec![SampleInput::distinct(&[1])]),
            (s(&[1], false, true), vec![SampleInput::distinct(&[5, 131])]),
            (s(&[0, 2], true, false), vec![SampleInput::distinct(&[3, 4, 5])]),
        ]
    }
}

/// `dx[.., i, ..] = if index = flat(i) { dy } else { 0 }`: the gradient goes to the first winner alone.
/// Inputs are `index` and `dy` with extent 1 along `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ExtremumGrad {
    pub(crate) axes: Vec<usize>,
    pub(crate) extents: Vec<usize>,
}

impl Rule for ExtremumGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        need_dtype("the index", &inputs[0], DType::I32)?;
        need_dtype("the gradient", &inputs[1], DType::F32)?;
        check_axes(&self.axes, &inputs[1])?;
        if inputs[0].dims != inputs[1].dims || self.extents.len() != self.axes.len() {
            return Err(format!("index {} and gradient {} differ", inputs[0], inputs[1]));
        }
        let mut dims = inputs[1].dims.clone();
        for (&a, &e) in self.axes.iter().zip(&self.extents) {
            if dims[a] != 1 {
                return Err(format!("axis {a} of {} is not 1", inputs[1]));
            }
            dims[a] = e;
        }
        Ok(vec![TensorType::f32(dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        // dy's gradient gathers the winner: sum over axes of upstream * (index == flat) = this op applied to ones, times it.
        let dims = vjp.g.dims(vjp.inputs[1]).to_vec();
        let ones = vjp.g.splat(1.0, dims.clone());
        let mask = vjp.g.apply(Payload::ExtremumGrad(self.clone()), &[vjp.inputs[0], ones]);
        let up = vjp.grad();
        let picked = vjp.g.mul(mask, up);
        let axes: Vec<isize> = self.axes.iter().map(|a| *a as isize).collect();
        let d = vjp.g.sum_keep(picked, &axes);
        vjp.set(1, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| {
            let flat = self.axes.iter().zip(&self.extents).fold(0, |n, (&a, &e)| n * e + p[a]);
            let mine = inputs[0].at_broadcast(p).f64() == flat as f64;
            if mine { inputs[1].at_broadcast(p) } else { R::of(0.0) }
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (mut body, x) = crate::ops::elementwise::broadcast_body(io.inputs, &io.outputs[0].dims);
        let coords: Vec<IndexExpr> = self.axes.iter().map(|&a| IndexExpr::axis(a)).collect();
        let flat = body.expr.index(IndexExpr::flatten(&coords, &self.extents));
        let mine = body.expr.binary(BinaryFn::Eq, x[0], flat);
        let zero = body.expr.f32(0.0);
        let y = body.expr.select(mine, x[1], zero);
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let op = ExtremumGrad { axes: vec![0, 2], extents: vec![3, 5] };
        vec![(op, vec![SampleInput::ids(&[1, 4, 1], 15), SampleInput::f32(&[1, 4, 1])])]
    }
}

impl Graph {
    #[track_caller]
    fn extremum(&mut self, x: Value, axes: &[isize], max: bool) -> (Value, Value) {
        let axes = self.resolve_axes(x, axes);
        let all = self.apply_all(Payload::Extremum(Extremum { axes, keep: false, max }), &[x]);
        (all[0], all[1])
    }

    /// Maximum over axes; NaN wins; the gradient goes to the first maximum.
    #[track_caller]
    pub fn max(&mut self, x: Value, axes: &[isize]) -> Value {
        self.extremum(x, axes, true).0
    }

    /// Minimum over axes; NaN wins; the gradient goes to the first minimum.
    #[track_caller]
    pub fn min(&mut self, x: Value, axes: &[isize]) -> Value {
        self.extremum(x, axes, false).0
    }

    /// Index (`i32`) of the first maximum along one axis; of the first NaN where there is one.
    #[track_caller]
    pub fn argmax(&mut self, x: Value, axis: isize) -> Value {
        self.extremum(x, &[axis], true).1
    }

    /// Index (`i32`) of the first minimum along one axis; of the first NaN where there is one.
    #[track_caller]
    pub fn argmin(&mut self, x: Value, axis: isize) -> Value {
        self.extremum(x, &[axis], false).1
    }
}

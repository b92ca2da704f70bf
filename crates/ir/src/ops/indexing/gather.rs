//! Elements chosen by ids along one axis, and the sum of elements by id that is its adjoint; as `torch.gather` and
//! `torch.scatter_add`.

use super::{clamp, clamped};
use crate::array::{Array, each_point};
use crate::graph::{Graph, IdLimit, Value};
use crate::index::{Access, Dynamic, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::BinaryFn;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[.., i, ..] = x[.., ids[.., i, ..], ..]` along `axis`. Inputs: x of any dtype, ids i32 of the dimensions of x but for
/// the axis. The result has the dimensions of the ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Gather {
    pub(crate) axis: usize,
}

/// Checks that two types have the same dimensions but for one existing axis.
fn check_beside(axis: usize, x: &TensorType, y: &TensorType) -> Result<(), String> {
    if axis >= x.rank() {
        return Err(format!("axis {axis} of {x} does not exist"));
    }
    let differ = x.rank() != y.rank() || (0..x.rank()).any(|i| i != axis && x.dims[i] != y.dims[i]);
    if differ { Err(format!("{x} and {y} differ outside axis {axis}")) } else { Ok(()) }
}

fn limit(extent: Option<&usize>) -> Option<IdLimit> {
    extent.map(|&n| IdLimit { limit: n as i32, ignore: None })
}

/// A point with another coordinate along an axis.
fn with(point: &[usize], axis: usize, at: usize) -> Vec<usize> {
    let mut q = point.to_vec();
    q[axis] = at;
    q
}

impl Rule for Gather {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (x, ids) = (&inputs[0], &inputs[1]);
        need_dtype("the ids", ids, DType::I32)?;
        check_beside(self.axis, x, ids)?;
        Ok(vec![TensorType::new(x.dtype, ids.dims.clone())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (ids, dy) = (vjp.inputs[1], vjp.grad());
        let extent = vjp.g.dims(vjp.inputs[0])[self.axis];
        let op = ScatterAdd { axis: self.axis, extent };
        let d = vjp.g.apply(Payload::ScatterAdd(op), &[ids, dy]);
        vjp.set(0, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, ids) = (inputs[0], inputs[1]);
        let extent = x.dims()[self.axis];
        vec![Array::build(&outputs[0], |p| x.at(&with(p, self.axis, clamped(ids.at(p).f64(), extent))))]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, ids) = (&io.inputs[0], &io.inputs[1]);
        let mut body = Body::new();
        body.load(1, ids, Access::identity(ids.rank()));
        let mut coords: Vec<IndexExpr> = (0..x.rank()).map(IndexExpr::axis).collect();
        coords[self.axis] = IndexExpr::constant(0);
        let dynamic = Some(Dynamic { dimension: self.axis, load: 0 });
        let y = body.load(0, x, Access { dynamic, ..Access::at(coords) });
        body.output(y);
        io.map(body)
    }

    fn id_limit(&self, input: usize, types: &[TensorType]) -> Option<IdLimit> {
        if input == 1 { limit(types[0].dims.get(self.axis)) } else { None }
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, ids) = (SampleInput::f32, SampleInput::ids);
        let s = |axis| Gather { axis };
        vec![
            (s(0), vec![f(&[1]), ids(&[1], 1)]),
            (s(1), vec![f(&[5, 13]), ids(&[5, 3], 13)]),
            (s(0), vec![f(&[97]), ids(&[131], 97)]),
            (s(1), vec![f(&[2, 7, 3]), ids(&[2, 11, 3], 7)]),
            (s(2), vec![ids(&[2, 3, 5], 9), ids(&[2, 3, 4], 5)]),
        ]
    }
}

/// `y[.., v, ..] = sum of x[.., i, ..] over i with ids[.., i, ..] = v`, for v below `extent` along `axis`, in order of i.
/// Inputs: ids i32, x f32 of the same dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ScatterAdd {
    pub(crate) axis: usize,
    pub(crate) extent: usize,
}

impl Rule for ScatterAdd {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (ids, x) = (&inputs[0], &inputs[1]);
        need_dtype("the ids", ids, DType::I32)?;
        need_dtype("what is added", x, DType::F32)?;
        check_beside(self.axis, x, ids)?;
        if x.dims != ids.dims {
            return Err(format!("the ids {ids} and what is added {x} differ"));
        }
        let mut dims = x.dims.clone();
        dims[self.axis] = self.extent;
        Ok(vec![TensorType::f32(dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (ids, u) = (vjp.inputs[0], vjp.grad());
        let d = vjp.g.apply(Payload::Gather(Gather { axis: self.axis }), &[u, ids]);
        vjp.set(1, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (ids, x) = (inputs[0], inputs[1]);
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        each_point(x.dims(), |p| {
            let at = y.offset(&with(p, self.axis, clamped(ids.at(p).f64(), self.extent)));
            y.data[at] += x.at(p);
        });
        vec![y]
    }

    /// Each element of the result looks at all ids of its row: no two ever add to one place at once.
    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (ids, x, y) = (&io.inputs[0], &io.inputs[1], &io.outputs[0]);
        let mut coords: Vec<IndexExpr> = (0..x.rank()).map(IndexExpr::axis).collect();
        coords[self.axis] = IndexExpr::axis(x.rank());
        let mut body = Body::new();
        let id = body.load(0, ids, Access::at(coords.clone()));
        let id = clamp(&mut body.expr, id, self.extent);
        let v = body.load(1, x, Access::at(coords));
        let e = &mut body.expr;
        let (own, zero) = (e.index(IndexExpr::axis(self.axis)), e.f32(0.0));
        let mine = e.binary(BinaryFn::Eq, id, own);
        let part = e.select(mine, v, zero);
        body.output(part);
        let mut row_body = Body::new();
        let sum = row_body.expr.carry(0, DType::F32);
        row_body.output(sum);
        io.loop_of(LoopKind::Row(Row {
            rows: y.dims.clone(),
            cols: vec![x.dims[self.axis]],
            phases: vec![Phase { body, combines: vec![Combine::Sum] }],
            row_body,
            row_stores: vec![Store::identity(0, y.rank())],
            col_body: Body::new(),
            col_stores: Vec::new(),
        }))
    }

    fn id_limit(&self, input: usize, _: &[TensorType]) -> Option<IdLimit> {
        if input == 0 { limit(Some(&self.extent)) } else { None }
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, ids) = (SampleInput::f32, SampleInput::ids);
        let s = |axis, extent| ScatterAdd { axis, extent };
        vec![
            (s(0, 1), vec![ids(&[1], 1), f(&[1])]),
            (s(1, 13), vec![ids(&[5, 3], 13), f(&[5, 3])]),
            (s(0, 5), vec![ids(&[131], 3), f(&[131])]),
            (s(1, 7), vec![ids(&[2, 11, 3], 7), f(&[2, 11, 3])]),
        ]
    }
}

impl Graph {
    /// `y[.., i, ..] = x[.., ids[.., i, ..], ..]` along an axis (negative ones count from the end); `ids` i32 has the
    /// dimensions of `x` but for the axis. Gradients of repeated ids sum: time grows with the extents of both along the axis.
    #[track_caller]
    pub fn gather(&mut self, x: Value, axis: isize, ids: Value) -> Value {
        let axis = self.resolve_axis(x, axis);
        self.apply(Payload::Gather(Gather { axis }), &[x, ids])
    }

    /// `x` with `src[.., i, ..]` added at `[.., ids[.., i, ..], ..]` along an axis, in order of i.
    #[track_caller]
    pub fn scatter_add(&mut self, x: Value, axis: isize, ids: Value, src: Value) -> Value {
        let axis = self.resolve_axis(x, axis);
        let extent = self.dims(x).get(axis).copied().unwrap_or(1);
        let added = self.apply(Payload::ScatterAdd(ScatterAdd { axis, extent }), &[ids, src]);
        if !added.is_poison() && self.ty(x) != self.ty(added) {
            let e = format!("src and ids must have the dimensions of x but for axis {axis}");
            return self.fail("scatter_add", &[x, ids, src], e);
        }
        self.add(x, added)
    }

    /// The slices of `x` along an axis that the ids i32 `[K]` name, in their order. Gradients of repeated ids sum.
    #[track_caller]
    pub fn index_select(&mut self, x: Value, axis: isize, ids: Value) -> Value {
        let axis = self.resolve_axis(x, axis);
        let rank = self.dims(x).len();
        if self.ty(ids).is_some_and(|t| t.rank() != 1) || (self.ty(x).is_some() && axis >= rank) {
            let e = format!("takes ids i32[K] and an axis of x, given axis {axis}");
            return self.fail("index_select", &[x, ids], e);
        }
        if axis == 0 {
            return self.embedding(x, ids);
        }
        let to_front: Vec<usize> = std::iter::once(axis).chain((0..rank).filter(|i| *i != axis)).collect();
        let back: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..rank).collect();
        let front = self.permute(x, &to_front);
        let chosen = self.embedding(front, ids);
        self.permute(chosen, &back)
    }
}

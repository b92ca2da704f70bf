//! Emission of loop bodies into kernels: what all families share.
//!
//! A [`Body`] becomes straight-line code in the current block: addresses in wrapping `u32` arithmetic ([`index`]), loads,
//! and the scalar DAG ([`scalar`]). [`Bindings`] declares the buffers a kernel needs, in order.
//!
//! Invariants: no branch is emitted, so values may be used anywhere after; a load whose guard fails reads element 0 and
//! its value is dropped, so no address is ever out of range while the axes are in range; truth values are `bool` in
//! registers and `u32` 0 or 1 in buffers; equal addresses and nodes are emitted once per body.

mod bind;
mod index;
mod scalar;

pub use bind::limits;
pub(crate) use bind::{Bindings, Draft, element_type, fold_groups};
pub(crate) use index::{decompose, flat_axis, squeezed};
pub(crate) use scalar::{binary, cast, combine_value, constant, to_stored};

use crate::KernelError;
use crate::kir::{Buffer, Builder, Expr, Scalar};
use griffinfly_ir::index::{Access, Bound, IndexExpr, Store};
use griffinfly_ir::loops::Body;
use griffinfly_ir::scalar::{Scalar as Constant, ScalarNode};
use griffinfly_ir::types::{DType, TensorType};
use index::Indices;

/// Where a body is evaluated: its operands and the point of the loop.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a, 'b> {
    /// Operand types.
    pub(crate) types: &'a [TensorType],
    /// Scalar buffer of each operand that the kernel binds.
    pub(crate) buffers: &'a [Option<Buffer<'b>>],
    /// `u32` value of each axis, in range.
    pub(crate) axes: &'a [Expr<'b>],
    /// Extent of each axis.
    pub(crate) extents: &'a [usize],
    /// Row-major number of the point, where it is at hand: used for addresses that equal it.
    pub(crate) linear: Option<Expr<'b>>,
    /// Values of reductions.
    pub(crate) carries: &'a [Expr<'b>],
}

/// The outputs of a body at a point; truth values as `bool`.
pub(crate) fn body<'b>(b: &'b Builder, body: &Body, env: &Env<'_, 'b>) -> Result<Vec<Expr<'b>>, KernelError> {
    let mut loads = vec![None; body.loads.len()];
    fill_loads(b, body, env, &mut loads)?;
    body_of_loads(b, body, env, &loads)
}

/// Emits the loads that the outputs of a body need and that have no value yet.
pub(crate) fn fill_loads<'b>(
    b: &'b Builder,
    body: &Body,
    env: &Env<'_, 'b>,
    loads: &mut [Option<Expr<'b>>],
) -> Result<(), KernelError> {
    let mut point = Point::new(b, env);
    for k in needed(body) {
        if loads[k].is_none() {
            loads[k] = Some(point.load(body, k, loads)?);
        }
    }
    Ok(())
}

/// As [`body`], with the values of its loads given.
pub(crate) fn body_of_loads<'b>(
    b: &'b Builder,
    body: &Body,
    env: &Env<'_, 'b>,
    loads: &[Option<Expr<'b>>],
) -> Result<Vec<Expr<'b>>, KernelError> {
    Point::new(b, env).evaluate(body, loads)
}

/// The value of an index expression at a point, as wrapping `u32` (the bits of the `i32` where it is negative).
pub(crate) fn index<'b>(b: &'b Builder, expr: &IndexExpr, env: &Env<'_, 'b>) -> Expr<'b> {
    Point::new(b, env).indices.value(expr)
}

/// Writes a value where a store says.
pub(crate) fn store<'b>(
    b: &'b Builder,
    store: &Store,
    target: (Buffer<'b>, &TensorType),
    value: Expr<'b>,
    env: &Env<'_, 'b>,
) {
    let offset = IndexExpr::flatten(&store.coords, &target.1.dims);
    let offset = index(b, &offset, env);
    target.0.store(offset, to_stored(value));
}

/// The loads that the outputs need, in order, with the ones their addresses need.
pub(crate) fn needed(body: &Body) -> Vec<usize> {
    let live = body.expr.reachable(body.expr.outputs());
    let mut wanted = vec![false; body.loads.len()];
    for (node, _) in body.expr.nodes().iter().zip(live).filter(|(_, live)| *live) {
        if let ScalarNode::Load(k) = node {
            wanted[*k as usize] = true;
        }
    }
    for k in (0..wanted.len()).rev() {
        if let (true, Some(dynamic)) = (wanted[k], &body.loads[k].access.dynamic) {
            wanted[dynamic.load] = true;
        }
    }
    (0..wanted.len()).filter(|k| wanted[*k]).collect()
}

/// A fault of a family: the loop is outside what it can realise.
pub(crate) fn unsupported(family: &'static str, message: impl Into<String>) -> KernelError {
    KernelError::Unsupported { family, message: message.into() }
}

/// Emission of one body at one point.
struct Point<'a, 'e, 'b> {
    b: &'b Builder,
    env: &'e Env<'a, 'b>,
    indices: Indices<'e, 'b>,
}

impl<'a, 'e, 'b> Point<'a, 'e, 'b> {
    fn new(b: &'b Builder, env: &'e Env<'a, 'b>) -> Self {
        Self { b, env, indices: Indices::new(b, env.axes, env.extents, env.linear) }
    }

    /// Whether all bounds hold: those that cannot fail are left out.
    fn guard(&mut self, bounds: &[Bound]) -> Option<Expr<'b>> {
        let terms = bounds.iter().filter_map(|bound| self.indices.bound(bound));
        terms.reduce(|all, one| all & one)
    }

    fn load(&mut self, body: &Body, k: usize, loads: &[Option<Expr<'b>>]) -> Result<Expr<'b>, KernelError> {
        let load = &body.loads[k];
        let missing = || unsupported("body", format!("operand {} is not bound", load.operand));
        let ty = self.env.types.get(load.operand).ok_or_else(missing)?;
        let buffer = self.env.buffers.get(load.operand).copied().flatten().ok_or_else(missing)?;
        let mut offset = self.offset(&load.access, ty);
        if let Some(dynamic) = &load.access.dynamic {
            let id = loads.get(dynamic.load).copied().flatten().ok_or_else(missing)?;
            let last = ty.dims[dynamic.dimension] as i32 - 1;
            let id = id.bitcast(Scalar::I32).max(0).min(last).bitcast(Scalar::U32);
            offset = offset + id * (ty.strides()[dynamic.dimension] as u32);
        }
        let Some(guard) = self.guard(&load.access.valid) else {
            return Ok(from_stored(buffer.load(offset), ty.dtype));
        };
        let value = from_stored(buffer.load(guard.select(offset, 0_u32)), ty.dtype);
        Ok(guard.select(value, constant(self.b, load.access.fill)))
    }

    fn offset(&mut self, access: &Access, ty: &TensorType) -> Expr<'b> {
        self.indices.value(&access.offset(&ty.dims))
    }

    fn evaluate(&mut self, body: &Body, loads: &[Option<Expr<'b>>]) -> Result<Vec<Expr<'b>>, KernelError> {
        let expr = &body.expr;
        let live = expr.reachable(expr.outputs());
        let mut values: Vec<Expr<'b>> = Vec::with_capacity(live.len());
        for (node, live) in expr.nodes().iter().zip(live) {
            let value =
                if live { self.node(node, &values, loads)? } else { constant(self.b, Constant::U32(0)) };
            values.push(value);
        }
        Ok(expr.outputs().iter().map(|id| values[id.index()]).collect())
    }

    fn node(
        &mut self,
        node: &ScalarNode,
        values: &[Expr<'b>],
        loads: &[Option<Expr<'b>>],
    ) -> Result<Expr<'b>, KernelError> {
        Ok(match node {
            ScalarNode::Const(value) => constant(self.b, *value),
            ScalarNode::Load(k) => loads
                .get(*k as usize)
                .copied()
                .flatten()
                .ok_or_else(|| unsupported("body", format!("load {k} has no value")))?,
            ScalarNode::Carry(k) => *self
                .env
                .carries
                .get(*k as usize)
                .ok_or_else(|| unsupported("body", format!("carry {k} is not known here")))?,
            ScalarNode::Index(e) => self.indices.value(e).bitcast(Scalar::I32),
            ScalarNode::Within(bounds) => self.guard(bounds).unwrap_or_else(|| self.b.constant(true)),
            ScalarNode::Unary(f, x) => scalar::unary(*f, values[x.index()]),
            ScalarNode::Binary(f, x, y) => binary(*f, values[x.index()], values[y.index()]),
            ScalarNode::Select(c, x, y) => {
                scalar::select(values[c.index()], values[x.index()], values[y.index()])
            }
            ScalarNode::Cast(dtype, x) => cast(*dtype, values[x.index()]),
        })
    }
}

/// A loaded word as the logical value.
pub(crate) fn from_stored(word: Expr<'_>, dtype: DType) -> Expr<'_> {
    if dtype == DType::Bool { word.differs(0_u32) } else { word }
}

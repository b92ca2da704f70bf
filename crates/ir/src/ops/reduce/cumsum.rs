//! Cumulative sums along an axis.
//!
//! A short axis is one reduction per element over those before it. A longer one is cut into blocks: sums within each block,
//! the sums of the blocks before it (the same operation, on an axis that is shorter by the block), and both added. So the
//! work is the number of elements times the block, the order of additions is fixed, and an infinity or NaN reaches only what
//! comes after it, which a product with a triangle of ones would not give.

use crate::array::{Array, each_point};
use crate::graph::{Graph, Value};
use crate::index::{Access, Bound, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// Elements of a block.
const BLOCK: usize = 16;

/// `y[i] = sum of x[j] over j <= i` along `axis`; over `j < i` if exclusive; over `j >= i` or `j > i` if reverse.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Cumsum {
    pub(crate) axis: usize,
    pub(crate) exclusive: bool,
    pub(crate) reverse: bool,
}

impl Cumsum {
    /// One reduction per element.
    fn direct(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let (rank, n) = (x.rank(), x.dims[self.axis] as i64);
        let (own, other) = (IndexExpr::axis(self.axis), IndexExpr::axis(rank));
        let distance = if self.reverse { other.plus(&own.times(-1)) } else { own.plus(&other.times(-1)) };
        let counted = Bound::new(distance, i64::from(self.exclusive), n);
        let mut coords: Vec<IndexExpr> = (0..rank).map(IndexExpr::axis).collect();
        coords[self.axis] = other;
        let access = Access::at(coords).when(vec![counted], Scalar::zero(x.dtype));
        let mut row_body = Body::new();
        let sum = row_body.expr.carry(0, x.dtype);
        row_body.output(sum);
        io.loop_of(LoopKind::Row(Row {
            rows: x.dims.clone(),
            cols: vec![n as usize],
            phases: vec![Phase { body: Body::of_load(0, x, access), combines: vec![Combine::Sum] }],
            row_body,
            row_stores: vec![Store::identity(0, rank)],
            col_body: Body::new(),
            col_stores: Vec::new(),
        }))
    }

    /// Blocks: within each, and of those before.
    fn blocked(&self, g: &mut Graph, x: Value) -> Value {
        let (axis, n) = (self.axis, g.dims(x)[self.axis]);
        let blocks = n.div_ceil(BLOCK);
        let rest = blocks * BLOCK - n;
        let padded = if rest > 0 { g.pad(x, axis, [0, rest], 0.0) } else { x };
        let cut = g.split_axis(padded, axis, &[blocks, BLOCK]);
        let within = g.apply(Payload::Cumsum(Cumsum { axis: axis + 1, ..self.clone() }), &[cut]);
        let sums = g.sum_keep(cut, &[axis as isize + 1]);
        let before = g.apply(Payload::Cumsum(Cumsum { exclusive: true, ..self.clone() }), &[sums]);
        let all = g.add(within, before);
        let flat = g.merge_axes(all, axis, 2);
        if rest > 0 { g.slice(flat, axis, 0, Some(n as isize)) } else { flat }
    }
}

impl Rule for Cumsum {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        super::check_axes(&[self.axis], &inputs[0])?;
        if inputs[0].dtype == DType::Bool {
            return Err("does not take bool".into());
        }
        Ok(inputs.to_vec())
    }

    /// Each element is part of the sums on the other side.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dy = vjp.grad();
        let op = Cumsum { reverse: !self.reverse, ..self.clone() };
        let dx = vjp.g.apply(Payload::Cumsum(op), &[dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let mut y = Array::filled(&outputs[0], R::of(0.0));
        let n = inputs[0].dims()[self.axis];
        each_point(inputs[0].dims(), |p| {
            let mut sum = R::of(0.0);
            let (mut q, at) = (p.to_vec(), p[self.axis]);
            let skipped = usize::from(self.exclusive);
            let counted = if self.reverse { at + skipped..n } else { 0..at + 1 - skipped };
            for j in counted {
                q[self.axis] = j;
                sum += inputs[0].at(&q);
            }
            let offset = y.offset(p);
            y.data[offset] = sum;
        });
        vec![y]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        if io.inputs[0].dims[self.axis] <= 2 * BLOCK {
            return self.direct(io);
        }
        io.expand(|g, v| vec![self.blocked(g, v[0])])
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let s = |axis, exclusive, reverse| Cumsum { axis, exclusive, reverse };
        vec![
            (s(0, false, false), vec![f(&[1])]),
            (s(1, false, false), vec![f(&[3, 31])]),
            (s(0, true, false), vec![f(&[7, 5])]),
            (s(1, true, true), vec![f(&[2, 5, 3])]),
            (s(0, false, true), vec![f(&[131])]),
            (s(1, true, false), vec![f(&[2, 601])]),
            (s(0, false, false), vec![SampleInput::ids(&[67, 2], 9)]),
        ]
    }
}

impl Graph {
    /// Cumulative sum along an axis (negative ones count from the end): of the elements up to each, itself included.
    #[track_caller]
    pub fn cumsum(&mut self, x: Value, axis: isize) -> Value {
        self.cumsum_with(x, axis, false, false)
    }

    /// The same; `exclusive` leaves each element itself out, `reverse` sums from the end.
    #[track_caller]
    pub fn cumsum_with(&mut self, x: Value, axis: isize, exclusive: bool, reverse: bool) -> Value {
        let axis = self.resolve_axis(x, axis);
        self.apply(Payload::Cumsum(Cumsum { axis, exclusive, reverse }), &[x])
    }
}

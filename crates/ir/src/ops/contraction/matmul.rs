//! Matrix multiplication with batch dimensions and transposes.

use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr, Store};
use crate::loops::{Body, Contract, LoopKind};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType, broadcast};
use serde::{Deserialize, Serialize};

/// `y[.., m, n] = sum over k of a[.., m, k] b[.., k, n]`; a transposed operand has its last two axes swapped. Batch
/// dimensions broadcast, right-aligned.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Matmul {
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
}

struct Shape {
    batch: Vec<usize>,
    m: usize,
    n: usize,
    k: usize,
}

impl Matmul {
    fn shape(&self, a: &TensorType, b: &TensorType) -> Result<Shape, String> {
        need_dtype("the left operand", a, DType::F32)?;
        need_dtype("the right operand", b, DType::F32)?;
        if a.rank() < 2 || b.rank() < 2 {
            return Err(format!("{a} and {b} must have at least two dimensions"));
        }
        let (ab, am) = a.dims.split_at(a.rank() - 2);
        let (bb, bm) = b.dims.split_at(b.rank() - 2);
        let (m, ka) = if self.transpose_a { (am[1], am[0]) } else { (am[0], am[1]) };
        let (kb, n) = if self.transpose_b { (bm[1], bm[0]) } else { (bm[0], bm[1]) };
        if ka != kb {
            return Err(format!("inner dimensions differ: {ka} of {a} and {kb} of {b}"));
        }
        let batch =
            broadcast(ab, bb).ok_or_else(|| format!("batch dimensions of {a} and {b} do not broadcast"))?;
        Ok(Shape { batch, m, n, k: ka })
    }
}

/// Coordinates of an operand: broadcast batch axes, then its two matrix axes in storage order.
fn coords(dims: &[usize], batch: &[usize], matrix: [usize; 2]) -> Vec<IndexExpr> {
    let mut c = Access::broadcast(&dims[..dims.len() - 2], batch).coords;
    c.extend(matrix.map(IndexExpr::axis));
    c
}

impl Rule for Matmul {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let s = self.shape(&inputs[0], &inputs[1])?;
        Ok(vec![TensorType::f32([s.batch, vec![s.m, s.n]].concat())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (a, b, dy) = (vjp.inputs[0], vjp.inputs[1], vjp.grad());
        if vjp.wants(0) {
            // dA = dY B^T, or its transpose B dY^T.
            let da = if self.transpose_a {
                vjp.g.matmul_with(b, dy, [self.transpose_b, true])
            } else {
                vjp.g.matmul_with(dy, b, [false, !self.transpose_b])
            };
            vjp.set_unbroadcast(0, da);
        }
        if vjp.wants(1) {
            // dB = A^T dY, or its transpose dY^T A.
            let db = if self.transpose_b {
                vjp.g.matmul_with(dy, a, [true, self.transpose_a])
            } else {
                vjp.g.matmul_with(a, dy, [!self.transpose_a, false])
            };
            vjp.set_unbroadcast(1, db);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (a, b) = (inputs[0], inputs[1]);
        let k_axis = a.ty.rank() - if self.transpose_a { 2 } else { 1 };
        let k = a.dims()[k_axis];
        vec![Array::build(&outputs[0], |p| {
            let (mut left, mut right, n) = (p.to_vec(), p.to_vec(), p.len());
            left[n - if self.transpose_a { 1 } else { 2 }] = p[n - 2];
            right[n - if self.transpose_b { 2 } else { 1 }] = p[n - 1];
            let mut sum = R::of(0.0);
            for i in 0..k {
                left[n - if self.transpose_a { 2 } else { 1 }] = i;
                right[n - if self.transpose_b { 1 } else { 2 }] = i;
                sum += a.at_broadcast(&left[n - a.ty.rank()..]) * b.at_broadcast(&right[n - b.ty.rank()..]);
            }
            sum
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (a, b) = (&io.inputs[0], &io.inputs[1]);
        let Ok(s) = self.shape(a, b) else { return Lowering::Leaf };
        let nb = s.batch.len();
        let a_axes = if self.transpose_a { [nb + 1, nb] } else { [nb, nb + 1] };
        let b_axes = if self.transpose_b { [nb, nb + 1] } else { [nb + 1, nb] };
        let mut epilogue = Body::new();
        let acc = epilogue.expr.carry(0, DType::F32);
        epilogue.output(acc);
        io.loop_of(LoopKind::Contract(Contract {
            a: Body::of_load(0, a, Access::at(coords(&a.dims, &s.batch, a_axes))),
            b: Body::of_load(1, b, Access::at(coords(&b.dims, &s.batch, b_axes))),
            batch: s.batch,
            m: vec![s.m],
            n: vec![s.n],
            k: vec![s.k],
            more: Vec::new(),
            epilogue,
            stores: vec![Store::identity(0, nb + 2)],
        }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let op = |transpose_a, transpose_b| Matmul { transpose_a, transpose_b };
        vec![
            (op(false, false), vec![f(&[1, 1]), f(&[1, 1])]),
            (op(false, false), vec![f(&[5, 7]), f(&[7, 3])]),
            (op(false, true), vec![f(&[33, 20]), f(&[17, 20])]),
            (op(true, false), vec![f(&[19, 6]), f(&[19, 11])]),
            (op(true, true), vec![f(&[4, 5]), f(&[6, 4])]),
            (op(false, false), vec![f(&[2, 3, 5, 4]), f(&[3, 4, 6])]),
            (op(false, true), vec![f(&[3, 5, 4]), f(&[1, 6, 4])]),
            (op(false, true), vec![f(&[2, 5, 4]), f(&[6, 4])]),
            (op(false, true), vec![f(&[70, 68]), f(&[130, 68])]),
        ]
    }
}

impl Graph {
    /// `a b` over the last two axes, batch dimensions broadcasting.
    #[track_caller]
    pub fn matmul(&mut self, a: Value, b: Value) -> Value {
        self.matmul_with(a, b, [false, false])
    }

    /// `a b` with either operand transposed in its last two axes.
    #[track_caller]
    pub fn matmul_with(&mut self, a: Value, b: Value, transpose: [bool; 2]) -> Value {
        let op = Matmul { transpose_a: transpose[0], transpose_b: transpose[1] };
        self.apply(Payload::Matmul(op), &[a, b])
    }
}

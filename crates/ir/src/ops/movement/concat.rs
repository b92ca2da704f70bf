//! Concatenation along one axis.

use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Bound, IndexExpr};
use crate::loops::Body;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::Scalar;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// The operands one after the other along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Concat {
    pub(crate) axis: usize,
}

impl Rule for Concat {
    fn arity(&self) -> Option<usize> {
        None
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let first = &inputs[0];
        if self.axis >= first.rank() {
            return Err(format!("axis {} of {first} does not exist", self.axis));
        }
        let mut y = first.clone();
        for x in &inputs[1..] {
            let differs = |i: usize| i != self.axis && x.dims[i] != first.dims[i];
            if x.dtype != first.dtype || x.rank() != first.rank() || (0..x.rank()).any(differs) {
                return Err(format!("{first} and {x} differ outside axis {}", self.axis));
            }
            y.dims[self.axis] = y.dims[self.axis].saturating_add(x.dims[self.axis]);
        }
        Ok(vec![y])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dy = vjp.grad();
        let mut at = 0;
        for i in 0..vjp.inputs.len() {
            let d = vjp.g.dims(vjp.inputs[i])[self.axis] as isize;
            if vjp.wants(i) {
                let dx = vjp.g.slice(dy, self.axis, at, Some(at + d));
                vjp.set(i, dx);
            }
            at += d;
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array::build(&outputs[0], |p| {
            let mut q = p.to_vec();
            let mut which = 0;
            while q[self.axis] >= inputs[which].dims()[self.axis] {
                q[self.axis] -= inputs[which].dims()[self.axis];
                which += 1;
            }
            inputs[which].at(&q)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rank = io.outputs[0].rank();
        let mut body = Body::new();
        let (mut at, mut chosen) = (0i64, None);
        for (i, x) in io.inputs.iter().enumerate() {
            let d = x.dims[self.axis] as i64;
            let mut coords: Vec<IndexExpr> = (0..rank).map(IndexExpr::axis).collect();
            coords[self.axis] = coords[self.axis].plus_constant(-at);
            let valid = vec![Bound::new(coords[self.axis].clone(), 0, d)];
            let mine = body.expr.within(valid.clone());
            let access = Access::at(coords).when(valid, Scalar::zero(x.dtype));
            let v = body.load(i, x, access);
            chosen = Some(match chosen {
                None => v,
                Some(before) => body.expr.select(mine, v, before),
            });
            at += d;
        }
        if let Some(v) = chosen {
            body.output(v);
        }
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        vec![
            (Concat { axis: 0 }, vec![f(&[3, 5]), f(&[1, 5]), f(&[7, 5])]),
            (Concat { axis: 1 }, vec![f(&[2, 3, 4]), f(&[2, 6, 4])]),
            (Concat { axis: 0 }, vec![f(&[1])]),
        ]
    }
}

impl Graph {
    /// The values one after the other along an axis.
    #[track_caller]
    pub fn concat(&mut self, values: &[Value], axis: usize) -> Value {
        self.apply(Payload::Concat(Concat { axis }), values)
    }
}

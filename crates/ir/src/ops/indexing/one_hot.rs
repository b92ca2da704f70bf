//! Ids as rows with a single 1.

use super::{clamp, clamped};
use crate::array::Array;
use crate::graph::{Graph, IdLimit, Value};
use crate::index::{Access, IndexExpr};
use crate::loops::Body;
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::BinaryFn;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[.., c] = 1 where c = ids[..], else 0`. Input: ids i32 `[..]`. Result: f32 `[.., classes]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct OneHot {
    pub(crate) classes: usize,
}

impl Rule for OneHot {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        need_dtype("the ids", &inputs[0], DType::I32)?;
        Ok(vec![TensorType::f32([inputs[0].dims.as_slice(), &[self.classes]].concat())])
    }

    /// No gradient flows to ids.
    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let rank = inputs[0].ty.rank();
        vec![Array::build(&outputs[0], |p| {
            let id = clamped(inputs[0].at(&p[..rank]).f64(), self.classes);
            R::of(f64::from(u8::from(p[rank] == id)))
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let rank = io.inputs[0].rank();
        let mut body = Body::new();
        let id = body.load(0, &io.inputs[0], Access::identity(rank));
        let id = clamp(&mut body.expr, id, self.classes);
        let own = body.expr.index(IndexExpr::axis(rank));
        let mine = body.expr.binary(BinaryFn::Eq, id, own);
        let y = body.expr.cast(DType::F32, mine);
        body.output(y);
        io.map(body)
    }

    fn id_limit(&self, _: usize, _: &[TensorType]) -> Option<IdLimit> {
        Some(IdLimit { limit: self.classes as i32, ignore: None })
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |classes| OneHot { classes };
        vec![
            (s(1), vec![SampleInput::ids(&[1], 1)]),
            (s(7), vec![SampleInput::ids(&[], 7)]),
            (s(13), vec![SampleInput::ids(&[3, 5], 13)]),
        ]
    }
}

impl Graph {
    /// `ids` i32 `[..]` as f32 `[.., classes]`: 1 at the id, 0 elsewhere.
    #[track_caller]
    pub fn one_hot(&mut self, ids: Value, classes: usize) -> Value {
        self.apply(Payload::OneHot(OneHot { classes }), &[ids])
    }
}

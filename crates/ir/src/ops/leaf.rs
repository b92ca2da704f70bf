//! Leaves as operations: no inputs, value from outside.

use super::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::array::Array;
use crate::graph::{ConstantData, Leaf, LeafKind};
use crate::real::Real;
use crate::types::TensorType;

impl Rule for Leaf {
    fn arity(&self) -> Option<usize> {
        Some(0)
    }

    fn infer(&self, _: &[TensorType]) -> Result<Vec<TensorType>, String> {
        match &self.kind {
            LeafKind::Constant(ConstantData::Splat(s)) if s.dtype() != self.ty.dtype => {
                Err(format!("a {} constant of type {}", s.dtype(), self.ty))
            }
            LeafKind::Constant(ConstantData::Words(w)) if w.len() != self.ty.elements() => {
                Err(format!("{} words for {}", w.len(), self.ty))
            }
            _ => Ok(vec![self.ty.clone()]),
        }
    }

    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Constants only; other leaves are fed by the evaluator.
    fn reference<R: Real>(&self, _: &[&Array<R>], _: &[TensorType]) -> Vec<Array<R>> {
        match &self.kind {
            LeafKind::Constant(ConstantData::Splat(s)) => vec![Array::filled(&self.ty, R::of(s.to_f64()))],
            LeafKind::Constant(ConstantData::Words(w)) => vec![Array::from_words(&self.ty, w)],
            LeafKind::State { init, .. } => vec![Array::filled(&self.ty, R::of(f64::from(init.get())))],
            _ => vec![Array::filled(&self.ty, R::of(f64::NAN))],
        }
    }

    fn lower(&self, _: &Signature<'_>) -> Lowering {
        Lowering::Leaf
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        Vec::new()
    }
}

//! Bodies: loads feeding a scalar expression.

use crate::index::Access;
use crate::scalar::{Scalar, ScalarExpr, ScalarId, ScalarNode};
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// One element read per point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Load {
    /// Which operand of the loop.
    pub operand: usize,
    /// Which element.
    pub access: Access,
}

/// Loads and the expression over them. Equal loads exist once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Body {
    /// The loads; `ScalarNode::Load(k)` is number k.
    pub loads: Vec<Load>,
    /// The arithmetic; its outputs are the body's outputs.
    pub expr: ScalarExpr,
}

impl Body {
    /// An empty body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A body that is one load of `operand`.
    #[must_use]
    pub fn of_load(operand: usize, ty: &TensorType, access: Access) -> Self {
        let mut body = Self::new();
        let x = body.load(operand, ty, access);
        body.output(x);
        body
    }

    /// Adds a load (or finds the equal one) and gives its value. An access valid everywhere gets a fill of the operand's
    /// dtype: the load may be guarded later.
    pub fn load(&mut self, operand: usize, ty: &TensorType, mut access: Access) -> ScalarId {
        if access.valid.is_empty() {
            access.fill = Scalar::zero(ty.dtype);
        }
        let load = Load { operand, access };
        let k = self.loads.iter().position(|l| *l == load).unwrap_or_else(|| {
            self.loads.push(load);
            self.loads.len() - 1
        });
        self.expr.load(k, ty.dtype)
    }

    /// Appends an output.
    pub fn output(&mut self, value: ScalarId) {
        self.expr.output(value);
    }

    /// Drops loads whose value no output needs.
    #[must_use]
    pub fn pruned(&self) -> Body {
        let mut out = Body::new();
        let outputs = out.import(self, self.expr.outputs(), &mut |_, _| None);
        out.expr.set_outputs(outputs);
        out
    }

    /// Copies the part of `other` that `roots` need into this body and gives the images of `roots`. `replace` may supply
    /// a value for a load (by its number) or another leaf of `other`; otherwise loads are copied.
    pub fn import(
        &mut self,
        other: &Body,
        roots: &[ScalarId],
        replace: &mut dyn FnMut(&mut Body, &ScalarNode) -> Option<ScalarId>,
    ) -> Vec<ScalarId> {
        let mut expr = std::mem::take(&mut self.expr);
        let images = expr.graft(&other.expr, roots, &mut |expr, node, dtype| {
            std::mem::swap(&mut self.expr, expr);
            let made = replace(self, node).or_else(|| match node {
                ScalarNode::Load(k) => Some(self.copy_load(other, *k as usize, dtype)),
                _ => None,
            });
            std::mem::swap(&mut self.expr, expr);
            made
        });
        self.expr = expr;
        images
    }

    fn copy_load(&mut self, other: &Body, k: usize, dtype: crate::types::DType) -> ScalarId {
        let mut load = other.loads[k].clone();
        if let Some(d) = &mut load.access.dynamic {
            let index = self.copy_load(other, d.load, crate::types::DType::I32);
            if let ScalarNode::Load(n) = *self.expr.node(index) {
                d.load = n as usize;
            }
        }
        let k = self.loads.iter().position(|l| *l == load).unwrap_or_else(|| {
            self.loads.push(load);
            self.loads.len() - 1
        });
        self.expr.load(k, dtype)
    }

    /// Rough instructions per point: arithmetic, addresses and one per load.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.expr.cost() + self.loads.iter().map(|l| 1 + l.access.cost()).sum::<usize>()
    }

    /// The operands read.
    #[must_use]
    pub fn operands(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.loads.iter().map(|l| l.operand).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether the body is one load and nothing else: the pure movement of an element.
    #[must_use]
    pub fn is_move(&self) -> bool {
        self.loads.len() == 1
            && matches!(self.expr.outputs(), [x] if matches!(self.expr.node(*x), ScalarNode::Load(0)))
    }
}

//! The expression arena.

use super::{BinaryFn, Scalar, UnaryFn};
use crate::index::{Bound, IndexExpr};
use crate::types::DType;
use serde::{Deserialize, Serialize};

/// One node of a [`ScalarExpr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScalarId(pub u32);

impl ScalarId {
    /// Position in the arena.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScalarNode {
    /// A literal.
    Const(Scalar),
    /// The value of load number k of the surrounding body.
    Load(u32),
    /// Value number k carried in from a reduction (an accumulator, a row statistic).
    Carry(u32),
    /// The value of an index expression over the loop's axes, as `i32`.
    Index(IndexExpr),
    /// Whether all bounds hold at this point of the loop.
    Within(Vec<Bound>),
    /// Intrinsic of one argument.
    Unary(UnaryFn, ScalarId),
    /// Intrinsic of two arguments.
    Binary(BinaryFn, ScalarId, ScalarId),
    /// `if c { a } else { b }`; the value not chosen is ignored even when it is NaN.
    Select(ScalarId, ScalarId, ScalarId),
    /// Value conversion: float to integer truncates and saturates, bool is 0 or 1.
    Cast(DType, ScalarId),
}

/// A DAG of scalar nodes with its outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScalarExpr {
    nodes: Vec<ScalarNode>,
    types: Vec<DType>,
    outputs: Vec<ScalarId>,
}

impl ScalarExpr {
    /// An empty expression.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes; each refers only to earlier ones.
    #[must_use]
    pub fn nodes(&self) -> &[ScalarNode] {
        &self.nodes
    }

    /// The node behind an id.
    #[must_use]
    pub fn node(&self, id: ScalarId) -> &ScalarNode {
        &self.nodes[id.index()]
    }

    /// The dtype of a node.
    #[must_use]
    pub fn dtype(&self, id: ScalarId) -> DType {
        self.types[id.index()]
    }

    /// The outputs, in order.
    #[must_use]
    pub fn outputs(&self) -> &[ScalarId] {
        &self.outputs
    }

    /// Appends an output.
    pub fn output(&mut self, id: ScalarId) {
        self.outputs.push(id);
    }

    /// Replaces all outputs.
    pub fn set_outputs(&mut self, outputs: Vec<ScalarId>) {
        self.outputs = outputs;
    }

    fn push(&mut self, node: ScalarNode, dtype: DType) -> ScalarId {
        let found = self.nodes.iter().zip(&self.types).position(|(n, t)| *n == node && *t == dtype);
        let at = found.unwrap_or_else(|| {
            self.nodes.push(node);
            self.types.push(dtype);
            self.nodes.len() - 1
        });
        ScalarId(at as u32)
    }

    /// A literal.
    pub fn constant(&mut self, value: Scalar) -> ScalarId {
        self.push(ScalarNode::Const(value), value.dtype())
    }

    /// An `f32` literal.
    pub fn f32(&mut self, value: f32) -> ScalarId {
        self.constant(Scalar::F32(value.to_bits()))
    }

    /// Load number `k`, of this dtype.
    pub fn load(&mut self, k: usize, dtype: DType) -> ScalarId {
        self.push(ScalarNode::Load(k as u32), dtype)
    }

    /// Carried value number `k`, of this dtype.
    pub fn carry(&mut self, k: usize, dtype: DType) -> ScalarId {
        self.push(ScalarNode::Carry(k as u32), dtype)
    }

    /// An index value.
    pub fn index(&mut self, expr: IndexExpr) -> ScalarId {
        self.push(ScalarNode::Index(expr), DType::I32)
    }

    /// Whether all bounds hold.
    pub fn within(&mut self, bounds: Vec<Bound>) -> ScalarId {
        self.push(ScalarNode::Within(bounds), DType::Bool)
    }

    /// A one-argument intrinsic. Ill-typed calls are a fault of the recipe and show in the loop verifier.
    pub fn unary(&mut self, f: UnaryFn, x: ScalarId) -> ScalarId {
        let dtype = f.result(self.dtype(x)).unwrap_or(DType::F32);
        self.push(ScalarNode::Unary(f, x), dtype)
    }

    /// A two-argument intrinsic. Ill-typed calls are a fault of the recipe and show in the loop verifier.
    pub fn binary(&mut self, f: BinaryFn, a: ScalarId, b: ScalarId) -> ScalarId {
        let dtype = f.result(self.dtype(a), self.dtype(b)).unwrap_or(DType::F32);
        self.push(ScalarNode::Binary(f, a, b), dtype)
    }

    /// `a + b`
    pub fn add(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        self.binary(BinaryFn::Add, a, b)
    }

    /// `a - b`
    pub fn sub(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        self.binary(BinaryFn::Sub, a, b)
    }

    /// `a * b`
    pub fn mul(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        self.binary(BinaryFn::Mul, a, b)
    }

    /// `a / b`
    pub fn div(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        self.binary(BinaryFn::Div, a, b)
    }

    /// `if c { a } else { b }`
    pub fn select(&mut self, c: ScalarId, a: ScalarId, b: ScalarId) -> ScalarId {
        let dtype = self.dtype(a);
        self.push(ScalarNode::Select(c, a, b), dtype)
    }

    /// Value conversion.
    pub fn cast(&mut self, dtype: DType, x: ScalarId) -> ScalarId {
        if self.dtype(x) == dtype { x } else { self.push(ScalarNode::Cast(dtype, x), dtype) }
    }

    /// Copies the nodes of `other` reachable from `roots` into `self`, replacing leaves by what `leaf` returns for them
    /// (`None` copies the leaf), and returns the images of `roots`.
    pub fn graft(
        &mut self,
        other: &ScalarExpr,
        roots: &[ScalarId],
        leaf: &mut dyn FnMut(&mut ScalarExpr, &ScalarNode, DType) -> Option<ScalarId>,
    ) -> Vec<ScalarId> {
        let live = other.reachable(roots);
        let mut image = vec![ScalarId(u32::MAX); other.nodes.len()];
        for (i, node) in other.nodes.iter().enumerate().filter(|(i, _)| live[*i]) {
            let at = |id: &ScalarId, image: &[ScalarId]| image[id.index()];
            let mapped = match node {
                ScalarNode::Unary(f, x) => ScalarNode::Unary(*f, at(x, &image)),
                ScalarNode::Binary(f, a, b) => ScalarNode::Binary(*f, at(a, &image), at(b, &image)),
                ScalarNode::Select(c, a, b) => {
                    ScalarNode::Select(at(c, &image), at(a, &image), at(b, &image))
                }
                ScalarNode::Cast(d, x) => ScalarNode::Cast(*d, at(x, &image)),
                other_leaf => {
                    if let Some(id) = leaf(self, other_leaf, other.types[i]) {
                        image[i] = id;
                        continue;
                    }
                    other_leaf.clone()
                }
            };
            image[i] = self.push(mapped, other.types[i]);
        }
        roots.iter().map(|r| image[r.index()]).collect()
    }

    /// Which nodes are needed for `roots`.
    #[must_use]
    pub fn reachable(&self, roots: &[ScalarId]) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        for r in roots {
            live[r.index()] = true;
        }
        for i in (0..self.nodes.len()).rev().filter(|&i| self.nodes.get(i).is_some()) {
            if live[i] {
                for a in self.nodes[i].arguments() {
                    live[a.index()] = true;
                }
            }
        }
        live
    }

    /// Faults of typing and reference order, in words.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            if node.arguments().iter().any(|a| a.index() >= i) {
                faults.push(format!("scalar node {i} refers to a later node"));
                continue;
            }
            let t = |id: &ScalarId| self.types[id.index()];
            let ok = match node {
                ScalarNode::Unary(f, x) => f.result(t(x)) == Some(self.types[i]),
                ScalarNode::Binary(f, a, b) => f.result(t(a), t(b)) == Some(self.types[i]),
                ScalarNode::Select(c, a, b) => t(c) == DType::Bool && t(a) == t(b),
                _ => true,
            };
            if !ok {
                faults.push(format!("scalar node {i} is ill-typed: {node:?}"));
            }
        }
        faults
    }

    /// How much evaluating this expression costs, in rough units of one arithmetic instruction.
    #[must_use]
    pub fn cost(&self) -> usize {
        let live = self.reachable(&self.outputs);
        let cost = |n: &ScalarNode| match n {
            ScalarNode::Unary(f, _) if f.is_costly() => 12,
            ScalarNode::Binary(BinaryFn::Pow, ..) => 24,
            ScalarNode::Binary(BinaryFn::Div, ..) => 4,
            ScalarNode::Const(_) | ScalarNode::Carry(_) => 0,
            ScalarNode::Index(e) => e.cost(),
            ScalarNode::Within(b) => b.iter().map(|b| 2 + b.expr.cost()).sum(),
            _ => 1,
        };
        self.nodes.iter().zip(live).filter(|(_, l)| *l).map(|(n, _)| cost(n)).sum()
    }
}

impl ScalarNode {
    /// The nodes this one refers to.
    #[must_use]
    pub fn arguments(&self) -> Vec<ScalarId> {
        match self {
            ScalarNode::Unary(_, x) | ScalarNode::Cast(_, x) => vec![*x],
            ScalarNode::Binary(_, a, b) => vec![*a, *b],
            ScalarNode::Select(c, a, b) => vec![*c, *a, *b],
            _ => Vec::new(),
        }
    }
}

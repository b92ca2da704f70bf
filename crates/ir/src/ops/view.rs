//! What rewriting may see of an operation.
//!
//! Payloads are private to this crate. [`RuleView`] shows the attributes that rules match on, and [`Op::evaluate`] gives the
//! results of an operation whose operands are known. Nothing but `compile::rewrite` may name [`RuleView`] (tidy checks it): a
//! pass that looks at operations one by one belongs into the operation's own file.

use super::{Lowering, Payload, Signature};
use crate::graph::{Graph, Leaf, NodeId, Op};
use crate::loops::interpret;
use crate::scalar::{BinaryFn, UnaryFn};
use crate::types::TensorType;

/// An operation as rules see it. The inputs and types are the node's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RuleView<'a> {
    /// A leaf.
    Leaf(&'a Leaf),
    /// An elementwise intrinsic.
    Unary(UnaryFn),
    /// `max(x, 0)`.
    Relu,
    /// `x sigmoid(x)`.
    Silu,
    /// An elementwise, broadcasting intrinsic of two operands.
    Binary(BinaryFn),
    /// `if c { a } else { b }`.
    Select,
    /// The identity that no gradient passes.
    StopGradient,
    /// Sum or mean.
    Sum {
        /// Sorted axes.
        axes: &'a [usize],
        /// Whether the axes stay with extent 1.
        keep: bool,
        /// Divided by the number of elements.
        mean: bool,
    },
    /// Maximum or minimum, and its position.
    Extremum {
        /// Sorted axes.
        axes: &'a [usize],
        /// Whether the axes stay with extent 1.
        keep: bool,
        /// Maximum, else minimum.
        max: bool,
    },
    /// The same elements in the same order with other dimensions.
    Reshape,
    /// Axis i of the result is axis `order[i]` of the operand.
    Permute(&'a [usize]),
    /// Repetition of axes of extent 1: axis and count.
    Expand(&'a [(usize, usize)]),
    /// Every `step`-th element from `start` on.
    Slice {
        /// The axis.
        axis: usize,
        /// The first position.
        start: usize,
        /// The distance of positions.
        step: usize,
    },
    /// `[before, after, interior]` copies of `value`.
    Pad {
        /// The axis.
        axis: usize,
        /// Copies before, after, and between neighbours.
        spread: [usize; 3],
        /// What is put there.
        value: f32,
    },
    /// The operands one after the other.
    Concat {
        /// The axis.
        axis: usize,
    },
    /// Matrix product with operands transposed or not.
    Matmul {
        /// Whether each operand has its last two axes swapped.
        transpose: [bool; 2],
    },
    /// Softmax.
    Softmax {
        /// The axis.
        axis: usize,
    },
    /// RMS norm over the last axis.
    RmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// Any other operation, by name.
    Other(&'static str),
}

impl Graph {
    /// What rules may see of a node's operation.
    #[must_use]
    pub fn view(&self, id: NodeId) -> RuleView<'_> {
        let node = self.node(id);
        match &node.op.0 {
            Payload::Leaf(leaf) => RuleView::Leaf(leaf),
            Payload::Unary(u) => match (u.f.intrinsic(), u.f) {
                (Some(f), _) => RuleView::Unary(f),
                (None, super::elementwise::Function::Relu) => RuleView::Relu,
                (None, super::elementwise::Function::Silu) => RuleView::Silu,
                (None, _) => RuleView::Other(node.op.0.name()),
            },
            Payload::Binary(b) => RuleView::Binary(b.f),
            Payload::Select(_) => RuleView::Select,
            Payload::StopGradient(_) => RuleView::StopGradient,
            Payload::Sum(s) => RuleView::Sum { axes: &s.axes, keep: s.keep, mean: s.mean },
            Payload::Extremum(e) => RuleView::Extremum { axes: &e.axes, keep: e.keep, max: e.max },
            Payload::Reshape(_) => RuleView::Reshape,
            Payload::Permute(p) => RuleView::Permute(&p.order),
            Payload::Expand(e) => RuleView::Expand(&e.axes),
            Payload::Slice(s) => {
                let extent = self.dims(node.inputs[0]).get(s.axis).map_or(0, |d| *d as isize);
                let start = if s.start < 0 { s.start + extent } else { s.start };
                RuleView::Slice { axis: s.axis, start: start.max(0) as usize, step: s.step }
            }
            Payload::Pad(p) => {
                let spread = [p.before, p.after, p.interior];
                RuleView::Pad { axis: p.axis, spread, value: p.value.get() }
            }
            Payload::Concat(c) => RuleView::Concat { axis: c.axis },
            Payload::Matmul(m) => RuleView::Matmul { transpose: [m.transpose_a, m.transpose_b] },
            Payload::Softmax(s) => RuleView::Softmax { axis: s.axis },
            Payload::RmsNorm(n) => RuleView::RmsNorm { eps: n.eps.get() },
            other => RuleView::Other(other.name()),
        }
    }
}

impl Op {
    /// The results on these operands (type and stored words), exactly as the reference interpreter of loops gives them;
    /// `None` for leaves, for operations that expand into others, and for operands the operation does not take.
    #[must_use]
    pub fn evaluate(&self, operands: &[(TensorType, &[u32])]) -> Option<Vec<(TensorType, Vec<u32>)>> {
        let (inputs, words): (Vec<TensorType>, Vec<&[u32]>) = operands.iter().cloned().unzip();
        let outputs = self.0.infer(&inputs).ok()?;
        let fits = inputs.iter().zip(&words).all(|(t, w)| t.elements() == w.len());
        match self.0.lower(&Signature { inputs: &inputs, outputs: &outputs }) {
            Lowering::Loop(l) if fits => Some(outputs.into_iter().zip(interpret(&l, &words)).collect()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RuleView;
    use crate::graph::Graph;
    use crate::scalar::UnaryFn;
    use crate::types::TensorType;

    #[test]
    fn views_resolve_what_depends_on_the_operand() {
        let mut g = Graph::new();
        let x = g.input("x", [3, 8]);
        let tail = g.slice(x, 1, -5, None);
        assert_eq!(g.view(tail.node()), RuleView::Slice { axis: 1, start: 3, step: 1 });
        let (n, r) = (g.neg(x), g.relu(x));
        assert_eq!((g.view(n.node()), g.view(r.node())), (RuleView::Unary(UnaryFn::Neg), RuleView::Relu));
        assert!(matches!(g.view(x.node()), RuleView::Leaf(l) if l.name == "x"));
    }

    #[test]
    fn operations_evaluate_on_known_operands() {
        let mut g = Graph::new();
        let (x, y) = (g.input("x", [2]), g.input("y", [1]));
        let sum = g.add(x, y);
        let op = g.node(sum.node()).op();
        let words = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let (a, b) = (words(&[1.5, -2.0]), words(&[0.25]));
        let found = op.evaluate(&[(TensorType::f32([2]), &a), (TensorType::f32([1]), &b)]);
        assert_eq!(found, Some(vec![(TensorType::f32([2]), words(&[1.75, -1.75]))]));
        assert_eq!(op.evaluate(&[(TensorType::f32([2]), &a)]), None, "an operand is missing");
        assert_eq!(op.evaluate(&[(TensorType::f32([2]), &b), (TensorType::f32([1]), &b)]), None);
        let expands = g.gelu(x);
        assert_eq!(g.node(expands.node()).op().evaluate(&[(TensorType::f32([2]), &a)]), None);
    }
}

//! Scalar expressions: the per-element arithmetic of every loop, as a small typed DAG.
//!
//! Input: values loaded from operands, values carried from a reduction, index values. Output: one or more scalars.
//! Invariants: a node only refers to earlier nodes; equal nodes exist once (hash-consing by linear search over the small
//! arena), so the DAG is its own common-subexpression form; types are checked when a node is made and recorded.

mod eval;
mod expr;
mod function;

pub use eval::{Scalar, binary, cast, select, unary};
pub use expr::{ScalarExpr, ScalarId, ScalarNode};
pub use function::{BinaryFn, UnaryFn};

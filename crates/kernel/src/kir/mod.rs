//! The typed kernel IR: what a kernel family writes and what the printer and the verifier read.
//!
//! A [`Kernel`] is one compute entry point: a workgroup size, storage bindings, a block of 32-bit parameters (the
//! run-time extents), workgroup arrays, and a body. Expressions live in an arena and are immutable values; every one
//! that does work has a [`Stmt::Bind`] at its point of creation, so that evaluation order is the order in which the
//! generator built it and a value used twice is computed once. The printer folds a value back into its only user when
//! that cannot change its meaning.
//!
//! [`Builder`] is the only way to make one. It checks types and scopes while building, keeps the first fault with the
//! caller's file and line, and [`Builder::finish`] returns it; generators therefore read as straight code:
//!
//! ```
//! use griffinfly_kernel::kir::{Builder, Type};
//!
//! let b = Builder::new("scale", [64, 1, 1]);
//! let count = b.param("count");
//! let x = b.read("x", Type::F32);
//! let y = b.read_write("y", Type::F32);
//! let i = b.flat_global_id().named("i");
//! b.if_(i.lt(count), || y.store(i, x.load(i) * 2.0));
//! let kernel = b.finish().unwrap();
//! assert_eq!(kernel.params, ["count"]);
//! ```

mod build;
mod control;
mod expr;
mod fold;
mod handle;
mod kernel;
mod matrix;
mod methods;
mod operand;
mod rebind;
mod types;

#[cfg(test)]
mod tests;

pub use build::Builder;
pub use expr::{Axis, BinaryOp, Builtin, ExprId, ExprKind, ExprNode, Literal, UnaryOp, Uniformity};
pub use handle::{Buffer, Expr, Shared, Var};
pub use kernel::{
    Access, Binding, BindingId, Block, BlockId, Claim, Counter, CounterId, Factors, Kernel, MATRIX, Matrix,
    MatrixId, MatrixPlace, MatrixRole, Order, SUBGROUP, SharedArray, SharedId, Stmt, VarId, Variable,
};
pub use matrix::{Block as MatrixBlock, MatrixVar};
pub use operand::Operand;
pub use rebind::Rebinding;
pub use types::{Lanes, Scalar, Type};

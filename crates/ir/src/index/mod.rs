//! Index maps: how a point of a loop's domain finds an element of a tensor.
//!
//! [`IndexExpr`] is an affine sum of axes and of divisions and remainders by constants, kept in a canonical form;
//! [`Access`] maps a domain point to tensor coordinates with a validity predicate (padding) and an optional coordinate that
//! comes from loaded data (gather). Views are accesses, and composing views is substitution.
//!
//! Invariants: division is floor division and remainders are never negative; terms are sorted and have nonzero
//! coefficients; `n*(e/n) + e%n` never stands unsimplified. [`Access::verify`] proves that every valid coordinate is in range.

mod access;
mod expr;

pub use access::{Access, Dynamic, Store};
pub use expr::{Atom, Bound, Domain, IndexExpr};

#[cfg(test)]
mod tests;

//! The intermediate representation of Griffinfly.
pub mod array;
pub mod attr;
pub mod autodiff;
pub mod eval;
pub mod graph;
pub mod index;
pub mod layout;
pub mod loops;
pub mod ops;
pub mod optimizer;
pub mod random;
pub mod real;
pub mod scalar;
pub mod target;
pub mod types;

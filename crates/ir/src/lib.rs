//! The intermediate representation of Griffinfly.
pub mod index;
pub mod loops;
pub mod real;
pub mod scalar;
pub mod target;
pub mod types;

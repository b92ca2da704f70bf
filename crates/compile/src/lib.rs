//! The compiler of Griffinfly: a graph becomes a program.
pub mod program;

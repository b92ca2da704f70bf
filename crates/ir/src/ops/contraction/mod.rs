//! Contractions: products summed over shared axes.

mod matmul;

pub(crate) use matmul::Matmul;

//! What backends that run kernels have in common: the check of a program, whose memory an arena is, the host's side of a step, and
//! the numbers of steps.

pub(crate) mod bound;
pub(crate) mod check;
pub(crate) mod externals;
pub(crate) mod steps;

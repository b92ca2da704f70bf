//! Tests of the intermediate representation, without any device.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod attention;
mod attention_grid;
mod autodiff;
mod builder;
mod convolution_grid;
mod convolutions;
mod einsum;
mod evaluation;
mod extremes;
mod faults;
mod garbage;
mod ids;
mod indexing;
mod losses;
mod norms;
mod optimizer;
mod pitfalls;
mod pointwise;
mod random;
mod rebind;
mod second_order;
mod semantics;
mod suite;
mod support;
mod text;

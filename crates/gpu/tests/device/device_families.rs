//! Kernel families on the device with kernels against the loop interpreter.
//!
//! Many loops share one program: their tensors lie in one arena with gaps,
//! results, scratch and gaps are filled with a NaN pattern first, and afterwards everything that is no result must be as
//! it was.

mod attention;
mod harness;
mod long;
mod maps;
mod rows;
mod samples;
mod scatters;

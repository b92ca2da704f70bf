//! Tests of the compiler without a device: host programs run through the slow loop interpreter.

mod digits;
mod golden;
mod programs;
mod random;
mod rules;

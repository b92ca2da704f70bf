//! The host device against the loop interpreter, and its behaviour as a device.

mod attention;
mod device;
mod generate;
mod harness;
mod known;
mod random;
mod refusals;
mod speed;

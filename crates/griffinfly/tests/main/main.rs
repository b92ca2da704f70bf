//! Tests of the library through its public interface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod again;
mod architectures;
mod batch_norm;
mod checkpoint;
mod definition;
mod device;
mod example;
mod fixtures;
mod full_disk;
mod golden;
mod inputs;
mod learning;
mod memory;
mod models;
mod recognition;
mod shards;
mod trainer;
mod weights;

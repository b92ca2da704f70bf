//! Tests of the library through its public interface.

mod checkpoint;
mod definition;
mod device;
mod example;
mod fixtures;
mod inputs;
mod learning;
mod trainer;
mod weights;

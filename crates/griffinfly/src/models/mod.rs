//! Models that come with the library.

mod digits;

pub use digits::{DigitsModel, digits};

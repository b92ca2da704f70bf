//! Files from elsewhere: weights in, weights out.
//!
//! Input: a path or bytes. Output: plain views of tensors, or an [`ImportError`] that names the file, the tensor and
//! the numbers. Invariants: no input can panic, and no failure leaves a half-written file behind.
//!
//! * [`safetensors`]: the format in which checkpoints are kept.
//! * [`replace`]: any file, as a whole or not at all.

mod atomic;
mod error;
pub mod safetensors;
#[cfg(test)]
mod scratch;

pub use atomic::replace;
pub use error::ImportError;

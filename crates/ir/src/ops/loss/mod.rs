//! Losses.

mod cross_entropy;
mod cross_entropy_grad;
mod mse;

pub(crate) use cross_entropy::CrossEntropy;
pub(crate) use cross_entropy_grad::CrossEntropyGrad;

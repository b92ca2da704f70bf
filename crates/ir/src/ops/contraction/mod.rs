//! Contractions: products summed over shared axes.

mod conv2d;
mod conv2d_input_grad;
mod conv2d_weight_grad;
mod einsum;
mod matmul;

#[cfg(test)]
pub(crate) use conv2d::Conv;
pub(crate) use conv2d::Conv2d;
pub(crate) use conv2d_input_grad::Conv2dInputGrad;
pub(crate) use conv2d_weight_grad::Conv2dWeightGrad;
pub(crate) use matmul::Matmul;

use crate::loops::Body;
use crate::types::DType;

#[cfg(test)]
mod tests;

/// The epilogue that stores the sum as it is.
fn carried() -> Body {
    let mut epilogue = Body::new();
    let sum = epilogue.expr.carry(0, DType::F32);
    epilogue.output(sum);
    epilogue
}

//! Losses.

mod cross_entropy;
mod cross_entropy_grad;
mod labels;
mod pointwise;

pub(crate) use cross_entropy::CrossEntropy;
pub(crate) use cross_entropy_grad::CrossEntropyGrad;

use crate::graph::{Graph, Value};

/// What becomes of the losses of the elements or rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// They stay.
    None,
    /// Their sum: a scalar.
    Sum,
    /// Their mean: a scalar.
    #[default]
    Mean,
}

impl Graph {
    /// Losses as the reduction says.
    #[track_caller]
    fn reduced(&mut self, losses: Value, reduction: Reduction) -> Value {
        match reduction {
            Reduction::None => losses,
            Reduction::Sum => self.sum_all(losses),
            Reduction::Mean => self.mean_all(losses),
        }
    }
}

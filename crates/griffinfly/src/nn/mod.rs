//! Layers with PyTorch's parameter names, layouts and initialisation, so that checkpoints load without conversion.
//!
//! A layer is a description; `apply` adds its parameters and operations to a graph. Parameters are called
//! `name.weight` and `name.bias`, running averages `name.running_mean` and `name.running_var`. Activations are methods of
//! [`Value`](crate::Value). What does not fit is an error of the graph, at the line that calls `apply`.
//!
//! ```
//! use griffinfly::{Graph, nn};
//!
//! let mut g = Graph::new();
//! let x = g.input("image", [8, 1, 28, 28]);
//! let h = nn::Conv2d::new("conv", 1, 16, 3).padding(1).apply(&mut g, x).relu(&mut g);
//! let h = nn::MaxPool2d::new(2).apply(&mut g, h).flatten(&mut g, 1);
//! let y = nn::Linear::new("head", 16 * 14 * 14, 10).apply(&mut g, h);
//! assert_eq!(g.dims(y), [8, 10]);
//! ```

mod attention;
mod conv;
mod embedding;
mod linear;
mod norm;
mod pool;

pub use attention::MultiHeadAttention;
pub use conv::{Conv1d, Conv2d, ConvTranspose2d};
pub use embedding::Embedding;
pub use linear::Linear;
pub use norm::{BatchNorm2d, GroupNorm, LayerNorm, RmsNorm};
pub use pool::{AvgPool2d, MaxPool2d};

use griffinfly_ir::graph::Init;

/// PyTorch's default for linear and convolution layers, weights and biases alike: Kaiming uniform with a = sqrt(5), which
/// is uniform within `1 / sqrt(fan_in)`.
fn fan_in_uniform(fan_in: usize) -> Init {
    let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
    Init::Uniform((bound as f32).into())
}

/// Extents along height and width; one number stands for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents(pub [usize; 2]);

impl From<usize> for Extents {
    fn from(both: usize) -> Self {
        Extents([both; 2])
    }
}

impl From<[usize; 2]> for Extents {
    fn from(extents: [usize; 2]) -> Self {
        Extents(extents)
    }
}

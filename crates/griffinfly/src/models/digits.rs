//! A small convolutional classifier of the embedded digits.

use crate::data::{CLASSES, SIDE};
use crate::definition::{GraphExt, InferenceGraph, TrainingGraph};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::optimizer::{AdamConfig, Optimizer};

/// Adam's learning rate at first.
const LEARNING_RATE: f64 = 3e-3;
/// Decoupled weight decay: 1,438 images are few for 71,754 parameters.
const WEIGHT_DECAY: f64 = 0.3;
/// From which part of the steps on the learning rate falls.
const DECAY_FROM: f64 = 0.5;

/// Width of the hidden layer.
const HIDDEN: usize = 128;

/// The classifier: its graph, and the values its two uses need.
#[derive(Clone, Debug)]
pub struct DigitsModel {
    /// The graph, with the inputs `image [N, 1, 8, 8]` and `label [N]`.
    pub graph: Graph,
    /// `[N, 10]`.
    pub logits: Value,
    /// Mean cross-entropy.
    pub loss: Value,
}

/// Two convolutions, max pooling, a hidden layer: 71,754 parameters.
#[must_use]
pub fn digits(batch: usize) -> DigitsModel {
    let mut g = Graph::new();
    let image = g.input("image", [batch, 1, SIDE, SIDE]);
    let label = g.input_ids("label", [batch]);
    let h = nn::Conv2d::new("conv1", 1, 16, 3).padding(1).apply(&mut g, image).relu(&mut g);
    let h = nn::Conv2d::new("conv2", 16, 32, 3).padding(1).apply(&mut g, h).relu(&mut g);
    let h = nn::MaxPool2d::new(2).apply(&mut g, h).flatten(&mut g, 1);
    let h = nn::Linear::new("hidden", 32 * (SIDE / 2) * (SIDE / 2), HIDDEN).apply(&mut g, h).relu(&mut g);
    let logits = nn::Linear::new("head", HIDDEN, CLASSES).apply(&mut g, h);
    let loss = g.cross_entropy(logits, label);
    DigitsModel { graph: g, logits, loss }
}

impl DigitsModel {
    /// How the demo trains it; its learning rate follows [`DigitsModel::learning_rate`].
    #[must_use]
    pub fn optimizer() -> Optimizer {
        let adam = AdamConfig::adamw();
        Optimizer::Adam(AdamConfig { learning_rate: LEARNING_RATE, weight_decay: WEIGHT_DECAY, ..adam })
    }

    /// The learning rate of a step: constant at first, then falling in a straight line to zero.
    #[must_use]
    pub fn learning_rate(step: u64, steps: u64) -> f64 {
        let done = step as f64 / steps as f64;
        LEARNING_RATE * ((1.0 - done) / (1.0 - DECAY_FROM)).min(1.0)
    }

    /// To be trained.
    ///
    /// # Errors
    /// Build errors: a batch of 0 or beyond all limits.
    pub fn training(&self) -> Result<TrainingGraph, Error> {
        self.graph.training(self.loss)
    }

    /// To be run; the output is called `logits`.
    ///
    /// # Errors
    /// Build errors: a batch of 0 or beyond all limits.
    pub fn inference(&self) -> Result<InferenceGraph, Error> {
        self.graph.inference([("logits", self.logits)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_falls_to_almost_nothing() {
        let rate = |step| DigitsModel::learning_rate(step, 100);
        assert!((rate(0) - LEARNING_RATE).abs() < 1e-12 && (rate(50) - LEARNING_RATE).abs() < 1e-12);
        assert!((rate(75) - LEARNING_RATE / 2.0).abs() < 1e-12);
        assert!(rate(99) > 0.0);
    }
}

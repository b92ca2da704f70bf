//! Models: the digits classifier of the demo, and builders of known architectures over [`crate::nn`].
//!
//! An architecture is a configuration that builds a [`Model`]; its parameters have the names and layouts of the published
//! checkpoints, so that [`crate::Weights::load`] takes those files. A configuration that means nothing is an error.

mod action_expert;
mod decoder;
mod digits;
mod dinov3;
mod llama;
mod reconstruction;
mod resnet;
mod unet;
mod whisper;

pub use action_expert::ActionExpertConfig;
pub use digits::{DigitsModel, digits};
pub use dinov3::DinoV3Config;
pub use llama::LlamaConfig;
pub use reconstruction::ReconstructionConfig;
pub use resnet::{ResNetConfig, ResNetNorm, ResNetStem};
pub use unet::UNetConfig;
pub use whisper::{WhisperConfig, WhisperEncoderConfig};

use crate::definition::{GraphExt, InferenceGraph, TrainingGraph};
use crate::error::Error;
use griffinfly_ir::graph::{Graph, Value};

/// A graph with the values its two uses need.
#[derive(Clone, Debug)]
pub struct Model {
    /// The graph.
    pub graph: Graph,
    /// What the model computes.
    pub output: Value,
    /// What it is trained to make small.
    pub loss: Value,
}

impl Model {
    /// To be trained.
    ///
    /// # Errors
    /// Build errors: extents beyond all limits.
    pub fn training(&self) -> Result<TrainingGraph, Error> {
        self.graph.training(self.loss)
    }

    /// To be run; the output is called `output`.
    ///
    /// # Errors
    /// Build errors: extents beyond all limits.
    pub fn inference(&self) -> Result<InferenceGraph, Error> {
        self.graph.inference([("output", self.output)])
    }
}

/// The largest number a configuration may hold: products of three of them do not overflow.
const LIMIT: usize = 1 << 20;

/// Refuses configurations with numbers that are 0 or beyond all limits.
fn check_numbers(numbers: &[(&'static str, usize)]) -> Result<(), Error> {
    match numbers.iter().find(|(_, value)| !(1..=LIMIT).contains(value)) {
        None => Ok(()),
        Some((what, value)) => {
            Err(Error::Value { what, value: value.to_string(), reason: format!("it must be 1 to {LIMIT}") })
        }
    }
}

/// Refuses a number that is no multiple of another one.
fn check_multiple(what: &'static str, value: usize, of: usize, of_what: &str) -> Result<(), Error> {
    if value.is_multiple_of(of) {
        return Ok(());
    }
    let reason = format!("it must be a multiple of {of_what}, which is {of}");
    Err(Error::Value { what, value: value.to_string(), reason })
}

/// Refuses a number above another one.
fn check_at_most(what: &'static str, value: usize, most: usize, of_what: &str) -> Result<(), Error> {
    if value <= most {
        return Ok(());
    }
    let reason = format!("it must be at most {of_what}, which is {most}");
    Err(Error::Value { what, value: value.to_string(), reason })
}

/// The most angles a table of positions may have.
const ANGLES: usize = 1 << 28;

/// Refuses rotary embeddings whose tables are no numbers, or more than a host holds.
fn check_rotary(positions: usize, width: usize, base: f64) -> Result<(), Error> {
    if !(base.is_finite() && base > 0.0) {
        let reason = "it must be a positive number".into();
        return Err(Error::Value { what: "rope_base", value: base.to_string(), reason });
    }
    check_at_most("the number of angles", positions.saturating_mul(width / 2), ANGLES, "the limit")
}

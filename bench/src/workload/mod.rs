//! The five workloads: configurations, parameter tables, inputs and graphs, at full size and small.
//!
//! The tables are written out from the specification, not read from the graphs: a test compares the two. The file that
//! [`crate::bundle`] writes from them is the one source of weights, inputs and configuration for both engines.

mod resnet50;
mod smollm2;
mod smolvla;
mod tables;
mod unet;
mod whisper;

use clap::ValueEnum;
use griffinfly::Error;
use griffinfly::models::Model;
use serde::{Deserialize, Serialize};

pub(crate) use tables::{Fill, Parameter};

/// Which variant of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Size {
    /// That of the comparison.
    Full,
    /// The same graph with few layers and odd extents, for checks.
    Small,
}

/// Which inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Of inference and training.
    Full,
    /// The least work that is of use: of latency.
    Minimal,
}

impl Shape {
    /// What names of inputs in files start with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Shape::Full => "input.full.",
            Shape::Minimal => "input.minimal.",
        }
    }
}

/// Values of an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

/// One input of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InputTensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
}

/// A workload at one size.
pub(crate) trait Workload {
    /// The configuration as the reference reads it.
    fn config(&self) -> serde_json::Result<serde_json::Value>;

    /// Names, shapes and contents of all parameters.
    fn parameters(&self) -> Vec<Parameter>;

    /// Largest magnitude of a weight.
    fn amplitude(&self) -> f32 {
        crate::fill::AMPLITUDE
    }

    /// What is left out at the start of a parameter's name when its weights are drawn.
    fn unseeded_prefix(&self) -> &'static str {
        ""
    }

    /// All inputs of a shape.
    fn inputs(&self, shape: Shape) -> Vec<InputTensor>;

    /// The graph of a shape.
    fn model(&self, shape: Shape) -> Result<Model, Error>;
}

/// The workloads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Name {
    /// A language model.
    SmolLm2,
    /// A robot's action expert.
    SmolVla,
    /// A diffusion U-Net.
    UNet,
    /// An image classifier.
    ResNet50,
    /// A speech encoder.
    Whisper,
}

impl Name {
    pub(crate) const ALL: [Name; 5] =
        [Name::SmolLm2, Name::SmolVla, Name::UNet, Name::ResNet50, Name::Whisper];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Name::SmolLm2 => "smollm2",
            Name::SmolVla => "smolvla",
            Name::UNet => "unet",
            Name::ResNet50 => "resnet50",
            Name::Whisper => "whisper",
        }
    }

    pub(crate) fn at(self, size: Size) -> Box<dyn Workload> {
        match self {
            Name::SmolLm2 => Box::new(smollm2::SmolLm2::new(size)),
            Name::SmolVla => Box::new(smolvla::SmolVla::new(size)),
            Name::UNet => Box::new(unet::UNet::new(size)),
            Name::ResNet50 => Box::new(resnet50::ResNet50::new(size)),
            Name::Whisper => Box::new(whisper::Whisper::new(size)),
        }
    }

    /// The name of its file.
    pub(crate) fn file(self, size: Size) -> String {
        format!("{}.{}.safetensors", self.text(), if size == Size::Full { "full" } else { "small" })
    }
}

/// `all`, or names with commas.
pub(crate) fn names(text: &str) -> Result<Vec<Name>, String> {
    if text == "all" {
        return Ok(Name::ALL.to_vec());
    }
    let known = Name::ALL.map(Name::text).join(", ");
    let one = |part: &str| {
        let found = Name::ALL.into_iter().find(|name| name.text() == part);
        found.ok_or_else(|| format!("'{part}' is no workload: choose all or of {known}"))
    };
    text.split(',').map(one).collect()
}

/// `scale * f(step * i)`, all of it in `f32`; i is the flat index.
fn wave(name: &str, shape: &[usize], (f, step, scale): (fn(f32) -> f32, f32, f32)) -> InputTensor {
    let values = (0..shape.iter().product()).map(|i: usize| scale * f(i as f32 * step)).collect();
    InputTensor { name: name.into(), shape: shape.to_vec(), values: Values::F32(values) }
}

fn zeros(name: &str, shape: &[usize]) -> InputTensor {
    let values = Values::F32(vec![0.0; shape.iter().product()]);
    InputTensor { name: name.into(), shape: shape.to_vec(), values }
}

/// Ids that count up from `first` and start again at `limit`.
fn ids(name: &str, shape: &[usize], first: usize, limit: usize) -> InputTensor {
    let count: usize = shape.iter().product();
    let values = Values::I32((0..count).map(|i| ((first + i) % limit) as i32).collect());
    InputTensor { name: name.into(), shape: shape.to_vec(), values }
}

#[cfg(test)]
mod tests;

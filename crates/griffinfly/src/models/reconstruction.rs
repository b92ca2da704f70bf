//! A decoder from features of a vision transformer, which need not be trained, back to the image they were made from:
//! stages of convolutions with group norm and SiLU, each followed by a doubling of height and width.
//!
//! The default is the decoder of the application study of arXiv 2608.01563, as far as that says what it is: its operations,
//! 2,012,547 parameters, and 2.359 billion multiplications together with three layers of the encoder, which determine the
//! channels and sizes of all convolutions. Groups of the norms and names of the parameters are ours.

use super::{LIMIT, Model, check_at_most, check_multiple, check_numbers};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Interpolation;
use serde::{Deserialize, Serialize};

/// Channels of an image.
const CHANNELS: usize = 3;
/// The most stages, and the most convolutions in one.
const MOST: usize = 8;

/// A decoder of features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconstructionConfig {
    /// Images per step.
    pub batch: usize,
    /// Rows of the grid of features.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// Tokens before the grid, which are passed over.
    pub prefix: usize,
    /// Width of a feature.
    pub features: usize,
    /// Stages: the channels of the convolutions of each.
    pub stages: Vec<Vec<usize>>,
    /// Groups of the norms.
    pub groups: usize,
}

impl ReconstructionConfig {
    /// For the features of [`super::DinoV3Config::vits16`] of images of 224 x 224 pixels: 2,012,547 parameters.
    #[must_use]
    pub fn dinov3_vits16(batch: usize) -> ReconstructionConfig {
        let stages = vec![vec![256, 256], vec![128, 128], vec![64], vec![32]];
        ReconstructionConfig { batch, rows: 14, columns: 14, prefix: 5, features: 384, stages, groups: 8 }
    }

    /// The model: inputs `tokens [N, prefix + rows columns, features]` and `target [N, 3, H, W]` of values from 0 to 1, output as
    /// `target`, where H is `rows` doubled by each stage, and W likewise; mean squared error.
    ///
    /// # Errors
    /// Numbers that are 0 (but for `prefix`) or beyond all limits, no or too many stages or convolutions, channels that groups
    /// do not divide.
    pub fn build(&self) -> Result<Model, Error> {
        self.check()?;
        let mut g = Graph::new();
        let tokens = g.input("tokens", [self.batch, self.prefix + self.rows * self.columns, self.features]);
        let target = [self.rows, self.columns].map(|extent| extent << self.stages.len());
        let target = g.input("target", [self.batch, CHANNELS, target[0], target[1]]);
        let output = self.apply(&mut g, tokens)?;
        let loss = g.mse(output, target);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    /// Adds the decoder to a graph that makes the tokens.
    ///
    /// # Errors
    /// As [`ReconstructionConfig::build`]; tokens that do not fit are errors of the graph.
    pub fn apply(&self, g: &mut Graph, tokens: Value) -> Result<Value, Error> {
        self.check()?;
        let grid = g.slice(tokens, 1, self.prefix as isize, None);
        let grid = g.permute(grid, &[0, 2, 1]);
        let mut x = g.split_axis(grid, 2, &[self.rows, self.columns]);
        let mut inputs = self.features;
        for (i, stage) in self.stages.iter().enumerate() {
            for (j, channels) in stage.iter().enumerate() {
                let name = format!("decoder.stages.{i}.{j}");
                let conv = nn::Conv2d::new(format!("{name}.conv"), inputs, *channels, 3).padding(1);
                x = conv.apply(g, x);
                x = nn::GroupNorm::new(format!("{name}.norm"), self.groups, *channels).apply(g, x).silu(g);
                inputs = *channels;
            }
            x = g.upsample2d(x, [2, 2], Interpolation::Nearest);
        }
        let head = nn::Conv2d::new("decoder.head", inputs, CHANNELS, 3).padding(1);
        Ok(head.apply(g, x).sigmoid(g))
    }

    fn check(&self) -> Result<(), Error> {
        check_numbers(&[("batch", self.batch), ("rows", self.rows), ("columns", self.columns)])?;
        check_numbers(&[("features", self.features), ("groups", self.groups)])?;
        check_at_most("prefix", self.prefix, LIMIT, "the limit")?;
        let counts = self.stages.iter().map(|stage| ("the number of convolutions of a stage", stage.len()));
        for (what, count) in std::iter::once(("the number of stages", self.stages.len())).chain(counts) {
            if !(1..=MOST).contains(&count) {
                let (value, reason) = (count.to_string(), format!("it must be 1 to {MOST}"));
                return Err(Error::Value { what, value, reason });
            }
        }
        for channels in self.stages.iter().flatten() {
            check_numbers(&[("channels", *channels)])?;
            check_multiple("channels", *channels, self.groups, "groups")?;
        }
        Ok(())
    }
}

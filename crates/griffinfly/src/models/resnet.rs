//! ResNet v1.5 with bottlenecks, its batch norms folded into the convolutions before them: what is left of each norm is a
//! trainable bias per channel, called `fused_bias`. Source: He et al. 2015; names as in torchvision.

use super::{Model, check_numbers};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Init, Value};
use serde::{Deserialize, Serialize};

/// A ResNet with bottleneck blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResNetConfig {
    /// Images per step.
    pub batch: usize,
    /// Height and width of an image.
    pub image: usize,
    /// Classes.
    pub classes: usize,
    /// Channels of the first stage inside its blocks; each further stage has twice as many.
    pub width: usize,
    /// Blocks per stage.
    pub blocks: Vec<usize>,
}

/// Channels of a block's result are its width times this.
const EXPANSION: usize = 4;

impl ResNetConfig {
    /// ResNet-50 of images of 224 x 224 pixels: 25,530,472 parameters.
    #[must_use]
    pub fn resnet50(batch: usize) -> ResNetConfig {
        ResNetConfig { batch, image: 224, classes: 1000, width: 64, blocks: vec![3, 4, 6, 3] }
    }

    /// The model: inputs `image [N, 3, H, W]` and `label [N]`, output logits `[N, classes]`, mean cross-entropy.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits, more than eight stages; images too small for the stages.
    pub fn build(&self) -> Result<Model, Error> {
        let ResNetConfig { batch, image, classes, width, ref blocks } = *self;
        check_numbers(&[("batch", batch), ("image", image), ("classes", classes), ("width", width)])?;
        blocks.iter().try_for_each(|b| check_numbers(&[("blocks", *b)]))?;
        if !(1..=8).contains(&blocks.len()) {
            let (value, reason) = (blocks.len().to_string(), "it must be 1 to 8".into());
            return Err(Error::Value { what: "the number of stages", value, reason });
        }
        let mut g = Graph::new();
        let pixels = g.input("image", [batch, 3, image, image]);
        let label = g.input_ids("label", [batch]);
        let stem = nn::Conv2d::new("conv1", 3, width, 7).stride(2).padding(3);
        let mut x = biased(&mut g, &stem, ("bn1", width), pixels).relu(&mut g);
        x = nn::MaxPool2d::new(3).stride(2).padding(1).apply(&mut g, x);
        let mut inputs = width;
        for (stage, count) in blocks.iter().enumerate() {
            for b in 0..*count {
                let stride = if stage > 0 && b == 0 { 2 } else { 1 };
                let block =
                    Block { name: format!("layer{}.{b}", stage + 1), inputs, width: width << stage, stride };
                x = block.apply(&mut g, x, b == 0);
                inputs = EXPANSION * block.width;
            }
        }
        let x = g.mean(x, &[2, 3]);
        let output = nn::Linear::new("fc", inputs, classes).apply(&mut g, x);
        let loss = g.cross_entropy(output, label);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }
}

/// A convolution and the bias that its folded norm left.
fn biased(g: &mut Graph, conv: &nn::Conv2d, (norm, width): (&str, usize), x: Value) -> Value {
    let y = conv.clone().bias(false).apply(g, x);
    let bias = g.parameter(&format!("{norm}.fused_bias"), [width], Init::ZEROS);
    let bias = g.insert_axes(bias, &[1, 2]);
    g.add(y, bias)
}

struct Block {
    name: String,
    inputs: usize,
    width: usize,
    stride: usize,
}

impl Block {
    /// 1x1, 3x3 with the stride and 1x1 convolutions around a shortcut, which the first block of a stage projects.
    fn apply(&self, g: &mut Graph, x: Value, project: bool) -> Value {
        let Block { name, inputs, width, stride } = self;
        let outputs = EXPANSION * width;
        g.layer(name, |g| {
            let conv =
                |i: usize, from, to, kernel| nn::Conv2d::new(format!("{name}.conv{i}"), from, to, kernel);
            let norm = |i: usize| format!("{name}.bn{i}");
            let h = biased(g, &conv(1, *inputs, *width, 1), (&norm(1), *width), x).relu(g);
            let spatial = conv(2, *width, *width, 3).stride(*stride).padding(1);
            let h = biased(g, &spatial, (&norm(2), *width), h).relu(g);
            let h = biased(g, &conv(3, *width, outputs, 1), (&norm(3), outputs), h);
            let shortcut = if project {
                let conv =
                    nn::Conv2d::new(format!("{name}.downsample.0"), *inputs, outputs, 1).stride(*stride);
                biased(g, &conv, (&format!("{name}.downsample.1"), outputs), x)
            } else {
                x
            };
            g.add(h, shortcut).relu(g)
        })
    }
}

//! ResNet v1.5 with bottlenecks. Its batch norms are there for training, or folded into the convolutions before them: what is
//! left of each norm is then a trainable bias per channel, called `fused_bias`. Source: He et al. 2015; names as in
//! torchvision.

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
    /// Channels of an image.
    pub channels: usize,
    /// Height and width of an image.
    pub image: usize,
    /// Classes.
    pub classes: usize,
    /// Channels of the first stage inside its blocks; each further stage has twice as many.
    pub width: usize,
    /// Blocks per stage.
    pub blocks: Vec<usize>,
    /// What comes before the stages.
    pub stem: ResNetStem,
    /// What follows each convolution.
    pub norm: ResNetNorm,
}

/// What comes before the stages of a ResNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResNetStem {
    /// A 7x7 convolution and a 3x3 maximum pooling, which halve the image each: for photographs.
    Large,
    /// A 3x3 convolution that keeps the size: for images of a few dozen pixels.
    Small,
}

/// What follows each convolution of a ResNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResNetNorm {
    /// The bias that a folded batch norm left.
    Folded,
    /// A batch norm: of the batch in training, of the running averages in inference.
    Batch,
}

/// Channels of a block's result are its width times this.
const EXPANSION: usize = 4;

impl ResNetConfig {
    /// ResNet-50 of images of 224 x 224 pixels, its norms folded: 25,530,472 parameters. With batch norms they are
    /// 25,557,032, as in torchvision.
    #[must_use]
    pub fn resnet50(batch: usize) -> ResNetConfig {
        ResNetConfig {
            batch,
            channels: 3,
            image: 224,
            classes: 1000,
            width: 64,
            blocks: vec![3, 4, 6, 3],
            stem: ResNetStem::Large,
            norm: ResNetNorm::Folded,
        }
    }

    /// The model: inputs `image [N, channels, H, W]` and `label [N]`, output logits `[N, classes]`, mean cross-entropy.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits, more than eight stages; images too small for the stages; a batch norm over
    /// one value per channel.
    pub fn build(&self) -> Result<Model, Error> {
        self.check()?;
        let mut g = Graph::new();
        let pixels = g.input("image", [self.batch, self.channels, self.image, self.image]);
        let label = g.input_ids("label", [self.batch]);
        let mut x = self.stem(&mut g, pixels);
        let mut inputs = self.width;
        for (stage, count) in self.blocks.iter().enumerate() {
            for b in 0..*count {
                let (name, width) = (format!("layer{}.{b}", stage + 1), self.width << stage);
                let stride = if stage > 0 && b == 0 { 2 } else { 1 };
                let block = Block { name, inputs, width, stride, norm: self.norm };
                x = block.apply(&mut g, x, b == 0);
                inputs = EXPANSION * width;
            }
        }
        let x = g.mean(x, &[2, 3]);
        let output = nn::Linear::new("fc", inputs, self.classes).apply(&mut g, x);
        let loss = g.cross_entropy(output, label);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    fn check(&self) -> Result<(), Error> {
        check_numbers(&[("batch", self.batch), ("channels", self.channels), ("image", self.image)])?;
        check_numbers(&[("classes", self.classes), ("width", self.width)])?;
        self.blocks.iter().try_for_each(|b| check_numbers(&[("blocks", *b)]))?;
        if (1..=8).contains(&self.blocks.len()) {
            return Ok(());
        }
        let (value, reason) = (self.blocks.len().to_string(), "it must be 1 to 8".into());
        Err(Error::Value { what: "the number of stages", value, reason })
    }

    fn stem(&self, g: &mut Graph, pixels: Value) -> Value {
        let conv = |kernel| nn::Conv2d::new("conv1", self.channels, self.width, kernel);
        let norm = ("bn1", self.width);
        match self.stem {
            ResNetStem::Large => {
                let x = self.norm.after(g, &conv(7).stride(2).padding(3), norm, pixels).relu(g);
                nn::MaxPool2d::new(3).stride(2).padding(1).apply(g, x)
            }
            ResNetStem::Small => self.norm.after(g, &conv(3).padding(1), norm, pixels).relu(g),
        }
    }
}

impl ResNetNorm {
    /// A convolution and what follows it.
    fn after(self, g: &mut Graph, conv: &nn::Conv2d, (name, width): (&str, usize), x: Value) -> Value {
        let y = conv.clone().bias(false).apply(g, x);
        match self {
            ResNetNorm::Folded => {
                let bias = g.parameter(&format!("{name}.fused_bias"), [width], Init::ZEROS);
                let bias = g.insert_axes(bias, &[1, 2]);
                g.add(y, bias)
            }
            ResNetNorm::Batch => nn::BatchNorm2d::new(name, width).apply(g, y),
        }
    }
}

struct Block {
    name: String,
    inputs: usize,
    width: usize,
    stride: usize,
    norm: ResNetNorm,
}

impl Block {
    /// 1x1, 3x3 with the stride and 1x1 convolutions around a shortcut, which the first block of a stage projects.
    fn apply(&self, g: &mut Graph, x: Value, project: bool) -> Value {
        let Block { name, inputs, width, stride, norm: kind } = self;
        let outputs = EXPANSION * width;
        g.layer(name, |g| {
            let conv =
                |i: usize, from, to, kernel| nn::Conv2d::new(format!("{name}.conv{i}"), from, to, kernel);
            let norm = |i: usize| format!("{name}.bn{i}");
            let h = kind.after(g, &conv(1, *inputs, *width, 1), (&norm(1), *width), x).relu(g);
            let spatial = conv(2, *width, *width, 3).stride(*stride).padding(1);
            let h = kind.after(g, &spatial, (&norm(2), *width), h).relu(g);
            let h = kind.after(g, &conv(3, *width, outputs, 1), (&norm(3), outputs), h);
            let shortcut = if project {
                let conv =
                    nn::Conv2d::new(format!("{name}.downsample.0"), *inputs, outputs, 1).stride(*stride);
                kind.after(g, &conv, (&format!("{name}.downsample.1"), outputs), x)
            } else {
                x
            };
            g.add(h, shortcut).relu(g)
        })
    }
}

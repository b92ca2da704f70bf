//! ResNet-50 with folded norms over four images; latency is the first of them.

use super::tables::{Parameter, Table};
use super::{InputTensor, Shape, Size, Workload, ids, wave};
use griffinfly::Error;
use griffinfly::models::{Model, ResNetConfig};

pub(super) struct ResNet50(ResNetConfig);

impl ResNet50 {
    pub(super) fn new(size: Size) -> Self {
        ResNet50(match size {
            Size::Full => ResNetConfig::resnet50(4),
            Size::Small => ResNetConfig {
                image: 37,
                classes: 11,
                width: 4,
                blocks: vec![2, 2, 1, 1],
                ..ResNetConfig::resnet50(2)
            },
        })
    }

    fn at(&self, shape: Shape) -> ResNetConfig {
        match shape {
            Shape::Full => self.0.clone(),
            Shape::Minimal => ResNetConfig { batch: 1, ..self.0.clone() },
        }
    }
}

/// A convolution and the bias that its folded norm left.
fn biased(t: &mut Table, [conv, norm]: [&str; 2], outputs: usize, inputs: usize, kernel: usize) {
    t.natural(format!("{conv}.weight"), &[outputs, inputs, kernel, kernel]);
    t.natural(format!("{norm}.fused_bias"), &[outputs]);
}

impl Workload for ResNet50 {
    fn config(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.0)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let c = &self.0;
        let mut t = Table::default();
        biased(&mut t, ["conv1", "bn1"], c.width, 3, 7);
        let mut inputs = c.width;
        for (stage, count) in c.blocks.iter().enumerate() {
            let width = c.width << stage;
            for b in 0..*count {
                let n = |part: &str| format!("layer{}.{b}.{part}", stage + 1);
                biased(&mut t, [&n("conv1"), &n("bn1")], width, inputs, 1);
                biased(&mut t, [&n("conv2"), &n("bn2")], width, width, 3);
                biased(&mut t, [&n("conv3"), &n("bn3")], 4 * width, width, 1);
                if b == 0 {
                    biased(&mut t, [&n("downsample.0"), &n("downsample.1")], 4 * width, inputs, 1);
                }
                inputs = 4 * width;
            }
        }
        t.linear_bias("fc", c.classes, inputs);
        t.0
    }

    fn amplitude(&self) -> f32 {
        crate::fill::AMPLITUDE / 2.0
    }

    fn inputs(&self, shape: Shape) -> Vec<InputTensor> {
        let c = self.at(shape);
        let image = [c.batch, 3, c.image, c.image];
        vec![wave("image", &image, (f32::sin, 0.001, 1.0)), ids("label", &[c.batch], 0, c.classes)]
    }

    fn model(&self, shape: Shape) -> Result<Model, Error> {
        self.at(shape).build()
    }
}

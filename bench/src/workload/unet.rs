//! A diffusion U-Net over one latent image; latency is the same.

use super::tables::{Parameter, Table};
use super::{InputTensor, Shape, Size, Workload, wave};
use griffinfly::Error;
use griffinfly::models::{Model, UNetConfig};

pub(super) struct UNet(UNetConfig);

impl UNet {
    pub(super) fn new(size: Size) -> Self {
        UNet(match size {
            Size::Full => UNetConfig::small_diffusion(1),
            Size::Small => UNetConfig {
                side: 12,
                base: 8,
                groups: 2,
                head_dim: 8,
                time_inputs: 9,
                time_width: 23,
                context_tokens: 7,
                context_width: 11,
                ..UNetConfig::small_diffusion(2)
            },
        })
    }

    fn at(&self, shape: Shape) -> UNetConfig {
        match shape {
            Shape::Full => self.0.clone(),
            Shape::Minimal => UNetConfig { batch: 1, ..self.0.clone() },
        }
    }
}

/// A convolution's weight; it has no bias.
fn conv(t: &mut Table, name: &str, outputs: usize, inputs: usize, kernel: usize) {
    t.natural(format!("{name}.weight"), &[outputs, inputs, kernel, kernel]);
}

impl UNet {
    fn residual(&self, t: &mut Table, name: &str, inputs: usize, outputs: usize) {
        let n = |part: &str| format!("{name}.{part}");
        t.norm(&n("norm1"), inputs, true);
        conv(t, &n("conv1"), outputs, inputs, 3);
        t.linear_bias(&n("time_proj"), outputs, self.0.time_width);
        t.norm(&n("norm2"), outputs, true);
        conv(t, &n("conv2"), outputs, outputs, 3);
        if inputs != outputs {
            conv(t, &n("res_conv"), outputs, inputs, 1);
        }
    }

    fn transformer(&self, t: &mut Table, name: &str, width: usize) {
        let n = |part: &str| format!("{name}.{part}");
        t.norm(&n("norm"), width, true);
        conv(t, &n("proj_in"), width, width, 1);
        conv(t, &n("proj_out"), width, width, 1);
        for (i, attention, source) in [(1, "self_attn", width), (2, "cross_attn", self.0.context_width)] {
            t.norm(&n(&format!("transformer.norm{i}")), width, true);
            for (part, inputs) in [("q", width), ("k", source), ("v", source), ("out", width)] {
                t.linear(&n(&format!("transformer.{attention}.{part}_proj")), width, inputs);
            }
        }
        t.norm(&n("transformer.norm3"), width, true);
        t.linear_bias(&n("transformer.ff.fc1"), 4 * width, width);
        t.linear_bias(&n("transformer.ff.fc2"), width, 4 * width);
    }
}

impl Workload for UNet {
    fn config(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.0)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let c = &self.0;
        let [w0, w1, w2] = [1, 2, 4].map(|m| m * c.base);
        let mut t = Table::default();
        t.linear_bias("time_mlp.fc1", c.time_width, c.time_inputs);
        t.linear_bias("time_mlp.fc2", c.time_width, c.time_width);
        conv(&mut t, "conv_in", w0, c.channels, 3);
        self.residual(&mut t, "encoder.0.resblock", w0, w0);
        conv(&mut t, "encoder.0.downsample", w0, w0, 3);
        self.residual(&mut t, "encoder.1.resblock", w0, w1);
        self.transformer(&mut t, "encoder.1.attn", w1);
        conv(&mut t, "encoder.1.downsample", w1, w1, 3);
        self.residual(&mut t, "encoder.2.resblock", w1, w2);
        self.transformer(&mut t, "encoder.2.attn", w2);
        self.residual(&mut t, "middle.resblock", w2, w2);
        self.transformer(&mut t, "middle.attn", w2);
        self.residual(&mut t, "decoder.2.resblock", w2 + w2, w2);
        self.transformer(&mut t, "decoder.2.attn", w2);
        self.residual(&mut t, "decoder.1.resblock", w2 + w1, w1);
        self.transformer(&mut t, "decoder.1.attn", w1);
        self.residual(&mut t, "decoder.0.resblock", w1 + w0, w0);
        t.norm("conv_out.norm", w0, true);
        conv(&mut t, "conv_out", c.channels, w0, 3);
        t.0
    }

    fn inputs(&self, shape: Shape) -> Vec<InputTensor> {
        let c = self.at(shape);
        let image = [c.batch, c.channels, c.side, c.side];
        vec![
            wave("latent", &image, (f32::sin, 0.01, 1.0)),
            wave("time", &[c.batch, c.time_inputs], (f32::sin, 0.005, 1.0)),
            wave("context", &[c.batch, c.context_tokens, c.context_width], (f32::cos, 0.003, 0.1)),
            wave("target", &image, (f32::cos, 0.007, 1.0)),
        ]
    }

    fn model(&self, shape: Shape) -> Result<Model, Error> {
        self.at(shape).build()
    }
}

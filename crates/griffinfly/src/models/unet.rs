//! A diffusion U-Net of three levels with spatial transformers at the two lower ones, conditioned on time and on a context.
//! Source: Rombach et al. 2021, scaled down, one residual block per stage.

use super::{Model, check_multiple, check_numbers};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Interpolation;
use serde::{Deserialize, Serialize};

/// A U-Net.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UNetConfig {
    /// Images per step.
    pub batch: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Height and width of an image.
    pub side: usize,
    /// Channels of the first level; each further level has twice as many.
    pub base: usize,
    /// Groups of the norms.
    pub groups: usize,
    /// Numbers that describe the time.
    pub time_inputs: usize,
    /// Width of its embedding.
    pub time_width: usize,
    /// Tokens of the context.
    pub context_tokens: usize,
    /// Width of the context.
    pub context_width: usize,
    /// Width of a head of attention.
    pub head_dim: usize,
}

impl UNetConfig {
    /// The one of the benchmark: 10,928,768 parameters.
    #[must_use]
    pub fn small_diffusion(batch: usize) -> UNetConfig {
        UNetConfig {
            batch,
            channels: 4,
            side: 32,
            base: 64,
            groups: 16,
            time_inputs: 64,
            time_width: 256,
            context_tokens: 77,
            context_width: 768,
            head_dim: 32,
        }
    }

    /// The model: inputs `latent [N, C, H, W]`, `time [N, time_inputs]`, `context [N, T, context_width]` and `target` as
    /// `latent`; output as `latent`; mean squared error.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits; a side that is no multiple of 4; channels that groups or heads do not divide.
    pub fn build(&self) -> Result<Model, Error> {
        let UNetConfig { batch, channels, side, base, .. } = *self;
        self.check()?;
        let mut g = Graph::new();
        let image = [batch, channels, side, side];
        let (latent, target) = (g.input("latent", image), g.input("target", image));
        let time = g.input("time", [batch, self.time_inputs]);
        let context = g.input("context", [batch, self.context_tokens, self.context_width]);
        let mut b = Builder { c: self, g: &mut g, time, context };
        b.time = b.embed(time);
        let (w0, w1, w2) = (base, 2 * base, 4 * base);
        let x = b.conv("conv_in", [channels, w0], [3, 1], latent);
        let skip0 = b.residual("encoder.0.resblock", [w0, w0], x);
        let x = b.conv("encoder.0.downsample", [w0, w0], [3, 2], skip0);
        let skip1 = b.stage("encoder.1", [w0, w1], x);
        let x = b.conv("encoder.1.downsample", [w1, w1], [3, 2], skip1);
        let skip2 = b.stage("encoder.2", [w1, w2], x);
        let x = b.stage("middle", [w2, w2], skip2);
        let x = b.g.concat(&[x, skip2], 1);
        let x = b.stage("decoder.2", [2 * w2, w2], x);
        let x = b.join(x, skip1);
        let x = b.stage("decoder.1", [w2 + w1, w1], x);
        let x = b.join(x, skip0);
        let x = b.residual("decoder.0.resblock", [w1 + w0, w0], x);
        let x = b.norm("conv_out.norm", w0, x).silu(b.g);
        let output = b.conv("conv_out", [w0, channels], [3, 1], x);
        let loss = g.mse(output, target);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    fn check(&self) -> Result<(), Error> {
        check_numbers(&[
            ("batch", self.batch),
            ("channels", self.channels),
            ("side", self.side),
            ("base", self.base),
            ("groups", self.groups),
            ("time_inputs", self.time_inputs),
            ("time_width", self.time_width),
            ("context_tokens", self.context_tokens),
            ("context_width", self.context_width),
            ("head_dim", self.head_dim),
        ])?;
        check_multiple("side", self.side, 4, "the two halvings")?;
        check_multiple("base", self.base, self.groups, "groups")?;
        check_multiple("twice base", 2 * self.base, self.head_dim, "head_dim")
    }
}

struct Builder<'a> {
    c: &'a UNetConfig,
    g: &'a mut Graph,
    /// Its embedding, once there is one.
    time: Value,
    context: Value,
}

impl Builder<'_> {
    fn linear(&mut self, name: &str, [inputs, outputs]: [usize; 2], x: Value) -> Value {
        nn::Linear::new(name, inputs, outputs).apply(self.g, x)
    }

    fn conv(
        &mut self,
        name: &str,
        [inputs, outputs]: [usize; 2],
        [kernel, stride]: [usize; 2],
        x: Value,
    ) -> Value {
        let conv = nn::Conv2d::new(name, inputs, outputs, kernel).bias(false);
        conv.stride(stride).padding(kernel / 2).apply(self.g, x)
    }

    fn norm(&mut self, name: &str, width: usize, x: Value) -> Value {
        nn::GroupNorm::new(name, self.c.groups, width).apply(self.g, x)
    }

    fn layer_norm(&mut self, name: &str, width: usize, x: Value) -> Value {
        nn::LayerNorm::new(name, width).apply(self.g, x)
    }

    fn embed(&mut self, time: Value) -> Value {
        let (inputs, width) = (self.c.time_inputs, self.c.time_width);
        let t = self.linear("time_mlp.fc1", [inputs, width], time).silu(self.g);
        self.linear("time_mlp.fc2", [width, width], t)
    }

    /// Twice the height and width, then the skip's channels behind its own.
    fn join(&mut self, x: Value, skip: Value) -> Value {
        let x = self.g.upsample2d(x, [2, 2], Interpolation::Nearest);
        self.g.concat(&[x, skip], 1)
    }

    fn stage(&mut self, name: &str, channels: [usize; 2], x: Value) -> Value {
        let x = self.residual(&format!("{name}.resblock"), channels, x);
        self.transformer(&format!("{name}.attn"), channels[1], x)
    }

    /// `conv2(silu(norm2(conv1(silu(norm1(x))) + time_proj(t))))` and x, projected where its channels differ.
    fn residual(&mut self, name: &str, [inputs, outputs]: [usize; 2], x: Value) -> Value {
        let n = |part: &str| format!("{name}.{part}");
        let h = self.norm(&n("norm1"), inputs, x).silu(self.g);
        let h = self.conv(&n("conv1"), [inputs, outputs], [3, 1], h);
        let t = self.linear(&n("time_proj"), [self.c.time_width, outputs], self.time);
        let t = self.g.insert_axes(t, &[2, 3]);
        let h = self.g.add(h, t);
        let h = self.norm(&n("norm2"), outputs, h).silu(self.g);
        let h = self.conv(&n("conv2"), [outputs, outputs], [3, 1], h);
        let x = if inputs == outputs { x } else { self.conv(&n("res_conv"), [inputs, outputs], [1, 1], x) };
        self.g.add(h, x)
    }

    /// Self-attention, attention to the context and a feed-forward over the pixels, inside a residual sum.
    fn transformer(&mut self, name: &str, width: usize, x: Value) -> Value {
        let n = |part: &str| format!("{name}.{part}");
        let h = self.norm(&n("norm"), width, x);
        let h = self.conv(&n("proj_in"), [width, width], [1, 1], h);
        let side = self.g.dims(h).last().copied().unwrap_or(0);
        let tokens = self.g.flatten(h, 2);
        let tokens = self.g.permute(tokens, &[0, 2, 1]);
        let h = self.layer_norm(&n("transformer.norm1"), width, tokens);
        let h = self.attend(&n("transformer.self_attn"), width, [h, h], width);
        let tokens = self.g.add(tokens, h);
        let h = self.layer_norm(&n("transformer.norm2"), width, tokens);
        let h = self.attend(&n("transformer.cross_attn"), width, [h, self.context], self.c.context_width);
        let tokens = self.g.add(tokens, h);
        let h = self.layer_norm(&n("transformer.norm3"), width, tokens);
        let h = self.linear(&n("transformer.ff.fc1"), [width, 4 * width], h).gelu_tanh(self.g);
        let h = self.linear(&n("transformer.ff.fc2"), [4 * width, width], h);
        let tokens = self.g.add(tokens, h);
        let h = self.g.permute(tokens, &[0, 2, 1]);
        let h = self.g.split_axis(h, 2, &[0, side]);
        let h = self.conv(&n("proj_out"), [width, width], [1, 1], h);
        self.g.add(x, h)
    }

    fn attend(&mut self, name: &str, width: usize, [h, seen]: [Value; 2], seen_width: usize) -> Value {
        let inputs = [("q", width), ("k", seen_width), ("v", seen_width), ("out", width)];
        let projections = inputs
            .map(|(part, inputs)| nn::Linear::new(format!("{name}.{part}_proj"), inputs, width).bias(false));
        let attention = nn::MultiHeadAttention::new(projections, width / self.c.head_dim);
        attention.apply_across(self.g, h, seen)
    }
}

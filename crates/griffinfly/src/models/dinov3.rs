//! The vision transformer of DINOv3: class and register tokens before the patches, axial rotary embedding of the patches,
//! LayerScale. Source: Siméoni et al. 2025; names as in the checkpoints published for `transformers`.

use super::{Model, check_at_most, check_multiple, check_numbers, check_rotary};
use crate::error::Error;
use crate::nn;
use griffinfly_ir::graph::{Graph, Init, Value};
use griffinfly_ir::ops::RotaryStyle;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Channels of an image.
const CHANNELS: usize = 3;

/// A vision transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DinoV3Config {
    /// Images per step.
    pub batch: usize,
    /// Height of an image, a multiple of `patch`.
    pub height: usize,
    /// Width of an image, a multiple of `patch`.
    pub width: usize,
    /// Height and width of a patch.
    pub patch: usize,
    /// Width of the state.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Width of the feed-forward.
    pub ffn: usize,
    /// Register tokens.
    pub registers: usize,
    /// Added to the variance by the norms.
    pub eps: f32,
    /// Base of the rotary position embedding.
    pub rope_base: f64,
}

impl DinoV3Config {
    /// ViT-S/16: 21,596,544 parameters.
    #[must_use]
    pub fn vits16(batch: usize, height: usize, width: usize) -> DinoV3Config {
        DinoV3Config {
            batch,
            height,
            width,
            patch: 16,
            hidden: 384,
            layers: 12,
            heads: 6,
            ffn: 1536,
            registers: 4,
            eps: 1e-5,
            rope_base: 100.0,
        }
    }

    /// The model: input `image [N, 3, H, W]`, output `[N, 1 + registers + patches, hidden]`, the patches row by row; mean square
    /// of the output.
    ///
    /// # Errors
    /// Numbers that are 0 or beyond all limits, an image that is not made of patches, a state that heads do not divide, heads
    /// whose width is no multiple of 4, a base that is not positive.
    pub fn build(&self) -> Result<Model, Error> {
        self.build_with(None)
    }

    /// The same parameters, but the output is the state after the first layers, without the last norm.
    ///
    /// # Errors
    /// As [`DinoV3Config::build`]; a depth that is 0 or beyond the layers.
    pub fn build_features(&self, depth: usize) -> Result<Model, Error> {
        check_numbers(&[("depth", depth)])?;
        check_at_most("depth", depth, self.layers, "layers")?;
        self.build_with(Some(depth))
    }

    fn build_with(&self, depth: Option<usize>) -> Result<Model, Error> {
        self.check()?;
        let mut g = Graph::new();
        let tables = self.tables(&mut g);
        let mut x = self.embed(&mut g);
        let mut features = None;
        for i in 0..self.layers {
            x = self.layer(&mut g, &format!("layer.{i}"), x, tables);
            features = features.or((depth == Some(i + 1)).then_some(x));
        }
        let normalised = self.norm("norm").apply(&mut g, x);
        let output = features.unwrap_or(normalised);
        let squares = g.mul(output, output);
        let loss = g.mean_all(squares);
        g.finish()?;
        Ok(Model { graph: g, output, loss })
    }

    fn check(&self) -> Result<(), Error> {
        let DinoV3Config { height, width, patch, hidden, heads, registers, .. } = *self;
        check_numbers(&[("batch", self.batch), ("height", height), ("width", width), ("patch", patch)])?;
        check_numbers(&[("hidden", hidden), ("layers", self.layers), ("heads", heads), ("ffn", self.ffn)])?;
        check_numbers(&[("registers", registers)])?;
        check_multiple("height", height, patch, "patch")?;
        check_multiple("width", width, patch, "patch")?;
        check_multiple("hidden", hidden, heads, "heads")?;
        check_multiple("hidden / heads", hidden / heads, 4, "the members of two rotated pairs")?;
        check_rotary(self.prefix() + self.patches(), hidden / heads, self.rope_base)
    }

    /// Tokens before those of the patches.
    fn prefix(&self) -> usize {
        1 + self.registers
    }

    fn patches(&self) -> usize {
        (self.height / self.patch) * (self.width / self.patch)
    }

    /// Cosines and sines `[tokens, hidden / heads / 2]`. Of a patch whose centre is at (y, x), the image going from -1 to 1, the
    /// angles are `2 pi y base^(-j / n)` and then `2 pi x base^(-j / n)` for j in 0..n; the tokens before are not rotated.
    fn tables(&self, g: &mut Graph) -> [Value; 2] {
        let quarter = self.hidden / self.heads / 4;
        let [rows, columns] = [self.height, self.width].map(|extent| extent / self.patch);
        let mut angles = vec![0.0; self.prefix() * 2 * quarter];
        for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
            for (i, count) in [(y, rows), (x, columns)] {
                let centre = (2 * i + 1) as f64 / count as f64 - 1.0;
                let frequency = |j: usize| self.rope_base.powf(-(j as f64) / quarter as f64);
                angles.extend((0..quarter).map(|j| TAU * centre * frequency(j)));
            }
        }
        let functions: [fn(f64) -> f64; 2] = [f64::cos, f64::sin];
        functions.map(|f| {
            let table: Vec<f32> = angles.iter().map(|a| f(*a) as f32).collect();
            g.constant(&table, [self.prefix() + self.patches(), 2 * quarter])
        })
    }

    /// The input image as tokens. The mask token is part of the checkpoints; nothing here is masked, so nothing reads it.
    fn embed(&self, g: &mut Graph) -> Value {
        let image = g.input("image", [self.batch, CHANNELS, self.height, self.width]);
        let normal = Init::Normal(0.02.into());
        let mut tokens = |name: &str, count, init| {
            g.parameter(&format!("embeddings.{name}"), [1, count, self.hidden], init)
        };
        let class = tokens("cls_token", 1, normal);
        tokens("mask_token", 1, Init::ZEROS);
        let registers = tokens("register_tokens", self.registers, normal);
        let patches = nn::Conv2d::new("embeddings.patch_embeddings", CHANNELS, self.hidden, self.patch);
        let patches = patches.stride(self.patch).apply(g, image);
        let patches = g.flatten(patches, 2);
        let patches = g.permute(patches, &[0, 2, 1]);
        // A sum over zeros, not a concatenation: so the same tokens stand before the patches of however many images.
        let prefix = g.concat(&[class, registers], 1);
        let prefix = g.pad(prefix, 1, [0, self.patches()], 0.0);
        let patches = g.pad(patches, 1, [self.prefix(), 0], 0.0);
        g.add(patches, prefix)
    }

    fn norm(&self, name: impl Into<String>) -> nn::LayerNorm {
        nn::LayerNorm::new(name, self.hidden).eps(self.eps)
    }

    /// Attention and feed-forward, each behind a norm, scaled, and inside a residual sum. Keys have no bias.
    fn layer(&self, g: &mut Graph, name: &str, x: Value, tables: [Value; 2]) -> Value {
        let hidden = self.hidden;
        let n = |part: &str| format!("{name}.{part}");
        let project = |part: &str| nn::Linear::new(n(&format!("attention.{part}_proj")), hidden, hidden);
        let projections = [project("q"), project("k").bias(false), project("v"), project("o")];
        let attention = nn::MultiHeadAttention::new(projections, self.heads);
        let h = self.norm(n("norm1")).apply(g, x);
        let h = attention.rotary(tables, RotaryStyle::HalfSplit).apply(g, h);
        let x = self.add_scaled(g, &n("layer_scale1.lambda1"), x, h);
        let h = self.norm(n("norm2")).apply(g, x);
        let h = nn::Linear::new(n("mlp.up_proj"), hidden, self.ffn).apply(g, h).gelu(g);
        let h = nn::Linear::new(n("mlp.down_proj"), self.ffn, hidden).apply(g, h);
        self.add_scaled(g, &n("layer_scale2.lambda1"), x, h)
    }

    fn add_scaled(&self, g: &mut Graph, name: &str, x: Value, h: Value) -> Value {
        let scale = g.parameter(name, [self.hidden], Init::ONES);
        let h = g.layer_scale(h, scale);
        g.add(x, h)
    }
}

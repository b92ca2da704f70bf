//! The shapes that are measured, as `bench/shapes.json` has them for both engines.
//!
//! Input: that file, or another of the same form. Output: [`Case`]s, each with the passes it is measured in and the arithmetic
//! of each. The file is made from the graphs of the workloads: a golden test compares the two.

use super::record::Kind;
use crate::error::BenchError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The shapes of the comparison.
const SHAPES: &str = include_str!("../../shapes.json");

/// An operation at one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Case {
    /// How records call the shape.
    pub(super) name: String,
    /// The workload it is taken from.
    pub(super) of: String,
    #[serde(flatten)]
    pub(super) shape: Shape,
}

/// The extents of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Shape {
    /// `y [m, n] = x [m, k] w [n, k]^T`: a linear layer.
    Gemm { m: usize, n: usize, k: usize },
    /// x `[N, C, H, W]`, w `[O, C / groups, KH, KW]`; padding before and after height and width.
    Conv { x: [usize; 4], w: [usize; 4], stride: [usize; 2], padding: [[usize; 2]; 2], groups: usize },
    /// q `[B, Sq, Hq, D]`, k and v `[B, Sk, Hkv, D]`.
    Attention { q: [usize; 4], k: [usize; 4], causal: bool },
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    Forward,
    InputGradient,
    WeightGradient,
    /// A result and all gradients.
    ForwardBackward,
}

impl Pass {
    pub(super) fn text(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::InputGradient => "input gradient",
            Pass::WeightGradient => "weight gradient",
            Pass::ForwardBackward => "forward and backward",
        }
    }
}

impl Shape {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Shape::Gemm { .. } => Kind::Gemm,
            Shape::Conv { .. } => Kind::Conv,
            Shape::Attention { .. } => Kind::Attention,
        }
    }

    /// The passes it is measured in.
    pub(super) fn passes(&self) -> &'static [Pass] {
        match self {
            Shape::Attention { .. } => &[Pass::Forward, Pass::ForwardBackward],
            _ => &[Pass::Forward, Pass::InputGradient, Pass::WeightGradient],
        }
    }

    /// How records call it.
    #[cfg(test)]
    pub(super) fn name(&self) -> String {
        let joined =
            |extents: &[usize]| extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        match self {
            Shape::Gemm { m, n, k } => joined(&[*m, *n, *k]),
            Shape::Conv { x, w, stride, padding, groups } => {
                let mut text = format!("{} * {}", joined(x), joined(w));
                if *stride != [1, 1] {
                    text += &format!(", stride {}", joined(stride));
                }
                if *padding != [[0, 0]; 2] {
                    text += &format!(", padding {}", joined(&padding.map(|[before, _]| before)));
                }
                if *groups != 1 {
                    text += &format!(", {groups} groups");
                }
                text
            }
            Shape::Attention { q, k, causal } => {
                let mask = if *causal { ", causal" } else { "" };
                format!("{} on {}{mask}", joined(q), joined(k))
            }
        }
    }

    /// Dimensions of the result of the forward pass.
    pub(super) fn result(&self) -> Vec<usize> {
        match self {
            Shape::Gemm { m, n, .. } => vec![*m, *n],
            Shape::Conv { x, w, stride, padding, .. } => {
                let extent = |axis: usize| {
                    let padded = x[axis + 2] + padding[axis][0] + padding[axis][1];
                    padded.saturating_sub(w[axis + 2]) / stride[axis].max(1) + 1
                };
                vec![x[0], w[0], extent(0), extent(1)]
            }
            Shape::Attention { q, .. } => q.to_vec(),
        }
    }

    /// Multiplications and additions of the products of a pass; those of masked scores do not count.
    pub(super) fn operations(&self, pass: Pass) -> u64 {
        let products = match self {
            Shape::Gemm { m, n, k } => m * n * k,
            Shape::Conv { w, .. } => self.result().iter().product::<usize>() * w[1] * w[2] * w[3],
            Shape::Attention { q, k, causal } => {
                let [b, sq, heads, d] = *q;
                let seen =
                    |i: usize| if *causal { (i + 1 + k[1]).saturating_sub(sq).min(k[1]) } else { k[1] };
                // Two products forward; backward the scores again and four more.
                let count = if pass == Pass::ForwardBackward { 7 } else { 2 };
                count * b * heads * d * (0..sq).map(seen).sum::<usize>()
            }
        };
        2 * products as u64
    }
}

/// The cases of a file, or those of the comparison.
pub(super) fn read(path: Option<&Path>) -> Result<Vec<Case>, BenchError> {
    let (path, text) = match path {
        Some(path) => (path, std::fs::read_to_string(path).map_err(BenchError::io(path))?),
        None => (Path::new("bench/shapes.json"), SHAPES.to_owned()),
    };
    serde_json::from_str(&text).map_err(BenchError::record(path))
}

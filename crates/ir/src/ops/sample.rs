//! Samples: example applications of operations that drive the op suite on every device.

use super::Payload;
use crate::graph::{Graph, Value};
use crate::types::{DType, TensorType};

/// How an input of a sample is filled, always from a seeded generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Uniform in `lo..hi`.
    Uniform(f64, f64),
    /// Distinct values at least 0.01 apart, shuffled, centred on 0: no ties and no kinks near a comparison.
    Distinct,
    /// Ids in `0..limit`.
    Ids(i32),
    /// Truth values.
    Bools,
}

/// One input of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleInput {
    /// Type.
    pub ty: TensorType,
    /// Contents.
    pub fill: Fill,
}

impl SampleInput {
    /// An `f32` input uniform in -1..1.
    #[must_use]
    pub fn f32(dims: &[usize]) -> Self {
        Self::uniform(dims, -1.0, 1.0)
    }

    /// An `f32` input uniform in `lo..hi`.
    #[must_use]
    pub fn uniform(dims: &[usize], lo: f64, hi: f64) -> Self {
        Self { ty: TensorType::f32(dims), fill: Fill::Uniform(lo, hi) }
    }

    /// An `f32` input of distinct values.
    #[must_use]
    pub fn distinct(dims: &[usize]) -> Self {
        Self { ty: TensorType::f32(dims), fill: Fill::Distinct }
    }

    /// An `i32` input of ids below a limit.
    #[must_use]
    pub fn ids(dims: &[usize], limit: i32) -> Self {
        Self { ty: TensorType::new(DType::I32, dims), fill: Fill::Ids(limit) }
    }

    /// A `u32` input of words below 2^31.
    #[must_use]
    pub fn words(dims: &[usize]) -> Self {
        Self { ty: TensorType::new(DType::U32, dims), fill: Fill::Ids(i32::MAX) }
    }

    /// A truth input.
    #[must_use]
    pub fn bools(dims: &[usize]) -> Self {
        Self { ty: TensorType::new(DType::Bool, dims), fill: Fill::Bools }
    }

    /// The contents, as reals, for a seed.
    #[must_use]
    pub fn values(&self, seed: u64) -> Vec<f64> {
        let n = self.ty.elements();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        let mut next = move || {
            // SplitMix64 (Steele, Lea, Flood 2014).
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let mut unit = || (next() >> 11) as f64 / (1u64 << 53) as f64;
        match self.fill {
            Fill::Uniform(lo, hi) => (0..n).map(|_| f64::from((lo + (hi - lo) * unit()) as f32)).collect(),
            Fill::Ids(limit) => (0..n).map(|_| (unit() * f64::from(limit)).floor()).collect(),
            Fill::Bools => (0..n).map(|_| (unit() * 2.0).floor()).collect(),
            Fill::Distinct => {
                let mut v: Vec<f64> = (0..n).map(|i| (i as f64 - n as f64 / 2.0) * 0.01 + 0.005).collect();
                for i in (1..n).rev() {
                    v.swap(i, (unit() * (i + 1) as f64) as usize);
                }
                v.into_iter().map(|x| f64::from(x as f32)).collect()
            }
        }
    }
}

/// An application of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub(crate) op: Payload,
    /// The inputs.
    pub inputs: Vec<SampleInput>,
}

impl Sample {
    pub(crate) fn new(op: Payload, inputs: Vec<SampleInput>) -> Self {
        Self { op, inputs }
    }

    /// The operation's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.op.name()
    }

    /// A description for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        let types: Vec<String> = self.inputs.iter().map(|i| i.ty.to_string()).collect();
        format!("{} {} ({})", self.op.name(), self.op.attributes(), types.join(", "))
    }

    /// A graph that applies the operation to inputs named `0`, `1`, ... and outputs named `r0`, `r1`, ...
    #[must_use]
    pub fn graph(&self) -> Graph {
        let mut g = Graph::new();
        let inputs = self.placeholders(&mut g);
        let results = g.apply_all(self.op.clone(), &inputs);
        for (i, r) in results.into_iter().enumerate() {
            g.output(&format!("r{i}"), r);
        }
        g
    }

    fn placeholders(&self, g: &mut Graph) -> Vec<Value> {
        let leaf = |(i, s): (usize, &SampleInput)| {
            g.add_leaf(&i.to_string(), crate::graph::LeafKind::Input, s.ty.clone())
        };
        self.inputs.iter().enumerate().map(leaf).collect()
    }

    /// A graph whose scalar output `loss` is a weighted sum, with constant pseudo-random coefficients, of every float
    /// result, and whose outputs `d0`, `d1`, ... are the gradients of the float inputs: the coefficient sits between the
    /// operation and the loss, so a gradient that ignores its upstream is caught.
    ///
    /// # Errors
    /// The operation has no gradient.
    pub fn gradient_graph(&self) -> Result<Graph, crate::autodiff::AutodiffError> {
        let mut g = Graph::new();
        let inputs = self.placeholders(&mut g);
        let results = g.apply_all(self.op.clone(), &inputs);
        let mut loss = g.scalar(0.0);
        for (i, r) in results.into_iter().enumerate() {
            let Some(ty) = g.ty(r).cloned().filter(|t| t.dtype == DType::F32) else { continue };
            let weights = SampleInput::uniform(&ty.dims, 0.5, 1.5).values(77 + i as u64);
            let weights: Vec<f32> = weights.into_iter().map(|w| w as f32).collect();
            let w = g.constant(&weights, ty.dims.clone());
            let weighted = g.mul(r, w);
            let axes: Vec<isize> = (0..ty.rank() as isize).collect();
            let sum = if axes.is_empty() { weighted } else { g.sum(weighted, &axes) };
            loss = g.add(loss, sum);
        }
        g.output("loss", loss);
        let wanted: Vec<Value> =
            inputs.iter().copied().filter(|v| g.ty(*v).is_some_and(|t| t.dtype == DType::F32)).collect();
        let gradients = crate::autodiff::gradients(&mut g, loss, &wanted)?;
        for (v, d) in wanted.iter().zip(gradients) {
            let i = inputs.iter().position(|x| x == v).unwrap_or(0);
            g.output(&format!("d{i}"), d);
        }
        Ok(g)
    }
}

impl Sample {
    /// What the operation lowers to with these inputs.
    #[must_use]
    pub fn lowering(&self) -> super::Lowering {
        let inputs: Vec<TensorType> = self.inputs.iter().map(|i| i.ty.clone()).collect();
        let outputs = self.op.infer(&inputs).unwrap_or_default();
        self.op.lower(&super::Signature { inputs: &inputs, outputs: &outputs })
    }

    /// Whether the operation deliberately passes no gradient (piecewise constant, or an optimizer update).
    #[must_use]
    pub fn is_without_gradient(&self) -> bool {
        match &self.op {
            Payload::Unary(u) => u.f == super::elementwise::Function::Floor,
            Payload::Cast(c) => c.dtype == DType::F32 && self.inputs[0].ty.dtype != DType::F32,
            Payload::OneHot(_) | Payload::Sgd(_) | Payload::Adam(_) => true,
            _ => false,
        }
    }
}

//! Random numbers from counters: uniform and normal tensors, and dropout.
//!
//! The last operand is the key of the step ([`crate::random::RANDOM_KEY`]). Element i of a tensor uses word `i % 4` of block
//! `i / 4`, or for normal numbers the pair of words that `i % 4` is in; the stream, one per draw of a graph, keeps draws apart.

mod dropout;
mod normal;

pub(crate) use dropout::Dropout;
pub(crate) use normal::{Distribution, Random};

use super::Payload;
use super::rule::need_dtype;
use crate::array::Array;
use crate::graph::{Graph, LeafKind, Value};
use crate::index::{Access, Domain, IndexExpr};
use crate::loops::Body;
use crate::random::{RANDOM_KEY, block, block_of, word};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar, ScalarExpr, ScalarId};
use crate::types::{DType, TensorType};

/// 2^-24: the grid of uniform numbers.
const GRID: f32 = 1.0 / 16_777_216.0;

/// The type of the key.
fn key_type() -> TensorType {
    TensorType::new(DType::U32, [4])
}

/// Checks a float tensor and the key.
fn check(x: &TensorType, key: &TensorType) -> Result<(), String> {
    need_dtype("the operand", x, DType::F32)?;
    if *key == key_type() { Ok(()) } else { Err(format!("the key must be {}, it is {key}", key_type())) }
}

/// The block of words of the element at a loop's point, and which word of it is the element's own (i32).
fn words(body: &mut Body, key: usize, dims: &[usize], stream: u32) -> ([ScalarId; 4], ScalarId) {
    let [seed0, seed1, step0, step1] =
        [0, 1, 2, 3].map(|k| body.load(key, &key_type(), Access::at(vec![IndexExpr::constant(k)])));
    let axes: Vec<IndexExpr> = (0..dims.len()).map(IndexExpr::axis).collect();
    let flat = IndexExpr::flatten(&axes, dims);
    let e = &mut body.expr;
    let number = e.index(flat.div(4, Domain::of(dims)));
    let (number, stream) = (e.cast(DType::U32, number), word(e, stream));
    let made = block_of(e, [number, stream, step0, step1], [seed0, seed1]);
    (made, e.index(flat.rem(4, Domain::of(dims))))
}

/// The same for references: element number, key words, stream.
fn reference_words<R: Real>(at: usize, key: &Array<R>, stream: u32) -> [u32; 4] {
    let k = [0, 1, 2, 3].map(|i| key.data[i].f64() as u32);
    block([(at / 4) as u32, stream, k[2], k[3]], [k[0], k[1]])
}

/// The upper 24 bits of a word as a multiple of 2^-24 in 0..1, exactly.
fn unit(e: &mut ScalarExpr, w: ScalarId) -> ScalarId {
    let (low, grid) = (word(e, 256), e.f32(GRID));
    let high = e.div(w, low);
    let high = e.cast(DType::F32, high);
    e.mul(high, grid)
}

/// The same for references.
fn reference_unit(w: u32) -> f64 {
    f64::from(w >> 8) * f64::from(GRID)
}

/// A uniform number in 0..1 for the point.
fn uniform(body: &mut Body, key: usize, dims: &[usize], stream: u32) -> ScalarId {
    let (made, lane) = words(body, key, dims, stream);
    let e = &mut body.expr;
    let mut own = made[0];
    for (k, w) in made.into_iter().enumerate().skip(1) {
        let k = e.constant(Scalar::I32(k as i32));
        let is_it = e.binary(BinaryFn::Eq, lane, k);
        own = e.select(is_it, w, own);
    }
    unit(e, own)
}

impl Graph {
    /// The leaf that holds seed and step.
    #[track_caller]
    fn random_key(&mut self) -> Value {
        match self.leaf(RANDOM_KEY) {
            Some(key) => key,
            None => self.add_leaf(RANDOM_KEY, LeafKind::StepScalar, key_type()),
        }
    }

    /// A stream no draw of this graph uses yet.
    fn next_stream(&self) -> u32 {
        let stream = |op: &Payload| match op {
            Payload::Random(r) => Some(r.stream),
            Payload::Dropout(d) => Some(d.stream),
            _ => None,
        };
        self.nodes.iter().filter_map(|n| stream(&n.op.0)).max().map_or(0, |s| s.wrapping_add(1))
    }

    #[track_caller]
    fn draw(&mut self, distribution: Distribution, like: Value) -> Value {
        let (key, stream) = (self.random_key(), self.next_stream());
        self.apply(Payload::Random(Random { distribution, stream }), &[like, key])
    }

    /// Uniform numbers in 0..1, multiples of 2^-24, of the dimensions of the `f32` tensor `like`: new ones each step, the
    /// same on every device for a seed and step. No gradient flows.
    #[track_caller]
    pub fn rand_like(&mut self, like: Value) -> Value {
        self.draw(Distribution::Uniform, like)
    }

    /// Normal numbers of mean 0 and variance 1, of the dimensions of the `f32` tensor `like`, by the method of Box and
    /// Muller: at most 5.77 in size, and the same on every device to 5e-6. No gradient flows.
    #[track_caller]
    pub fn randn_like(&mut self, like: Value) -> Value {
        self.draw(Distribution::Normal, like)
    }

    /// 1 with probability `p [..]`, else 0, for every element of `p`. No gradient flows.
    #[track_caller]
    pub fn bernoulli(&mut self, p: Value) -> Value {
        let u = self.rand_like(p);
        let hit = self.lt(u, p);
        self.cast(hit, DType::F32)
    }

    /// Dropout (Srivastava et al. 2014): every element is 0 with probability `p` in 0..=1, the others are divided by
    /// `1 - p`. Which ones is drawn anew each step, and again in the backward pass: nothing is kept. Inference leaves
    /// it out ([`Graph::without_dropout`]).
    #[track_caller]
    pub fn dropout(&mut self, x: Value, p: f32) -> Value {
        let (key, stream) = (self.random_key(), self.next_stream());
        self.apply(Payload::Dropout(Dropout { p: p.into(), stream }), &[x, key])
    }

    /// This graph with every dropout replaced by what it reads.
    #[must_use]
    pub fn without_dropout(&self) -> Graph {
        self.rebuild(&mut |_, id, inputs| {
            matches!(self.node(id).op.0, Payload::Dropout(_)).then(|| vec![inputs[0]])
        })
    }
}

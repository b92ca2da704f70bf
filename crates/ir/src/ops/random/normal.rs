//! Uniform and normal tensors.

use super::{check, reference_unit, reference_words, uniform, unit, words};
use crate::array::Array;
use crate::loops::Body;
use crate::ops::{Lowering, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar, ScalarId, UnaryFn};
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Which numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Distribution {
    /// In 0..1.
    Uniform,
    /// Mean 0, variance 1.
    Normal,
}

/// Random numbers. Inputs: a tensor f32 whose dimensions the result has and whose elements do not matter; the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Random {
    pub(crate) distribution: Distribution,
    pub(crate) stream: u32,
}

/// `sqrt(-2 log u) cos(2 pi v)`, and the sine for the second of a pair, as the cosine a quarter turn before.
fn normal(body: &mut Body, io: &Signature<'_>, stream: u32) -> ScalarId {
    let (w, lane) = words(body, 1, &io.outputs[0].dims, stream);
    let e = &mut body.expr;
    let [one, two, three] = [1, 2, 3].map(|k| e.constant(Scalar::I32(k)));
    let first = e.binary(BinaryFn::Lt, lane, two);
    let (a, b) = (e.select(first, w[0], w[2]), e.select(first, w[1], w[3]));
    let (at_one, at_three) = (e.binary(BinaryFn::Eq, lane, one), e.binary(BinaryFn::Eq, lane, three));
    let is_sine = e.binary(BinaryFn::Or, at_one, at_three);
    // In 0..=1 without 0, so that the logarithm is finite.
    let (below, grid) = (unit(e, a), e.f32(super::GRID));
    let u = e.add(below, grid);
    let (log, minus_two) = (e.unary(UnaryFn::Log, u), e.f32(-2.0));
    let square = e.mul(log, minus_two);
    let radius = e.unary(UnaryFn::Sqrt, square);
    let (turn, zero, quarter) = (unit(e, b), e.f32(0.0), e.f32(0.25));
    let back = e.select(is_sine, quarter, zero);
    let (turn, tau) = (e.sub(turn, back), e.f32(std::f32::consts::TAU));
    let angle = e.mul(turn, tau);
    let cos = e.unary(UnaryFn::Cos, angle);
    e.mul(radius, cos)
}

fn reference_normal(w: [u32; 4], lane: usize) -> f64 {
    let (a, b) = if lane < 2 { (w[0], w[1]) } else { (w[2], w[3]) };
    let radius = (-2.0 * (reference_unit(a) + f64::from(super::GRID)).ln()).sqrt();
    let angle = std::f64::consts::TAU * reference_unit(b);
    radius * if lane % 2 == 1 { angle.sin() } else { angle.cos() }
}

impl Rule for Random {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        check(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    /// What is drawn does not depend on the operand.
    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let draw = |at: usize| {
            let w = reference_words(at, inputs[1], self.stream);
            match self.distribution {
                Distribution::Uniform => reference_unit(w[at % 4]),
                Distribution::Normal => reference_normal(w, at % 4),
            }
        };
        let data = (0..outputs[0].elements()).map(|at| R::of(draw(at))).collect();
        vec![Array { ty: outputs[0].clone(), data }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let mut body = Body::new();
        let y = match self.distribution {
            Distribution::Uniform => uniform(&mut body, 1, &io.outputs[0].dims, self.stream),
            Distribution::Normal => normal(&mut body, io, self.stream),
        };
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |distribution, stream, dims: &[usize]| {
            (Random { distribution, stream }, vec![SampleInput::f32(dims), SampleInput::words(&[4])])
        };
        vec![
            s(Distribution::Uniform, 0, &[]),
            s(Distribution::Uniform, 3, &[5, 13]),
            s(Distribution::Normal, 0, &[1]),
            s(Distribution::Normal, u32::MAX, &[3, 1, 37]),
        ]
    }
}

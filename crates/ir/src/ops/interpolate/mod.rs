//! Interpolation along axes: nearest and linear, up and down, and its gradient.
//!
//! Result `i` of an axis takes its operand at `(a i + c) / d`, with integers that [`Line`] reduces, so positions are exact.
//! PyTorch computes them in `f32` and may differ where a position falls within rounding of an element. Linear interpolation
//! clamps positions to the operand. The gradient gathers, for each element, the results that took it: no scatter, a fixed
//! order.

mod grad;
mod sample;

pub(crate) use grad::InterpolateGrad;
pub use sample::Extent;
pub(crate) use sample::Interpolate;

use super::window::gcd;
use crate::array::each_point;
use crate::index::{Bound, Domain, IndexExpr};
use crate::loops::Body;
use crate::scalar::{BinaryFn, Scalar, ScalarId, UnaryFn};
use crate::types::{DType, MAX_ELEMENTS};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// How elements between positions are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// Element `floor(i input / output)`.
    Nearest,
    /// The two neighbours of position `(i + 1/2) input / output - 1/2`, or with `align_corners` of
    /// `i (input - 1) / (output - 1)`, weighted by distance.
    Linear {
        /// Whether first and last elements stay where they are.
        align_corners: bool,
    },
}

/// One axis: result `i` is at `(a i + c) / d` of the operand.
#[derive(Clone, Copy, Debug)]
struct Line {
    input: usize,
    output: usize,
    is_linear: bool,
    a: i64,
    c: i64,
    d: i64,
}

impl Line {
    /// The positions for these extents.
    fn new(mode: Interpolation, input: usize, output: usize) -> Result<Line, String> {
        if input == 0 || output == 0 || input.max(output) > MAX_ELEMENTS {
            return Err(format!("extents {input} and {output} must be in 1..={MAX_ELEMENTS}"));
        }
        let (x, y) = (input as i64, output as i64);
        let (a, c, d) = match mode {
            Interpolation::Nearest => (x, 0, y),
            Interpolation::Linear { align_corners: false } => (2 * x, x - y, 2 * y),
            Interpolation::Linear { align_corners: true } if y > 1 => (x - 1, 0, y - 1),
            Interpolation::Linear { align_corners: true } => (0, 0, 1),
        };
        let f = gcd(gcd(a as usize, c.unsigned_abs() as usize), d as usize) as i64;
        let (a, c, d) = (a / f, c / f, d / f);
        // Every index expression below stays within this.
        let largest =
            i128::from(a) * i128::from(y) + 2 * i128::from(d) * i128::from(x + 2) + i128::from(c.abs());
        if largest > MAX_ELEMENTS as i128 {
            return Err(format!("extents {input} and {output} have positions that do not fit in 31 bits"));
        }
        let is_linear = mode != Interpolation::Nearest;
        Ok(Line { input, output, is_linear, a, c, d })
    }

    /// Whether results lie between elements.
    fn is_weighted(&self) -> bool {
        self.is_linear && self.d > 1
    }

    /// `d` times the position of result `i`.
    fn position(&self, i: &IndexExpr) -> IndexExpr {
        i.times(self.a).plus_constant(self.c)
    }

    /// First result that may take element `j`: all that do have `position(i) - d j` in `lowest..d`.
    fn first_taker(&self, j: &IndexExpr, extents: &[usize]) -> IndexExpr {
        if self.a == 0 {
            return IndexExpr::constant(0);
        }
        let bound = j.times(self.d).plus_constant(self.lowest() - self.c + self.a - 1);
        bound.div(self.a, Domain::of(extents))
    }

    fn lowest(&self) -> i64 {
        if self.is_linear { 1 - self.d } else { 0 }
    }

    /// How many results may take one element.
    fn most_takers(&self) -> usize {
        if self.a == 0 { self.output } else { ((self.d - self.lowest()) as usize).div_ceil(self.a as usize) }
    }

    /// Where result `i` takes element `j`.
    fn takes(&self, i: &IndexExpr, j: &IndexExpr) -> Bound {
        Bound::new(self.position(i).plus(&j.times(-self.d)), self.lowest(), self.d)
    }

    /// The weight of element `j` in result `i`, `1 - |position - j|` with the position clamped to the operand.
    fn weight(&self, body: &mut Body, i: &IndexExpr, j: &IndexExpr) -> ScalarId {
        let e = &mut body.expr;
        let last = (self.input as i64 - 1) * self.d;
        let mut position = e.index(self.position(i));
        if self.c < 0 {
            let first = e.constant(Scalar::I32(0));
            position = e.binary(BinaryFn::Max, position, first);
        }
        if self.a * (self.output as i64 - 1) + self.c > last {
            let last = e.constant(Scalar::I32(last as i32));
            position = e.binary(BinaryFn::Min, position, last);
        }
        let element = e.index(j.times(self.d));
        let distance = e.sub(position, element);
        let distance = e.cast(DType::F32, distance);
        let distance = e.unary(UnaryFn::Abs, distance);
        let (one, per) = (e.f32(1.0), e.f32(1.0 / self.d as f32));
        let share = e.mul(distance, per);
        e.sub(one, share)
    }
}

/// For references: calls `f` with every result, every element it takes, and the weight, from the formulas of
/// [`Interpolation`] themselves.
fn each_share(
    mode: Interpolation,
    dims: [&[usize]; 2],
    axes: &[usize],
    mut f: impl FnMut(&[usize], &[usize], f64),
) {
    let [from, to] = dims;
    each_point(to, |p| {
        let mut shares = vec![(p.to_vec(), 1.0)];
        for &a in axes {
            let (x, y, i) = (from[a] as f64, to[a] as f64, p[a] as f64);
            let position = match mode {
                Interpolation::Nearest => (p[a] * from[a] / to[a]) as f64,
                Interpolation::Linear { align_corners: false } => (i + 0.5) * x / y - 0.5,
                Interpolation::Linear { align_corners: true } => i * (x - 1.0) / (y - 1.0).max(1.0),
            };
            let position = position.clamp(0.0, x - 1.0);
            let (low, part) = (position.floor(), position.fract());
            let split = |(q, w): (Vec<usize>, f64)| {
                [(low, 1.0 - part), (low + 1.0, part)].map(|(at, share)| {
                    let mut q = q.clone();
                    q[a] = at as usize;
                    (q, w * share)
                })
            };
            shares = shares.into_iter().flat_map(split).filter(|(_, w)| *w > 0.0).collect();
        }
        shares.iter().for_each(|(q, w)| f(p, q, *w));
    });
}

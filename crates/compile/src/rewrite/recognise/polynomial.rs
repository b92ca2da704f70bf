//! Reading arithmetic as a polynomial, so that a formula is recognised however it was written.
//!
//! A value is read as a polynomial in two others, x and t, of degree at most 3 in x and 1 in t. Sums, differences, products,
//! negations, quotients by a number and small integer powers are followed; depth and degree are bounded, so is the work.

use crate::rewrite::pattern::{inputs, number, view};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};

/// Deepest operation that is read.
const DEPTH: usize = 6;

/// Coefficients of `x^i` and of `x^i t`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Polynomial([[f64; 2]; 4]);

/// An operation that polynomials are closed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Negate,
    Binary(BinaryFn),
}

impl Polynomial {
    /// `sum of c[i] x^i`.
    pub(super) fn of_x(c: [f64; 4]) -> Self {
        Polynomial(c.map(|c| [c, 0.0]))
    }

    /// `a x + b x t`.
    pub(super) fn x_and_xt(a: f64, b: f64) -> Self {
        Polynomial([[0.0; 2], [a, b], [0.0; 2], [0.0; 2]])
    }

    /// The operation, if a polynomial may go through it.
    pub(super) fn operation(view: RuleView<'_>) -> Option<Operation> {
        match view {
            RuleView::Unary(UnaryFn::Neg) => Some(Operation::Negate),
            RuleView::Binary(
                f @ (BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul | BinaryFn::Div | BinaryFn::Pow),
            ) => Some(Operation::Binary(f)),
            _ => None,
        }
    }

    /// A value as a polynomial in `[x, t]`.
    pub(super) fn of(g: &Graph, v: Value, variables: [Value; 2]) -> Option<Self> {
        Self::read(g, v, variables, DEPTH)
    }

    /// An operation on these inputs as a polynomial in `[x, t]`.
    pub(super) fn of_inputs(
        g: &Graph,
        op: Operation,
        inputs: &[Value],
        variables: [Value; 2],
    ) -> Option<Self> {
        Self::apply(g, op, inputs, variables, DEPTH)
    }

    fn read(g: &Graph, v: Value, variables: [Value; 2], depth: usize) -> Option<Self> {
        if v == variables[0] {
            return Some(Self::of_x([0.0, 1.0, 0.0, 0.0]));
        }
        if v == variables[1] {
            let mut t = Self::default();
            t.0[0][1] = 1.0;
            return Some(t);
        }
        if let Some(k) = number(g, v) {
            return Some(Self::of_x([f64::from(k), 0.0, 0.0, 0.0]));
        }
        let op = Self::operation(view(g, v))?;
        Self::apply(g, op, inputs(g, v), variables, depth.checked_sub(1)?)
    }

    fn apply(
        g: &Graph,
        op: Operation,
        inputs: &[Value],
        variables: [Value; 2],
        depth: usize,
    ) -> Option<Self> {
        let a = Self::read(g, *inputs.first()?, variables, depth)?;
        let Operation::Binary(f) = op else { return Some(a.scaled(-1.0)) };
        let b = Self::read(g, *inputs.get(1)?, variables, depth)?;
        match f {
            BinaryFn::Add => Some(a.plus(&b)),
            BinaryFn::Sub => Some(a.plus(&b.scaled(-1.0))),
            BinaryFn::Mul => a.times(&b),
            BinaryFn::Div => b.constant().map(|k| a.scaled(1.0 / k)),
            BinaryFn::Pow => match b.constant()? {
                1.0 => Some(a),
                2.0 => a.times(&a),
                3.0 => a.times(&a)?.times(&a),
                _ => None,
            },
            _ => None,
        }
    }

    fn coefficients(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        (0..8).map(|n| (n / 2, n % 2, self.0[n / 2][n % 2]))
    }

    fn constant(&self) -> Option<f64> {
        let only = self.coefficients().skip(1).all(|(_, _, c)| c == 0.0);
        only.then_some(self.0[0][0])
    }

    fn scaled(&self, k: f64) -> Self {
        Polynomial(self.0.map(|c| c.map(|c| c * k)))
    }

    fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        other.coefficients().for_each(|(i, j, c)| sum.0[i][j] += c);
        sum
    }

    /// `None` where the degree gets too high.
    fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (i, j, a) in self.coefficients().filter(|c| c.2 != 0.0) {
            for (k, l, b) in other.coefficients().filter(|c| c.2 != 0.0) {
                *product.0.get_mut(i + k)?.get_mut(j + l)? += a * b;
            }
        }
        Some(product)
    }

    /// Whether the coefficients are equal but for the rounding of numbers written in `f32`.
    pub(super) fn is_close(&self, other: &Self) -> bool {
        let close = |((_, _, a), (_, _, b)): ((usize, usize, f64), (usize, usize, f64))| {
            (a - b).abs() <= 1e-6 * b.abs()
        };
        self.coefficients().zip(other.coefficients()).all(close)
    }
}

/// A value and what it is computed from by arithmetic, numbers left out.
pub(super) fn arithmetic_below(g: &Graph, v: Value) -> Vec<Value> {
    let mut found = vec![v];
    let (mut at, mut end) = (0, 1);
    for _ in 0..DEPTH {
        for i in at..end {
            if Polynomial::operation(view(g, found[i])).is_none() {
                continue;
            }
            for &input in inputs(g, found[i]) {
                if number(g, input).is_none() && !found.contains(&input) {
                    found.push(input);
                }
            }
        }
        (at, end) = (end, found.len());
    }
    found
}

//! Index expressions as wrapping `u32` arithmetic.
//!
//! Sums and products are the same bits in two's complement, so negative intermediate values need no care; a division or
//! remainder whose operand may be negative is shifted up by a multiple of the divisor first, decided by the interval of
//! the operand over the whole domain (guards do not count: addresses are shared between guarded and other uses). The divisor is a constant: drivers turn it into a multiplication.

use crate::kir::{Builder, Expr};
use griffinfly_ir::index::{Atom, Bound, Domain, IndexExpr};
use std::collections::BTreeMap;

/// Addresses at one point, each emitted once.
pub(super) struct Indices<'e, 'b> {
    b: &'b Builder,
    axes: &'e [Expr<'b>],
    extents: &'e [usize],
    linear: Option<(IndexExpr, Expr<'b>)>,
    known: BTreeMap<IndexExpr, Expr<'b>>,
}

impl<'e, 'b> Indices<'e, 'b> {
    pub(super) fn new(
        b: &'b Builder,
        axes: &'e [Expr<'b>],
        extents: &'e [usize],
        linear: Option<Expr<'b>>,
    ) -> Self {
        let linear = linear.map(|value| (flat_axis(0, extents), value));
        Self { b, axes, extents, linear, known: BTreeMap::new() }
    }

    /// The value, as the bits of an `i32`.
    pub(super) fn value(&mut self, expr: &IndexExpr) -> Expr<'b> {
        let expr = &squeezed(expr, self.extents);
        if let Some((flat, linear)) = &self.linear
            && flat == expr
        {
            return *linear;
        }
        if let Some(value) = self.known.get(expr) {
            return *value;
        }
        let value = self.sum(expr);
        self.known.insert(expr.clone(), value);
        value
    }

    /// Whether a bound holds; `None` where it always does.
    pub(super) fn bound(&mut self, bound: &Bound) -> Option<Expr<'b>> {
        let (least, most) = bound.expr.range(Domain::of(self.extents));
        if bound.lo <= least && most < bound.hi {
            return None;
        }
        let (lo, hi) = (bound.lo.max(least), bound.hi.min(most + 1));
        if hi <= lo {
            return Some(self.b.constant(false));
        }
        let value = self.value(&bound.expr);
        // One unsigned comparison: below `lo` wraps to a large number.
        Some(wrapping_add(value, -lo).lt((hi - lo) as u32))
    }

    fn sum(&mut self, expr: &IndexExpr) -> Expr<'b> {
        let mut sum: Option<Expr<'b>> = None;
        let (up, down): (Vec<_>, Vec<_>) = expr.terms().iter().partition(|(c, _)| *c > 0);
        for (coefficient, atom) in up {
            let term = self.atom(atom) * (*coefficient as u32);
            sum = Some(sum.map_or(term, |sum| sum + term));
        }
        let mut sum = match sum {
            None => return self.below(expr.offset(), &down),
            Some(sum) => wrapping_add(sum, expr.offset()),
        };
        for (coefficient, atom) in down {
            sum = sum - self.atom(atom) * (coefficient.unsigned_abs() as u32);
        }
        sum
    }

    /// `offset` less terms with negative coefficients.
    fn below(&mut self, offset: i64, down: &[&(i64, Atom)]) -> Expr<'b> {
        let mut sum = self.b.constant(offset as u32);
        for (coefficient, atom) in down {
            sum = sum - self.atom(atom) * (coefficient.unsigned_abs() as u32);
        }
        sum
    }

    fn atom(&mut self, atom: &Atom) -> Expr<'b> {
        match atom {
            Atom::Axis(axis) => self.axes.get(*axis).copied().unwrap_or_else(|| self.b.constant(0_u32)),
            Atom::Div(inner, n) => {
                let (value, lift) = self.lifted(inner, *n);
                wrapping_add(value / (*n as u32), -lift)
            }
            Atom::Mod(inner, n) => self.lifted(inner, *n).0 % (*n as u32),
        }
    }

    /// An operand of a division by `n` made non-negative by adding `lift * n`, and `lift`.
    fn lifted(&mut self, inner: &IndexExpr, n: i64) -> (Expr<'b>, i64) {
        let lift = -inner.range(Domain::of(self.extents)).0.min(0).div_euclid(n);
        (self.value(&inner.plus_constant(lift * n)), lift)
    }
}

fn wrapping_add(value: Expr<'_>, constant: i64) -> Expr<'_> {
    if constant < 0 { value - (constant.unsigned_abs() as u32) } else { value + (constant as u32) }
}

/// The row-major number of a point among axes `first..`, over the axes that move.
pub(crate) fn flat_axis(first: usize, extents: &[usize]) -> IndexExpr {
    let mut sum = IndexExpr::constant(0);
    let mut stride = 1;
    for (axis, extent) in extents.iter().enumerate().rev().filter(|(_, extent)| **extent > 1) {
        sum = sum.plus(&IndexExpr::axis(first + axis).times(stride));
        stride *= *extent as i64;
    }
    sum
}

/// The expression without axes of extent 1, which are 0.
pub(crate) fn squeezed(expr: &IndexExpr, extents: &[usize]) -> IndexExpr {
    let still = |axis: &usize| extents.get(*axis).is_some_and(|extent| *extent == 1);
    let mut sum = IndexExpr::constant(expr.offset());
    let mut changed = false;
    for (coefficient, atom) in expr.terms() {
        match atom {
            Atom::Axis(axis) if still(axis) => changed = true,
            Atom::Axis(axis) => sum = sum.plus(&IndexExpr::axis(*axis).times(*coefficient)),
            Atom::Div(..) | Atom::Mod(..) => return expr.clone(),
        }
    }
    if changed { sum } else { expr.clone() }
}

/// The axes of a point from its row-major number. Axes of extent 1 are 0; the outermost other axis needs no remainder,
/// so its extent does not appear in the code.
pub(crate) fn decompose<'b>(b: &'b Builder, linear: Expr<'b>, extents: &[usize]) -> Vec<Expr<'b>> {
    let mut axes = vec![b.constant(0_u32); extents.len()];
    let outermost = extents.iter().position(|extent| *extent > 1);
    let mut rest = linear;
    for (axis, extent) in extents.iter().enumerate().rev().filter(|(_, extent)| **extent > 1) {
        if Some(axis) == outermost {
            axes[axis] = rest;
        } else {
            axes[axis] = rest % (*extent as u32);
            rest = rest / (*extent as u32);
        }
    }
    axes
}

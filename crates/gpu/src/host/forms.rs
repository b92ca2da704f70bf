//! Index expressions and bounds evaluated over blocks.
//!
//! Along a run an expression that is affine in the innermost axis is `base + stride * j`; from run to run a fully affine
//! one changes by a constant per axis that steps. Others are evaluated point by point, as columns.

use super::points::{LANES, Points};
use griffinfly_ir::index::{Atom, Bound, Domain, IndexExpr};

/// An index expression prepared for evaluation over runs.
#[derive(Debug)]
pub(super) enum Form {
    /// Affine in all axes.
    Affine {
        /// The constant part.
        constant: i64,
        /// One coefficient per axis.
        coefficients: Vec<i64>,
        /// Change from one run to the next, by the axis that steps.
        steps: Vec<i64>,
    },
    /// Affine in the innermost axis.
    Run {
        /// The expression.
        expr: IndexExpr,
        /// Coefficient of the innermost axis.
        stride: i64,
    },
    /// Anything else.
    General {
        /// The expression.
        expr: IndexExpr,
    },
}

impl Form {
    /// Prepares an expression over axes of these extents.
    ///
    /// # Errors
    /// Values that do not fit in 32 bits.
    pub(super) fn new(expr: &IndexExpr, extents: &[usize]) -> Result<Form, String> {
        check_range(expr, extents)?;
        let inner = extents.len() - 1;
        Ok(if expr.is_affine() {
            let coefficients: Vec<i64> = (0..=inner).map(|a| expr.coefficient(a).unwrap_or(0)).collect();
            // When axis a steps, the axes between it and the innermost return to 0.
            let back =
                |a: usize| (a + 1..inner).map(|b| coefficients[b] * (extents[b] as i64 - 1)).sum::<i64>();
            let steps = (0..=inner).map(|a| coefficients[a] - back(a)).collect();
            Form::Affine { constant: expr.offset(), coefficients, steps }
        } else if let Some(stride) = expr.coefficient(inner) {
            Form::Run { expr: expr.clone(), stride }
        } else {
            Form::General { expr: expr.clone() }
        })
    }

    /// Difference from one point of a run to the next, if it is constant.
    pub(super) fn stride(&self) -> Option<i64> {
        match self {
            Form::Affine { coefficients, .. } => Some(coefficients.last().copied().unwrap_or(0)),
            Form::Run { stride, .. } => Some(*stride),
            Form::General { .. } => None,
        }
    }

    /// Value at a point.
    pub(super) fn base(&self, at: &[usize]) -> i64 {
        match self {
            Form::Affine { constant, coefficients, .. } => {
                coefficients.iter().zip(at).fold(*constant, |sum, (c, &x)| sum + c * x as i64)
            }
            Form::Run { expr, .. } | Form::General { expr } => expr.eval(at),
        }
    }

    /// Values at the first points of all runs.
    pub(super) fn bases(&self, points: &Points, out: &mut [i64; LANES]) {
        let mut runs = points.runs().zip(out.iter_mut());
        let Form::Affine { coefficients, steps, .. } = self else {
            runs.for_each(|((_, at), o)| *o = self.base(at));
            return;
        };
        let Some(((_, at), first)) = runs.next() else { return };
        *first = self.base(at);
        let inner = at.len() - 1;
        let mut row = *first - coefficients[inner] * at[inner] as i64;
        for ((run, _), o) in runs {
            row += steps[run.level];
            *o = row;
        }
    }

    /// Values along a run starting at a point.
    pub(super) fn along(&self, at: &[usize], out: &mut [i32]) {
        match (self, self.stride()) {
            (_, Some(stride)) => ramp(self.base(at), stride, out),
            (Form::Run { expr, .. } | Form::General { expr }, None) => along(expr, at, out),
            (Form::Affine { .. }, None) => {}
        }
    }
}

/// Values of an expression and of all its parts fit in 32 bits.
fn check_range(expr: &IndexExpr, extents: &[usize]) -> Result<(), String> {
    let (lo, hi) = expr.range(Domain::of(extents));
    if lo < i64::from(i32::MIN) || hi > i64::from(i32::MAX) {
        return Err(format!("index {expr} spans {lo}..={hi}, more than 32 bits"));
    }
    for (_, atom) in expr.terms() {
        if let Atom::Div(e, n) | Atom::Mod(e, n) = atom {
            if *n < 1 || *n > i64::from(i32::MAX) {
                return Err(format!("index {expr} divides by {n}"));
            }
            check_range(e, extents)?;
        }
    }
    Ok(())
}

fn ramp(base: i64, stride: i64, out: &mut [i32]) {
    let (base, stride) = (base as i32, stride as i32);
    for (j, o) in out.iter_mut().enumerate() {
        *o = base.wrapping_add(stride.wrapping_mul(j as i32));
    }
}

/// Evaluates an expression with divisions or remainders of the innermost axis along a run.
fn along(expr: &IndexExpr, at: &[usize], out: &mut [i32]) {
    let inner = at.len() - 1;
    let (mut base, mut stride) = (expr.offset(), 0);
    let varies = |atom: &Atom| matches!(atom, Atom::Div(e, _) | Atom::Mod(e, _) if e.uses(inner));
    for (c, atom) in expr.terms().iter().filter(|(_, a)| !varies(a)) {
        base += c * match atom {
            Atom::Axis(a) => at[*a] as i64,
            Atom::Div(e, n) => e.eval(at).div_euclid(*n),
            Atom::Mod(e, n) => e.eval(at).rem_euclid(*n),
        };
        if matches!(atom, Atom::Axis(a) if *a == inner) {
            stride += c;
        }
    }
    ramp(base, stride, out);
    for (c, atom) in expr.terms().iter().filter(|(_, a)| varies(a)) {
        let (Atom::Div(e, n) | Atom::Mod(e, n)) = atom else { continue };
        let mut values = [0; LANES];
        let values = &mut values[..out.len()];
        along(e, at, values);
        divide(values, *n as i32, matches!(atom, Atom::Div(..)));
        for (o, v) in out.iter_mut().zip(values) {
            *o = o.wrapping_add((*c as i32).wrapping_mul(*v));
        }
    }
}

/// Floor division or its remainder by a positive constant.
fn divide(values: &mut [i32], n: i32, quotient: bool) {
    let each = |values: &mut [i32], f: &dyn Fn(i32) -> i32| values.iter_mut().for_each(|v| *v = f(*v));
    match (n.count_ones() == 1, quotient) {
        (true, true) => values.iter_mut().for_each(|v| *v >>= n.trailing_zeros()),
        (true, false) => values.iter_mut().for_each(|v| *v &= n - 1),
        (false, true) => each(values, &|v| v.div_euclid(n)),
        (false, false) => each(values, &|v| v.rem_euclid(n)),
    }
}

/// A bound prepared for evaluation over runs.
#[derive(Debug)]
pub(super) struct Guard {
    form: Form,
    lo: i64,
    hi: i64,
}

impl Guard {
    /// `lo <= expr < hi` as in `bound`, with the expression rewritten over the new axes.
    ///
    /// # Errors
    /// Values that do not fit in 32 bits.
    pub(super) fn new(bound: &Bound, expr: &IndexExpr, extents: &[usize]) -> Result<Guard, String> {
        let limit = |x: i64| x.clamp(-(1 << 40), 1 << 40);
        Ok(Guard { form: Form::new(expr, extents)?, lo: limit(bound.lo), hi: limit(bound.hi) })
    }

    /// The stride of its expression along a run.
    pub(super) fn stride(&self) -> Option<i64> {
        self.form.stride()
    }

    /// Narrows the lanes of every run to those where the bound holds; the expression must be affine along runs.
    pub(super) fn narrow(&self, points: &Points, ranges: &mut [(usize, usize); LANES]) {
        let mut bases = [0; LANES];
        self.form.bases(points, &mut bases);
        let each = bases.iter().zip(ranges.iter_mut()).take(points.run_count());
        match self.form.stride().unwrap_or(0) {
            0 => each.filter(|(b, _)| !(self.lo..self.hi).contains(*b)).for_each(|(_, r)| r.1 = r.0),
            1 => each.for_each(|(b, r)| *r = cut(*r, self.lo - b, self.hi - b)),
            s if s > 0 => {
                each.for_each(|(b, r)| *r = cut(*r, ceil_div(self.lo - b, s), ceil_div(self.hi - b, s)));
            }
            // base - t j >= lo and base - t j < hi
            s => each.for_each(|(b, r)| {
                *r = cut(*r, (b - self.hi).div_euclid(-s) + 1, (b - self.lo).div_euclid(-s) + 1);
            }),
        }
    }

    /// Clears `mask` where the bound does not hold along a run.
    pub(super) fn mask(&self, at: &[usize], mask: &mut [bool]) {
        let mut values = [0; LANES];
        let values = &mut values[..mask.len()];
        self.form.along(at, values);
        for (m, v) in mask.iter_mut().zip(values) {
            *m &= (self.lo..self.hi).contains(&i64::from(*v));
        }
    }
}

/// The part of a range within `lo..hi`.
fn cut((from, to): (usize, usize), lo: i64, hi: i64) -> (usize, usize) {
    let from = lo.clamp(from as i64, to as i64) as usize;
    (from, hi.clamp(from as i64, to as i64) as usize)
}

fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

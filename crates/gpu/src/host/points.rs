//! Blocks of consecutive points, and index expressions evaluated over them.
//!
//! A block is up to [`LANES`] points consecutive in row-major order, cut into *runs* along the innermost axis. Along a run
//! an expression that is affine in the innermost axis is `base + stride * j`; others are evaluated as a column.

use griffinfly_ir::index::{Atom, Bound, Domain, IndexExpr};

/// Points evaluated together.
pub(super) const LANES: usize = 256;

/// A register: one word per lane.
pub(super) type Column = Box<[u32; LANES]>;

/// A register of zeros.
pub(super) fn column() -> Column {
    Box::new([0; LANES])
}

/// Part of a block along the innermost axis.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// First lane.
    pub(super) at: usize,
    /// Lanes.
    pub(super) len: usize,
}

/// The points of a block.
#[derive(Default)]
pub(super) struct Points {
    rank: usize,
    count: usize,
    runs: Vec<Run>,
    coordinates: Vec<usize>,
    next: Vec<usize>,
}

impl Points {
    /// Space for domains of up to `rank` axes.
    pub(super) fn reserve(&mut self, rank: usize) {
        self.runs.reserve(LANES);
        self.coordinates.reserve(LANES * rank);
        self.next.reserve(rank);
    }

    /// Sets the block to `count` points from flat index `start` of a domain of these extents.
    pub(super) fn set(&mut self, extents: &[usize], start: usize, count: usize) {
        let count = count.min(LANES);
        (self.rank, self.count) = (extents.len(), count);
        self.runs.clear();
        self.coordinates.clear();
        self.next.clear();
        self.next.resize(extents.len(), 0);
        let mut rest = start;
        for (c, &e) in self.next.iter_mut().zip(extents).rev() {
            (*c, rest) = if rest < e { (rest, 0) } else { (rest % e, rest / e) };
        }
        let inner = extents.len() - 1;
        let mut at = 0;
        while at < count {
            let len = (extents[inner] - self.next[inner]).min(count - at);
            self.runs.push(Run { at, len });
            self.coordinates.extend_from_slice(&self.next);
            at += len;
            self.next[inner] = 0;
            for a in (0..inner).rev() {
                self.next[a] += 1;
                if self.next[a] < extents[a] {
                    break;
                }
                self.next[a] = 0;
            }
        }
    }

    /// How many points.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The runs with the coordinates of their first points.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Run, &[usize])> {
        self.runs.iter().copied().zip(self.coordinates.chunks_exact(self.rank))
    }
}

/// An index expression prepared for evaluation over runs.
#[derive(Debug)]
pub(super) enum Form {
    /// Affine in all axes.
    Affine {
        /// The constant part.
        constant: i64,
        /// One coefficient per axis.
        coefficients: Vec<i64>,
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
            let coefficients = (0..extents.len()).map(|a| expr.coefficient(a).unwrap_or(0)).collect();
            Form::Affine { constant: expr.offset(), coefficients }
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
            Form::Affine { constant, coefficients } => {
                coefficients.iter().zip(at).fold(*constant, |sum, (c, &x)| sum + c * x as i64)
            }
            Form::Run { expr, .. } | Form::General { expr } => expr.eval(at),
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

    /// Narrows lanes `from..to` of a run to those where the bound holds; the expression must be affine along the run.
    pub(super) fn narrow(&self, at: &[usize], (from, to): (usize, usize)) -> (usize, usize) {
        let base = self.form.base(at);
        let (lo, hi) = match self.form.stride().unwrap_or(0) {
            0 if (self.lo..self.hi).contains(&base) => return (from, to),
            0 => return (from, from),
            1 => (self.lo - base, self.hi - base),
            s if s > 0 => (ceil_div(self.lo - base, s), ceil_div(self.hi - base, s)),
            // base - t j >= lo and base - t j < hi
            s => ((base - self.hi).div_euclid(-s) + 1, (base - self.lo).div_euclid(-s) + 1),
        };
        let from = lo.clamp(from as i64, to as i64) as usize;
        (from, hi.clamp(from as i64, to as i64) as usize)
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

fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

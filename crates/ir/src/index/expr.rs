//! Canonical index expressions and their interval analysis.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A sum `constant + sum(coefficient * atom)`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexExpr {
    constant: i64,
    terms: Vec<(i64, Atom)>,
}

/// What an index expression is a sum of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Atom {
    /// The index along a loop axis.
    Axis(usize),
    /// Floor division by a positive constant.
    Div(Box<IndexExpr>, i64),
    /// Remainder in `0..n` by a positive constant.
    Mod(Box<IndexExpr>, i64),
}

/// `lo <= expr < hi`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bound {
    /// The expression.
    pub expr: IndexExpr,
    /// Smallest allowed value.
    pub lo: i64,
    /// First value no longer allowed.
    pub hi: i64,
}

impl Bound {
    /// `lo <= expr < hi`.
    #[must_use]
    pub fn new(expr: IndexExpr, lo: i64, hi: i64) -> Self {
        Self { expr, lo, hi }
    }

    /// Whether it holds at a point.
    #[must_use]
    pub fn holds(&self, point: &[usize]) -> bool {
        (self.lo..self.hi).contains(&self.expr.eval(point))
    }

    /// Whether it provably holds at no point of the domain.
    #[must_use]
    pub fn is_never(&self, domain: Domain<'_>) -> bool {
        let (lo, hi) = self.expr.range(domain);
        hi < self.lo || lo >= self.hi
    }
}

/// What is known about the axes: extents, and predicates that hold wherever the expression matters.
#[derive(Clone, Copy, Debug)]
pub struct Domain<'a> {
    /// Extent of each axis.
    pub extents: &'a [usize],
    /// Predicates assumed to hold.
    pub bounds: &'a [Bound],
}

impl<'a> Domain<'a> {
    /// A box of these extents.
    #[must_use]
    pub fn of(extents: &'a [usize]) -> Self {
        Self { extents, bounds: &[] }
    }
}

impl IndexExpr {
    /// A constant.
    #[must_use]
    pub fn constant(value: i64) -> Self {
        Self { constant: value, terms: Vec::new() }
    }

    /// The index along an axis.
    #[must_use]
    pub fn axis(axis: usize) -> Self {
        Self { constant: 0, terms: vec![(1, Atom::Axis(axis))] }
    }

    /// The constant part.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.constant
    }

    /// The terms, sorted by atom.
    #[must_use]
    pub fn terms(&self) -> &[(i64, Atom)] {
        &self.terms
    }

    /// The value if it is a constant.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The axis if it is a bare axis.
    #[must_use]
    pub fn as_axis(&self) -> Option<usize> {
        match (self.constant, self.terms.as_slice()) {
            (0, [(1, Atom::Axis(a))]) => Some(*a),
            _ => None,
        }
    }

    /// Coefficient of an axis if that axis appears in no division or remainder (0 if it does not appear at all).
    #[must_use]
    pub fn coefficient(&self, axis: usize) -> Option<i64> {
        let mut found = 0;
        for (c, atom) in &self.terms {
            match atom {
                Atom::Axis(a) if *a == axis => found = *c,
                Atom::Axis(_) => {}
                Atom::Div(e, _) | Atom::Mod(e, _) if e.uses(axis) => return None,
                Atom::Div(..) | Atom::Mod(..) => {}
            }
        }
        Some(found)
    }

    /// Whether the axis appears anywhere.
    #[must_use]
    pub fn uses(&self, axis: usize) -> bool {
        self.terms.iter().any(|(_, atom)| match atom {
            Atom::Axis(a) => *a == axis,
            Atom::Div(e, _) | Atom::Mod(e, _) => e.uses(axis),
        })
    }

    /// How many axes a domain must have for it: one more than the last it names.
    #[must_use]
    pub fn rank(&self) -> usize {
        let rank = |(_, atom): &(i64, Atom)| match atom {
            Atom::Axis(a) => a + 1,
            Atom::Div(e, _) | Atom::Mod(e, _) => e.rank(),
        };
        self.terms.iter().map(rank).max().unwrap_or(0)
    }

    /// Whether there is no division or remainder.
    #[must_use]
    pub fn is_affine(&self) -> bool {
        self.terms.iter().all(|(_, a)| matches!(a, Atom::Axis(_)))
    }

    /// Rough cost in integer instructions; a division or remainder counts 4.
    #[must_use]
    pub fn cost(&self) -> usize {
        let atom = |a: &Atom| match a {
            Atom::Axis(_) => 1,
            Atom::Div(e, _) | Atom::Mod(e, _) => 4 + e.cost(),
        };
        self.terms.iter().map(|(_, a)| atom(a)).sum()
    }

    /// Sum.
    #[must_use]
    pub fn plus(&self, other: &IndexExpr) -> IndexExpr {
        let mut terms = self.terms.clone();
        for (c, atom) in &other.terms {
            match terms.binary_search_by(|(_, a)| a.cmp(atom)) {
                Ok(i) => terms[i].0 += c,
                Err(i) => terms.insert(i, (*c, atom.clone())),
            }
        }
        terms.retain(|(c, _)| *c != 0);
        IndexExpr { constant: self.constant + other.constant, terms }.recombined()
    }

    /// Sum with a constant.
    #[must_use]
    pub fn plus_constant(&self, k: i64) -> IndexExpr {
        IndexExpr { constant: self.constant + k, terms: self.terms.clone() }
    }

    /// Product with a constant.
    #[must_use]
    pub fn times(&self, k: i64) -> IndexExpr {
        if k == 0 {
            return IndexExpr::constant(0);
        }
        let terms = self.terms.iter().map(|(c, a)| (c * k, a.clone())).collect();
        IndexExpr { constant: self.constant * k, terms }
    }

    /// Replaces `c*n*(e/n) + c*(e%n)` by `c*e` wherever it occurs.
    fn recombined(self) -> IndexExpr {
        for (c, atom) in &self.terms {
            let Atom::Mod(e, n) = atom else { continue };
            let div = Atom::Div(e.clone(), *n);
            if let Ok(i) = self.terms.binary_search_by(|(_, a)| a.cmp(&div))
                && self.terms[i].0 == c * n
            {
                let (c, atom, e) = (*c, atom.clone(), e.clone());
                let rest = self.terms.iter().filter(|(_, a)| *a != div && *a != atom).cloned().collect();
                return IndexExpr { constant: self.constant, terms: rest }.plus(&e.times(c));
            }
        }
        self
    }

    /// Splits into `n * q + r` where `q` takes the terms divisible by `n`.
    fn split(&self, n: i64) -> (IndexExpr, IndexExpr) {
        let (mut q, mut r) = (Vec::new(), Vec::new());
        for (c, a) in &self.terms {
            if c % n == 0 {
                q.push((c / n, a.clone()));
            } else {
                r.push((*c, a.clone()));
            }
        }
        let constant = self.constant.div_euclid(n);
        (IndexExpr { constant, terms: q }, IndexExpr { constant: self.constant.rem_euclid(n), terms: r })
    }

    /// The largest proper divisor `d` of `n` with `self = d q + r` and `r` spanning only `0..d`, as `(d, q, r)`.
    fn inner_factor(&self, n: i64, domain: Domain<'_>) -> Option<(i64, IndexExpr, IndexExpr)> {
        let mut factors: Vec<i64> = self.terms.iter().map(|(c, _)| gcd(c.abs(), n)).collect();
        factors.sort_unstable();
        factors.dedup();
        factors.into_iter().rev().filter(|d| *d > 1 && *d < n).find_map(|d| {
            let (q, r) = self.split(d);
            let (lo, hi) = r.range(domain);
            (lo >= 0 && hi < d && !q.terms.is_empty()).then_some((d, q, r))
        })
    }

    /// Floor division by a positive constant, simplified with what is known of the domain.
    #[must_use]
    pub fn div(&self, n: i64, domain: Domain<'_>) -> IndexExpr {
        if n == 1 {
            return self.clone();
        }
        let (lo, hi) = self.range(domain);
        if lo.div_euclid(n) == hi.div_euclid(n) {
            return IndexExpr::constant(lo.div_euclid(n));
        }
        let (q, r) = self.split(n);
        if q != IndexExpr::constant(0) {
            return q.plus(&r.div(n, domain));
        }
        // (d q + r)/n = q/(n/d) where r spans only 0..d
        if let Some((d, q, _)) = r.inner_factor(n, domain) {
            return q.div(n / d, domain);
        }
        // (e/a)/n = e/(a n)
        if let (0, [(1, Atom::Div(e, a))]) = (r.constant, r.terms.as_slice()) {
            return e.div(a * n, domain);
        }
        IndexExpr { constant: 0, terms: vec![(1, Atom::Div(Box::new(r), n))] }
    }

    /// Remainder in `0..n` by a positive constant, simplified with what is known of the domain.
    #[must_use]
    pub fn rem(&self, n: i64, domain: Domain<'_>) -> IndexExpr {
        if n == 1 {
            return IndexExpr::constant(0);
        }
        let (lo, hi) = self.range(domain);
        if lo.div_euclid(n) == hi.div_euclid(n) {
            return self.plus_constant(-n * lo.div_euclid(n));
        }
        let (q, r) = self.split(n);
        if q != IndexExpr::constant(0) {
            return r.rem(n, domain);
        }
        // (d q + r) % n = d (q % (n/d)) + r where r spans only 0..d
        if let Some((d, q, low)) = r.inner_factor(n, domain) {
            return q.rem(n / d, domain).times(d).plus(&low);
        }
        // (e % (k n)) % n = e % n
        if let (0, [(1, Atom::Mod(e, a))]) = (r.constant, r.terms.as_slice())
            && a % n == 0
        {
            return e.rem(n, domain);
        }
        IndexExpr { constant: 0, terms: vec![(1, Atom::Mod(Box::new(r), n))] }
    }

    /// Replaces axis `i` by `map[i]`; the result ranges over `domain`.
    #[must_use]
    pub fn substitute(&self, map: &[IndexExpr], domain: Domain<'_>) -> IndexExpr {
        let mut sum = IndexExpr::constant(self.constant);
        for (c, atom) in &self.terms {
            let image = match atom {
                Atom::Axis(a) => map[*a].clone(),
                Atom::Div(e, n) => e.substitute(map, domain).div(*n, domain),
                Atom::Mod(e, n) => e.substitute(map, domain).rem(*n, domain),
            };
            sum = sum.plus(&image.times(*c));
        }
        sum
    }

    /// Smallest and largest value over the domain (an enclosure; exact for affine expressions of distinct axes).
    #[must_use]
    pub fn range(&self, domain: Domain<'_>) -> (i64, i64) {
        let (mut lo, mut hi) = (self.constant, self.constant);
        for (c, atom) in &self.terms {
            let (a, b) = atom.range(domain);
            let (a, b) = if *c > 0 { (a * c, b * c) } else { (b * c, a * c) };
            lo = lo.saturating_add(a);
            hi = hi.saturating_add(b);
        }
        for bound in domain.bounds {
            if bound.expr.terms == self.terms && !self.terms.is_empty() {
                let shift = self.constant - bound.expr.constant;
                lo = lo.max(bound.lo + shift);
                hi = hi.min(bound.hi - 1 + shift);
            }
        }
        (lo, hi.max(lo))
    }

    /// Value at a point.
    #[must_use]
    pub fn eval(&self, point: &[usize]) -> i64 {
        let atom = |a: &Atom| match a {
            Atom::Axis(i) => point[*i] as i64,
            Atom::Div(e, n) => e.eval(point).div_euclid(*n),
            Atom::Mod(e, n) => e.eval(point).rem_euclid(*n),
        };
        self.constant + self.terms.iter().map(|(c, a)| c * atom(a)).sum::<i64>()
    }

    /// The row-major flattening of coordinates in a tensor of these dims.
    #[must_use]
    pub fn flatten(coords: &[IndexExpr], dims: &[usize]) -> IndexExpr {
        let strides = crate::types::strides(dims);
        coords.iter().zip(strides).fold(IndexExpr::constant(0), |sum, (c, s)| sum.plus(&c.times(s as i64)))
    }

    /// The coordinates, in a tensor of these dims, of a row-major flat index.
    #[must_use]
    pub fn unflatten(&self, dims: &[usize], domain: Domain<'_>) -> Vec<IndexExpr> {
        let strides = crate::types::strides(dims);
        (0..dims.len())
            .map(|i| {
                let e = self.div(strides[i] as i64, domain);
                if i == 0 { e } else { e.rem(dims[i] as i64, domain) }
            })
            .collect()
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Atom {
    fn range(&self, domain: Domain<'_>) -> (i64, i64) {
        match self {
            Atom::Axis(a) => (0, domain.extents.get(*a).map_or(0, |e| *e as i64 - 1)),
            Atom::Div(e, n) => {
                let (lo, hi) = e.range(domain);
                (lo.div_euclid(*n), hi.div_euclid(*n))
            }
            Atom::Mod(e, n) => {
                let (lo, hi) = e.range(domain);
                if lo.div_euclid(*n) == hi.div_euclid(*n) {
                    (lo.rem_euclid(*n), hi.rem_euclid(*n))
                } else {
                    (0, n - 1)
                }
            }
        }
    }
}

impl fmt::Display for IndexExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (c, atom) in &self.terms {
            let sign = if *c < 0 {
                "-"
            } else if first {
                ""
            } else {
                "+"
            };
            let times = if c.abs() == 1 { String::new() } else { format!("{}*", c.abs()) };
            write!(f, "{sign}{times}")?;
            match atom {
                Atom::Axis(a) => write!(f, "i{a}")?,
                Atom::Div(e, n) => write!(f, "({e})/{n}")?,
                Atom::Mod(e, n) => write!(f, "({e})%{n}")?,
            }
            first = false;
        }
        match self.constant {
            0 if !first => Ok(()),
            k if first || k < 0 => write!(f, "{k}"),
            k => write!(f, "+{k}"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<={}<{}", self.lo, self.expr, self.hi)
    }
}

//! Accesses: domain point to tensor coordinates.

use super::{Bound, Domain, IndexExpr};
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};

/// How a load finds its element.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Access {
    /// One coordinate per tensor dimension.
    pub coords: Vec<IndexExpr>,
    /// The load happens only where all of these hold; elsewhere it gives `fill`.
    pub valid: Vec<Bound>,
    /// The value where the access is not valid.
    pub fill: Scalar,
    /// A coordinate that comes from data.
    pub dynamic: Option<Dynamic>,
}

/// A coordinate given by the (clamped) value of another load of the same body, in place of `coords[dimension]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dynamic {
    /// Which tensor dimension.
    pub dimension: usize,
    /// The load, earlier in the body, whose `i32` value is the coordinate.
    pub load: usize,
}

/// Where a result element is written: one coordinate per tensor dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Store {
    /// Which result.
    pub result: usize,
    /// Coordinates over the storing domain; injective, and together the stores cover the result.
    pub coords: Vec<IndexExpr>,
}

impl Access {
    /// An access at these coordinates, valid everywhere.
    #[must_use]
    pub fn at(coords: Vec<IndexExpr>) -> Self {
        Self { coords, valid: Vec::new(), fill: Scalar::F32(0), dynamic: None }
    }

    /// Axis i is dimension i.
    #[must_use]
    pub fn identity(rank: usize) -> Self {
        Self::at((0..rank).map(IndexExpr::axis).collect())
    }

    /// A tensor of `dims` read over a domain of `domain` extents, right-aligned, dimensions of 1 repeated.
    #[must_use]
    pub fn broadcast(dims: &[usize], domain: &[usize]) -> Self {
        let lead = domain.len() - dims.len();
        let coord = |(i, &d): (usize, &usize)| {
            if d == 1 { IndexExpr::constant(0) } else { IndexExpr::axis(lead + i) }
        };
        Self::at(dims.iter().enumerate().map(coord).collect())
    }

    /// With a validity predicate and the value outside it.
    #[must_use]
    pub fn when(mut self, valid: Vec<Bound>, fill: Scalar) -> Self {
        self.valid = valid;
        self.fill = fill;
        self
    }

    /// Whether this reads a tensor of `dims` in place over an equal domain.
    #[must_use]
    pub fn is_identity(&self, dims: &[usize], domain: &[usize]) -> bool {
        dims == domain
            && self.valid.is_empty()
            && self.dynamic.is_none()
            && self
                .coords
                .iter()
                .zip(dims)
                .enumerate()
                .all(|(i, (c, &d))| c.as_axis() == Some(i) || (d == 1 && c.as_constant() == Some(0)))
    }

    /// The element offset in a dense row-major tensor of `dims` (dynamic coordinates count as 0).
    #[must_use]
    pub fn offset(&self, dims: &[usize]) -> IndexExpr {
        let mut coords = self.coords.clone();
        if let Some(d) = &self.dynamic {
            coords[d.dimension] = IndexExpr::constant(0);
        }
        IndexExpr::flatten(&coords, dims)
    }

    /// This access seen from another domain: axis i of the present domain becomes `map[i]` over `domain`, and `guard` must
    /// hold besides. Dynamic loads keep their load number.
    #[must_use]
    pub fn substitute(&self, map: &[IndexExpr], guard: &[Bound], domain: &[usize]) -> Access {
        let mut valid: Vec<Bound> = guard.to_vec();
        let assumed = Domain { extents: domain, bounds: guard };
        for b in &self.valid {
            let b = Bound::new(b.expr.substitute(map, assumed), b.lo, b.hi);
            let (lo, hi) = b.expr.range(assumed);
            let proved = lo >= b.lo && hi < b.hi;
            if !proved && !valid.contains(&b) {
                valid.push(b);
            }
        }
        let assumed = Domain { extents: domain, bounds: &valid };
        let coords = self.coords.iter().map(|c| c.substitute(map, assumed)).collect();
        Access { coords, valid, fill: self.fill, dynamic: self.dynamic.clone() }
    }

    /// Proves that every valid coordinate is inside `dims` and names axes of the domain only. A predicate that never holds proves everything: such an access
    /// reads nothing.
    ///
    /// # Errors
    /// The coordinate that cannot be shown to be in range, with its interval.
    pub fn verify(&self, dims: &[usize], extents: &[usize]) -> Result<(), String> {
        if self.coords.len() != dims.len() {
            return Err(format!("{} coordinates for {} dimensions", self.coords.len(), dims.len()));
        }
        let named = self.coords.iter().chain(self.valid.iter().map(|b| &b.expr));
        if let Some(e) = named.into_iter().find(|e| e.rank() > extents.len()) {
            return Err(format!("{e} names an axis beyond the {} of the domain", extents.len()));
        }
        if self.valid.iter().any(|b| b.is_never(Domain::of(extents))) {
            return Ok(());
        }
        let domain = Domain { extents, bounds: &self.valid };
        for (i, (c, &d)) in self.coords.iter().zip(dims).enumerate() {
            if self.dynamic.as_ref().is_some_and(|x| x.dimension == i) {
                continue;
            }
            let (lo, hi) = c.range(domain);
            if lo < 0 || hi >= d as i64 {
                return Err(format!("coordinate {i} = {c} spans {lo}..={hi} in a dimension of {d}"));
            }
        }
        Ok(())
    }

    /// Rough integer instructions per element.
    #[must_use]
    pub fn cost(&self) -> usize {
        let bounds: usize = self.valid.iter().map(|b| 2 + b.expr.cost()).sum();
        bounds + self.coords.iter().map(IndexExpr::cost).sum::<usize>()
    }
}

impl Store {
    /// Result `result` written in place over an equal domain of this rank.
    #[must_use]
    pub fn identity(result: usize, rank: usize) -> Self {
        Self { result, coords: (0..rank).map(IndexExpr::axis).collect() }
    }
}

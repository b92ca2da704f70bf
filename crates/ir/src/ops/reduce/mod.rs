//! Reductions over any axes.

mod cumsum;
mod extremum;
mod sum;

pub(crate) use cumsum::Cumsum;
pub(crate) use extremum::{Extremum, ExtremumGrad};
pub(crate) use sum::Sum;

use crate::graph::Graph;
use crate::index::IndexExpr;
use crate::types::TensorType;

/// Checks sorted, distinct, existing axes.
pub(crate) fn check_axes(axes: &[usize], x: &TensorType) -> Result<(), String> {
    if axes.is_empty() {
        return Err("reduces over no axis".into());
    }
    if axes.windows(2).any(|w| w[0] >= w[1]) {
        return Err(format!("axes {axes:?} repeat or are out of order"));
    }
    match axes.iter().find(|a| **a >= x.rank()) {
        Some(a) => Err(format!("axis {a} of {x} does not exist")),
        None => Ok(()),
    }
}

/// Dimensions after reducing `axes`.
pub(crate) fn reduced_dims(dims: &[usize], axes: &[usize], keep: bool) -> Vec<usize> {
    let dim = |(i, &d): (usize, &usize)| match (axes.contains(&i), keep) {
        (true, true) => Some(1),
        (true, false) => None,
        (false, _) => Some(d),
    };
    dims.iter().enumerate().filter_map(dim).collect()
}

/// How a reduction of `axes` iterates: row extents (kept axes), column extents, and for each input dimension its loop axis.
pub(crate) fn row_split(dims: &[usize], axes: &[usize]) -> (Vec<usize>, Vec<usize>, Vec<IndexExpr>) {
    let kept: Vec<usize> = (0..dims.len()).filter(|i| !axes.contains(i)).collect();
    let axis = |i: usize| match kept.iter().position(|k| *k == i) {
        Some(p) => p,
        None => kept.len() + axes.iter().position(|a| *a == i).unwrap_or(0),
    };
    let coords = (0..dims.len()).map(|i| IndexExpr::axis(axis(i))).collect();
    (kept.iter().map(|&i| dims[i]).collect(), axes.iter().map(|&i| dims[i]).collect(), coords)
}

/// Coordinates of the reduced result over the row axes.
pub(crate) fn result_coords(rank: usize, axes: &[usize], keep: bool) -> Vec<IndexExpr> {
    let mut next = 0;
    let mut coords = Vec::new();
    for i in 0..rank {
        if !axes.contains(&i) {
            coords.push(IndexExpr::axis(next));
            next += 1;
        } else if keep {
            coords.push(IndexExpr::constant(0));
        }
    }
    coords
}

impl Graph {
    /// Resolves one axis that may count from the end.
    pub(crate) fn resolve_axis(&self, x: crate::graph::Value, axis: isize) -> usize {
        self.resolve_axes(x, &[axis])[0]
    }

    /// Resolves axes that may count from the end; out-of-range ones are left for the shape rule to refuse.
    pub(crate) fn resolve_axes(&self, x: crate::graph::Value, axes: &[isize]) -> Vec<usize> {
        let rank = self.dims(x).len() as isize;
        let resolve = |a: &isize| if *a < 0 { (rank + a) as usize } else { *a as usize };
        let mut out: Vec<usize> = axes.iter().map(resolve).collect();
        out.sort_unstable();
        out
    }
}

//! Running values of reductions over columns of lanes.
//!
//! Two shapes of work share them: lanes that are columns of one row (folded together at its end), and lanes that are
//! rows (never folded). Orders are fixed by the plan, so results do not depend on threads. NaN wins in all of max, min
//! and the indexed forms (the first NaN); ties go to the first.

use super::arithmetic;
use super::points::LANES;
use griffinfly_ir::loops::Combine;
use griffinfly_ir::types::DType;

/// A reduction of values of a dtype.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// How values combine.
    pub(super) combine: Combine,
    /// Their type.
    pub(super) dtype: DType,
}

/// Running values and, for the indexed forms, where they were found.
pub(super) struct Running<'a> {
    /// Values.
    pub(super) values: &'a mut [u32; LANES],
    /// Flat column indices.
    pub(super) indices: &'a mut [u32; LANES],
}

/// Whether `b` replaces `a` when it comes later.
#[inline(always)]
fn replaces(r: Reduction, a: u32, b: u32) -> bool {
    let max = r.combine == Combine::MaxIndex;
    match r.dtype {
        DType::F32 => {
            let (a, b) = (f32::from_bits(a), f32::from_bits(b));
            !a.is_nan() && (b.is_nan() || if max { b > a } else { b < a })
        }
        DType::I32 => {
            if max {
                b as i32 > a as i32
            } else {
                (b as i32) < a as i32
            }
        }
        DType::U32 | DType::Bool => {
            if max {
                b > a
            } else {
                b < a
            }
        }
    }
}

/// Takes the values that are better than the running ones.
#[inline(always)]
fn each_better(
    running: &mut Running<'_>,
    values: &[u32],
    (first, step): (u32, u32),
    better: impl Fn(u32, u32) -> bool,
) {
    let places = running.values.iter_mut().zip(running.indices.iter_mut());
    for (j, ((value, index), v)) in places.zip(values).enumerate() {
        let b = better(*value, *v);
        *value = if b { *v } else { *value };
        *index = if b { first + step * j as u32 } else { *index };
    }
}

impl Reduction {
    /// Combines two values; indexed forms go through `replaces`.
    #[inline(always)]
    fn pair(self, a: u32, b: u32) -> u32 {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        match (self.combine, self.dtype) {
            (Combine::Sum, DType::F32) => (x + y).to_bits(),
            (Combine::Sum, _) => a.wrapping_add(b),
            (Combine::Max | Combine::MaxIndex, DType::F32) => arithmetic::max(x, y).to_bits(),
            (Combine::Min | Combine::MinIndex, DType::F32) => arithmetic::min(x, y).to_bits(),
            (Combine::Max | Combine::MaxIndex, DType::I32) => (a as i32).max(b as i32) as u32,
            (Combine::Min | Combine::MinIndex, DType::I32) => (a as i32).min(b as i32) as u32,
            (Combine::Max | Combine::MaxIndex, _) => a.max(b),
            (Combine::Min | Combine::MinIndex, _) => a.min(b),
        }
    }

    /// Combines `b` into `a`, lane by lane.
    #[inline(always)]
    pub(super) fn lanes(self, a: &mut [u32], b: &[u32]) {
        let zip = |a: &mut [u32], g: &dyn Fn(u32, u32) -> u32| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = g(*a, *b));
        };
        match (self.combine, self.dtype) {
            (Combine::Sum, DType::F32) => {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = (f32::from_bits(*a) + f32::from_bits(*b)).to_bits();
                }
            }
            (Combine::Max | Combine::MaxIndex, DType::F32) => {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = arithmetic::max(f32::from_bits(*a), f32::from_bits(*b)).to_bits();
                }
            }
            (Combine::Min | Combine::MinIndex, DType::F32) => {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = arithmetic::min(f32::from_bits(*a), f32::from_bits(*b)).to_bits();
                }
            }
            _ => zip(a, &|a, b| self.pair(a, b)),
        }
    }

    /// Takes a block of values, lane j found at column `index + step * j`. `first` starts the running values.
    #[inline(always)]
    pub(super) fn absorb(self, running: &mut Running<'_>, values: &[u32], index: (u32, u32), first: bool) {
        let n = values.len();
        let at = |j: usize| index.0 + index.1 * j as u32;
        match (first, self.combine.has_index()) {
            (true, indexed) => {
                running.values[..n].copy_from_slice(values);
                if indexed {
                    running.indices[..n].iter_mut().enumerate().for_each(|(j, i)| *i = at(j));
                }
            }
            (false, false) => self.lanes(&mut running.values[..n], values),
            (false, true) => self.absorb_indexed(running, values, index),
        }
    }

    #[inline(always)]
    fn absorb_indexed(self, running: &mut Running<'_>, values: &[u32], index: (u32, u32)) {
        let max = self.combine == Combine::MaxIndex;
        match self.dtype {
            DType::F32 if max => each_better(running, values, index, |a, b| {
                let (a, b) = (f32::from_bits(a), f32::from_bits(b));
                (b > a) | (b.is_nan() & !a.is_nan())
            }),
            DType::F32 => each_better(running, values, index, |a, b| {
                let (a, b) = (f32::from_bits(a), f32::from_bits(b));
                (b < a) | (b.is_nan() & !a.is_nan())
            }),
            _ => each_better(running, values, index, |a, b| replaces(self, a, b)),
        }
    }

    /// Whether the value found at `b` wins over that at `a`, wherever they lie.
    pub(super) fn wins(self, a: (u32, u32), b: (u32, u32)) -> bool {
        if replaces(self, a.0, b.0) {
            return true;
        }
        !replaces(self, b.0, a.0) && b.1 < a.1
    }

    /// Combines two values with their places.
    pub(super) fn merge(self, a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
        if self.combine.has_index() { if self.wins(a, b) { b } else { a } } else { (self.pair(a.0, b.0), 0) }
    }

    /// Folds the first `n` lanes into one value and its place.
    pub(super) fn fold(self, running: &mut Running<'_>, n: usize) -> (u32, u32) {
        let n = n.clamp(1, LANES);
        if self.combine.has_index() {
            return self.fold_indexed(running, n);
        }
        (self.fold_values(running.values, n), 0)
    }

    /// The best value, at the smallest index that has it.
    fn fold_indexed(self, running: &Running<'_>, n: usize) -> (u32, u32) {
        let best = self.fold_values(&mut running.values.clone(), n);
        let float = f32::from_bits(best);
        let same = |v: u32| match self.dtype {
            DType::F32 => f32::from_bits(v) == float || (float.is_nan() & f32::from_bits(v).is_nan()),
            _ => v == best,
        };
        let lanes = running.values.iter().zip(running.indices.iter()).take(n);
        let found = lanes.filter(|(v, _)| same(**v)).min_by_key(|(_, i)| **i);
        found.map_or((best, 0), |(v, i)| (*v, *i))
    }

    fn fold_values(self, values: &mut [u32; LANES], n: usize) -> u32 {
        let mut n = n;
        // Pairwise: halves are added lane by lane.
        while n > 1 {
            let half = n.div_ceil(2);
            let (low, high) = values.split_at_mut(half);
            self.lanes(&mut low[..n - half], &high[..n - half]);
            n = half;
        }
        values[0]
    }
}

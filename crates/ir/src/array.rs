//! Dense arrays of reals: what references and the evaluator compute with.

use crate::real::Real;
use crate::types::{DType, TensorType};

/// A row-major array. Integers and truth values are held as exact reals.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<R> {
    /// Type.
    pub ty: TensorType,
    /// Elements.
    pub data: Vec<R>,
}

impl<R: Real> Array<R> {
    /// An array computed from its coordinates.
    pub fn build(ty: &TensorType, mut f: impl FnMut(&[usize]) -> R) -> Self {
        let mut data = Vec::with_capacity(ty.elements());
        each_point(&ty.dims, |p| data.push(f(p)));
        Self { ty: ty.clone(), data }
    }

    /// An array of equal elements.
    #[must_use]
    pub fn filled(ty: &TensorType, x: R) -> Self {
        Self { ty: ty.clone(), data: vec![x; ty.elements()] }
    }

    /// Dimensions.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.ty.dims
    }

    /// The element at these coordinates.
    #[must_use]
    #[inline]
    pub fn at(&self, point: &[usize]) -> R {
        self.data[self.offset(point)]
    }

    /// The element at these coordinates of an array this one broadcasts to (right-aligned).
    #[must_use]
    #[inline]
    pub fn at_broadcast(&self, point: &[usize]) -> R {
        let lead = point.len() - self.ty.rank();
        let along = |at: usize, (i, d): (usize, &usize)| at * d + if *d == 1 { 0 } else { point[lead + i] };
        self.data[self.ty.dims.iter().enumerate().fold(0, along)]
    }

    /// Row-major offset of coordinates.
    #[must_use]
    #[inline]
    pub fn offset(&self, point: &[usize]) -> usize {
        let along = |at: usize, (i, d): (usize, &usize)| at * d + point.get(i).copied().unwrap_or(0);
        self.ty.dims.iter().enumerate().fold(0, along)
    }

    /// The elements along the last axis at these coordinates of the others.
    #[inline]
    pub(crate) fn row(&self, point: &[usize]) -> &[R] {
        let at = self.offset(point);
        &self.data[at..at + self.ty.dims.last().copied().unwrap_or(1)]
    }

    /// From stored words.
    #[must_use]
    pub fn from_words(ty: &TensorType, words: &[u32]) -> Self {
        let real = |w: u32| match ty.dtype {
            DType::F32 => R::of(f64::from(f32::from_bits(w))),
            DType::I32 => R::of(f64::from(w as i32)),
            DType::U32 | DType::Bool => R::of(f64::from(w)),
        };
        Self { ty: ty.clone(), data: words.iter().map(|w| real(*w)).collect() }
    }

    /// As stored words (floats rounded to `f32`).
    #[must_use]
    pub fn to_words(&self) -> Vec<u32> {
        let word = |x: f64| match self.ty.dtype {
            DType::F32 => (x as f32).to_bits(),
            DType::I32 => x as i64 as i32 as u32,
            DType::U32 => x as i64 as u32,
            DType::Bool => u32::from(x != 0.0),
        };
        self.data.iter().map(|x| word(x.f64())).collect()
    }
}

/// Calls `f` with every point of a box in row-major order.
pub fn each_point(extents: &[usize], mut f: impl FnMut(&[usize])) {
    let n: usize = extents.iter().product();
    let mut point = vec![0; extents.len()];
    for _ in 0..n {
        f(&point);
        for a in (0..extents.len()).rev() {
            point[a] += 1;
            if point[a] < extents[a] {
                break;
            }
            point[a] = 0;
        }
    }
}

//! Concrete tensor types: a dtype and dimensions, nothing symbolic.
//!
//! Invariants: an element count always fits in 31 bits (index arithmetic on every device is done in 32 bits), and no
//! dimension is zero (empty tensors are refused where a type enters the graph).

use serde::{Deserialize, Serialize};
use std::fmt;

/// Logical element type of a value. Booleans are stored as `u32` 0 or 1; ids are `I32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// 32-bit IEEE float.
    F32,
    /// 32-bit signed integer, wrapping arithmetic.
    I32,
    /// 32-bit unsigned integer, wrapping arithmetic.
    U32,
    /// Truth value, stored as `u32` 0 or 1.
    Bool,
}

impl DType {
    /// Bytes one element takes in a buffer.
    #[must_use]
    pub const fn bytes(self) -> usize {
        4
    }

    /// The name used in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::Bool => "bool",
        }
    }

    /// The dtype with this name in the text form.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DType> {
        [DType::F32, DType::I32, DType::U32, DType::Bool].into_iter().find(|d| d.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Largest element count of one tensor: offsets fit in an `i32`.
pub const MAX_ELEMENTS: usize = i32::MAX as usize;

/// Dtype and dimensions of one value; row-major, outermost dimension first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Dimensions; empty for a scalar.
    pub dims: Vec<usize>,
}

impl TensorType {
    /// A type of this dtype and these dimensions.
    #[must_use]
    pub fn new(dtype: DType, dims: impl Into<Vec<usize>>) -> Self {
        Self { dtype, dims: dims.into() }
    }

    /// An `f32` type of these dimensions.
    #[must_use]
    pub fn f32(dims: impl Into<Vec<usize>>) -> Self {
        Self::new(DType::F32, dims)
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements; saturates instead of overflowing.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.dims.iter().fold(1, |n: usize, &d| n.saturating_mul(d))
    }

    /// Bytes of the dense row-major tensor; saturates instead of overflowing.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.bytes())
    }

    /// Row-major strides in elements.
    #[must_use]
    pub fn strides(&self) -> Vec<usize> {
        strides(&self.dims)
    }

    /// Whether this type may exist in a graph: no empty dimension and at most [`MAX_ELEMENTS`] elements.
    ///
    /// # Errors
    /// The reason, in words, with the numbers.
    pub fn check(&self) -> Result<(), String> {
        if let Some(axis) = self.dims.iter().position(|&d| d == 0) {
            return Err(format!("dimension {axis} of {self} is 0: empty tensors are not supported"));
        }
        if self.elements() > MAX_ELEMENTS {
            return Err(format!("{self} has more than {MAX_ELEMENTS} elements"));
        }
        Ok(())
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, d) in self.dims.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

/// Row-major strides, in elements, of dense `dims`.
#[must_use]
pub fn strides(dims: &[usize]) -> Vec<usize> {
    let mut out = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        out[i - 1] = out[i] * dims[i];
    }
    out
}

/// Right-aligned broadcast of two shapes: equal dimensions, or one of them 1.
#[must_use]
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

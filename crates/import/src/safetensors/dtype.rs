//! Element types of safetensors files.

use std::fmt;

/// The type of a tensor's elements. All are little-endian in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// 64-bit float.
    F64,
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// 16-bit float with the exponent of `F32`.
    BF16,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 16-bit signed integer.
    I16,
    /// 8-bit signed integer.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 16-bit unsigned integer.
    U16,
    /// 8-bit unsigned integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
}

/// Every type with its name in the file and its size in bytes.
const TABLE: [(Dtype, &str, usize); 13] = [
    (Dtype::F64, "F64", 8),
    (Dtype::F32, "F32", 4),
    (Dtype::F16, "F16", 2),
    (Dtype::BF16, "BF16", 2),
    (Dtype::I64, "I64", 8),
    (Dtype::I32, "I32", 4),
    (Dtype::I16, "I16", 2),
    (Dtype::I8, "I8", 1),
    (Dtype::U64, "U64", 8),
    (Dtype::U32, "U32", 4),
    (Dtype::U16, "U16", 2),
    (Dtype::U8, "U8", 1),
    (Dtype::Bool, "BOOL", 1),
];

impl Dtype {
    /// Every type there is.
    pub fn all() -> impl Iterator<Item = Dtype> {
        TABLE.iter().map(|row| row.0)
    }

    /// The type with this name in the file.
    pub fn from_name(name: &str) -> Option<Dtype> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The name in the file, such as `F32`.
    pub fn name(self) -> &'static str {
        // The table is in the order of the enum, which a test checks.
        TABLE[self as usize].1
    }

    /// Bytes per element.
    pub fn size(self) -> usize {
        TABLE[self as usize].2
    }

    /// Bytes of a tensor of this type, or none where the product leaves `usize`. Extents of zero count as one for
    /// the overflow, so that no order of multiplication can hide it.
    pub fn byte_count(self, shape: &[usize]) -> Option<usize> {
        let bound = shape.iter().try_fold(self.size(), |count, &extent| count.checked_mul(extent.max(1)))?;
        Some(if shape.contains(&0) { 0 } else { bound })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, dtype) in Dtype::all().enumerate() {
            assert_eq!(dtype as usize, index);
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(Dtype::from_name("f32"), None);
    }

    #[test]
    fn byte_counts_do_not_wrap() {
        assert_eq!(Dtype::F32.byte_count(&[]), Some(4));
        assert_eq!(Dtype::F32.byte_count(&[2, 3]), Some(24));
        assert_eq!(Dtype::BF16.byte_count(&[2, 0, 3]), Some(0));
        assert_eq!(Dtype::F32.byte_count(&[usize::MAX]), None);
        assert_eq!(Dtype::U8.byte_count(&[usize::MAX, 2, 0]), None);
        assert_eq!(Dtype::U8.byte_count(&[0, usize::MAX, 2]), None);
    }
}

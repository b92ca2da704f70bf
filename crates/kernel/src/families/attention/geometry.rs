//! How a workgroup of attention is laid out: the closed table of geometries, their shares and the memory they take.
//!
//! Invocation (y, x) has the rows `y + high i` and the columns `x + wide j` of the scores of a tile. Of the sums it has the same
//! rows, and quadruples of elements: the `wide` neighbours of a row are split into [`Geometry::parts`] as far as there are more of
//! them than quadruples; each part takes its share of the columns, and at the end the parts are added in order.
//!
//! In geometries for matrix units a subgroup owns 16 rows, two invocations a row, which take turns at quadruples of columns and of
//! elements.
//!
//! Invariants: `high` divides rows and `wide` divides columns; what [`Geometry::fits`] accepts stays within the target.

use crate::families::contract::tiling::{Units, matrix_stride};
use crate::kir::MATRIX;
use griffinfly_ir::loops::{Attention, AttentionVariant};
use griffinfly_ir::target::{NumericClass, Target};
use std::fmt;

/// A workgroup of `high` x `wide` invocations that owns `rows` rows and takes `columns` others at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Rows of the block.
    pub rows: u32,
    /// Columns of a tile.
    pub columns: u32,
    /// Invocations along the rows.
    pub high: u32,
    /// Invocations along the columns.
    pub wide: u32,
    /// Whether products are those of 16x16 matrices of rounded operands.
    pub is_matrix: bool,
    /// Parts of the keys, each with workgroups of its own (forward only).
    pub splits: u32,
}

/// Numbers of parts of the keys.
pub(super) const SPLITS: [u32; 5] = [2, 4, 8, 16, 32];

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_matrix {
            true => write!(f, "matrix {}x{}", self.rows, self.columns)?,
            false => write!(f, "{}x{} by {}x{}", self.rows, self.columns, self.high, self.wide)?,
        }
        if self.splits > 1 { write!(f, " split{}", self.splits) } else { Ok(()) }
    }
}

/// Rows, columns, invocations high and wide. A subgroup of hardware stays on one of four schedulers: whole multiples of 128
/// invocations use them all.
const TABLE: [[u32; 4]; 26] = [
    [64, 32, 16, 8],
    [48, 64, 16, 8],
    [48, 32, 16, 8],
    [40, 64, 8, 16],
    [40, 32, 8, 16],
    [32, 64, 8, 16],
    [32, 32, 16, 16],
    [32, 32, 16, 8],
    [32, 32, 8, 16],
    [24, 64, 8, 16],
    [24, 32, 8, 16],
    [16, 64, 8, 16],
    [16, 32, 8, 16],
    [16, 32, 4, 8],
    [16, 16, 8, 8],
    [8, 64, 8, 32],
    [8, 64, 8, 16],
    [8, 32, 8, 32],
    [8, 32, 8, 16],
    [8, 8, 8, 4],
    [4, 64, 4, 64],
    [4, 64, 4, 32],
    [4, 32, 4, 32],
    [4, 16, 4, 16],
    [4, 8, 4, 8],
    [4, 4, 4, 4],
];

/// Rows and columns for matrix units.
const MATRICES: [[u32; 2]; 12] = [
    [16, 16],
    [16, 32],
    [16, 64],
    [32, 32],
    [32, 64],
    [48, 32],
    [48, 64],
    [64, 32],
    [64, 64],
    [96, 32],
    [96, 64],
    [128, 32],
];

/// Places in the array of rounded quadruples.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    pub(super) own: [u32; 2],
    pub(super) others: [u32; 2],
    pub(super) weights: u32,
    pub(super) length: u32,
}

/// The numeric class that kernels of a variant round to. Probabilities, and what the forward pass knows, are of moderate size; gradients
/// may be tiny, which takes the range of bf16. The scores of the gradient kernels have two terms, so that probabilities come back as
/// they were.
pub(in crate::families) const fn rounded(variant: AttentionVariant) -> NumericClass {
    match variant {
        AttentionVariant::Forward => NumericClass::F16,
        AttentionVariant::GradQuery | AttentionVariant::GradKeyValue => NumericClass::Bf16,
    }
}

impl Geometry {
    /// All geometries that do not split the keys.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let plain = TABLE.map(|[rows, columns, high, wide]| Self::new(rows, columns, high, wide));
        plain.into_iter().chain(MATRICES.map(|[rows, columns]| Self::of_matrices(rows, columns))).collect()
    }

    pub(super) const fn new(rows: u32, columns: u32, high: u32, wide: u32) -> Self {
        Self { rows, columns, high, wide, is_matrix: false, splits: 1 }
    }

    /// The same with the keys in so many parts.
    #[must_use]
    pub const fn with_splits(self, splits: u32) -> Self {
        Self { splits, ..self }
    }

    const fn of_matrices(rows: u32, columns: u32) -> Self {
        Self { rows, columns, high: rows, wide: 2, is_matrix: true, splits: 1 }
    }

    /// The numeric class of the kernel.
    #[must_use]
    pub const fn class(self, variant: AttentionVariant) -> NumericClass {
        if self.is_matrix { rounded(variant) } else { NumericClass::F32 }
    }

    /// Whether a target can run a loop this way.
    #[must_use]
    pub fn fits(self, a: &Attention, target: &Target) -> bool {
        let width = a.shape.width as u32;
        let invocations = target.max_invocations.min(target.max_workgroup_size[0]);
        let bytes = match self.is_matrix {
            true => self.matrix_bytes(a.variant, width, target),
            false => self.least_bytes(a.variant, width),
        };
        self.invocations() <= invocations
            && bytes <= target.max_workgroup_bytes
            && target.numeric_classes.contains(&self.class(a.variant))
            && (!self.is_matrix || width.is_multiple_of(MATRIX))
            && (self.splits == 1
                || SPLITS.contains(&self.splits)
                    && !self.is_matrix
                    && a.variant == AttentionVariant::Forward
                    && self.scratch(a).is_some_and(|bytes| bytes.iter().all(|n| *n <= target.chunk_bytes())))
    }

    /// Bytes of workgroup memory of the kernels for matrix units.
    fn matrix_bytes(self, variant: AttentionVariant, width: u32, target: &Target) -> u32 {
        let units = Units::of(target, self.class(variant));
        let besides = match variant {
            AttentionVariant::Forward => 4 * (self.rows * 2 + self.flag_count()),
            AttentionVariant::GradQuery => 0,
            AttentionVariant::GradKeyValue => 8 * self.columns,
        };
        let scores = match units {
            Units::Matrix(_) => 16 * self.rows * self.score_stride(),
            Units::Plain => 0,
        };
        self.halves(variant, width, units).length * units.quad_bytes() + scores + besides
    }

    /// Where terms lie. What is owned becomes matrices, tile by tile, before anything else is put down; without such units it stays.
    pub(super) fn halves(self, variant: AttentionVariant, width: u32, units: Units) -> Halves {
        // Terms of what is owned, of what is run over.
        let (own, others): (&[u32], [u32; 2]) = match variant {
            AttentionVariant::Forward => (&[1], [1, 1]),
            AttentionVariant::GradQuery | AttentionVariant::GradKeyValue => (&[2, 1], [2, 1]),
        };
        let row = matrix_stride(width);
        let lengths = own.iter().map(|terms| terms * self.rows * row);
        let (owned, start) = match units {
            Units::Matrix(_) => (lengths.max().unwrap_or(0), 0),
            Units::Plain => (0, lengths.sum()),
        };
        let second = start + others[0] * self.columns * row;
        let weights = second + others[1] * self.columns * row;
        let end = weights + self.rows * matrix_stride(self.columns);
        let second_own = if units == Units::Plain { own[0] * self.rows * row } else { 0 };
        Halves { own: [0, second_own], others: [start, second], weights, length: end.max(owned) }
    }

    /// Flags of strips: whole quadruples, since drivers lay arrays out one behind the other and matrices are read from places that are
    /// multiples of 16 bytes.
    pub(super) const fn flag_count(self) -> u32 {
        (self.rows / MATRIX).next_multiple_of(4)
    }

    /// Quadruples of the array through which the results of matrices leave, from a row to the next: rows four apart share banks.
    pub(super) const fn score_stride(self) -> u32 {
        self.columns / 4 + 2
    }

    /// Whether the values of a forward tile lie beside its keys instead of in their place.
    pub(super) fn has_both(self, width: u32, target: &Target) -> bool {
        self.bytes(AttentionVariant::Forward, width) <= target.max_workgroup_bytes
    }

    /// Bytes of the sums of all parts, of their statistics; `None` beyond what 32 bits count.
    pub(super) fn scratch(self, a: &Attention) -> Option<[u64; 2]> {
        let s = a.shape;
        let rows = [s.batch, s.heads, s.queries]
            .iter()
            .try_fold(u64::from(self.splits), |n, extent| n.checked_mul(*extent as u64));
        let sums = rows?.checked_mul(4 * u64::from(quads(s.width as u32)))?;
        u32::try_from(sums).ok().map(|sums| [4 * u64::from(sums), 8 * rows.unwrap_or(0)])
    }

    /// Bytes where keys and values take turns if they can.
    fn least_bytes(self, variant: AttentionVariant, width: u32) -> u32 {
        let bytes = self.bytes(variant, width);
        if variant == AttentionVariant::Forward { bytes - self.columns * 16 * stride(width) } else { bytes }
    }

    /// Invocations of a workgroup.
    #[must_use]
    pub const fn invocations(self) -> u32 {
        self.high * self.wide
    }

    /// Rows per invocation.
    #[must_use]
    pub const fn row_count(self) -> u32 {
        self.rows / self.high
    }

    /// Columns per invocation.
    #[must_use]
    pub const fn column_count(self) -> u32 {
        self.columns / self.wide
    }

    /// Into how many parts the columns are split for the sums, which pass through a tile when the parts are added.
    pub(super) fn parts(self, width: u32) -> u32 {
        let mut parts = 1;
        while self.wide.is_multiple_of(2 * parts) && self.wide / (2 * parts) >= quads(width) {
            parts *= 2;
        }
        let sums = self.rows * self.wide * quads(width).div_ceil(self.wide / parts);
        if sums <= self.columns * stride(width) { parts } else { 1 }
    }

    /// Quadruples of a row's sums per invocation.
    pub(super) fn sum_count(self, width: u32) -> u32 {
        quads(width).div_ceil(self.wide / self.parts(width))
    }

    /// Columns of an invocation whose weights lie side by side.
    pub(super) fn weight_lanes(self) -> u32 {
        lanes_of(self.column_count())
    }

    /// Elements of the array of weights from a row to the next.
    pub(super) fn weight_stride(self) -> u32 {
        let length = self.columns / self.weight_lanes();
        if length.is_multiple_of(8) { length + 1 } else { length }
    }

    /// Rows of an invocation whose values are exchanged side by side.
    pub(super) fn exchange_lanes(self) -> u32 {
        match self.row_count() {
            1 => 1,
            2 => 2,
            _ => 4,
        }
    }

    /// Elements of the array in which the invocations of a row exchange a value.
    pub(super) fn exchange_length(self) -> u32 {
        self.high * self.row_count().div_ceil(self.exchange_lanes()) * (self.wide + 1)
    }

    /// Bytes of workgroup memory.
    fn bytes(self, variant: AttentionVariant, width: u32) -> u32 {
        let row = 16 * stride(width);
        let weights = 4 * self.weight_lanes() * self.rows * self.weight_stride();
        match variant {
            AttentionVariant::Forward => {
                (self.rows + 2 * self.columns) * row
                    + weights
                    + 4 * self.exchange_lanes() * self.exchange_length()
            }
            AttentionVariant::GradQuery => 2 * (self.rows + self.columns) * row + weights,
            AttentionVariant::GradKeyValue => 2 * ((self.rows + self.columns) * row + weights),
        }
    }
}

/// The widest vector that divides a count.
fn lanes_of(count: u32) -> u32 {
    [4, 2].into_iter().find(|lanes| count.is_multiple_of(*lanes)).unwrap_or(1)
}

/// Quadruples of a row.
pub(super) const fn quads(width: u32) -> u32 {
    width.div_ceil(4)
}

/// Quadruples from a row in workgroup memory to the next: odd, so that neighbouring rows lie in different banks.
pub(super) const fn stride(width: u32) -> u32 {
    quads(width) | 1
}

//! How a workgroup of attention is laid out: the closed table of geometries, their shares and the memory they take.
//!
//! Invocation (y, x) has the rows `y + high i` and the columns `x + wide j` of the scores of a tile. Of the sums it has the same
//! rows, and quadruples of elements: the `wide` neighbours of a row are split into [`Geometry::parts`] as far as there are more of
//! them than quadruples; each part takes its share of the columns, and at the end the parts are added in order.
//!
//! Invariants: `high` divides rows and `wide` divides columns; what [`Geometry::fits`] accepts stays within the target.

use griffinfly_ir::loops::{Attention, AttentionVariant};
use griffinfly_ir::target::Target;
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
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} by {}x{}", self.rows, self.columns, self.high, self.wide)
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

impl Geometry {
    /// All geometries.
    #[must_use]
    pub fn all() -> Vec<Self> {
        TABLE.map(|[rows, columns, high, wide]| Self::new(rows, columns, high, wide)).to_vec()
    }

    pub(super) const fn new(rows: u32, columns: u32, high: u32, wide: u32) -> Self {
        Self { rows, columns, high, wide }
    }

    /// Whether a target can run a loop this way.
    #[must_use]
    pub fn fits(self, a: &Attention, target: &Target) -> bool {
        let width = a.shape.width as u32;
        let invocations = target.max_invocations.min(target.max_workgroup_size[0]);
        self.invocations() <= invocations && self.least_bytes(a.variant, width) <= target.max_workgroup_bytes
    }

    /// Whether the values of a forward tile lie beside its keys instead of in their place.
    pub(super) fn has_both(self, width: u32, target: &Target) -> bool {
        self.bytes(AttentionVariant::Forward, width) <= target.max_workgroup_bytes
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

//! How a workgroup of attention is laid out: a table of choices and the memory each takes.

use crate::KernelError;
use crate::families::emit::unsupported;
use griffinfly_ir::loops::{Attention, AttentionVariant};
use griffinfly_ir::target::Target;
use std::fmt;

/// A workgroup of `high` x `wide` invocations that owns `rows` rows and takes `columns` others at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) high: u32,
    pub(super) wide: u32,
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} by {}x{}", self.rows, self.columns, self.high, self.wide)
    }
}

/// Rows, columns, invocations high and wide; better ones first. `high` divides rows, `wide` divides columns and is a multiple
/// of rows per invocation, columns are whole quadruples.
const CHOICES: [[u32; 4]; 12] = [
    [32, 32, 16, 16],
    [32, 16, 16, 16],
    [16, 32, 16, 16],
    [16, 16, 16, 16],
    [16, 8, 16, 8],
    [8, 32, 8, 16],
    [8, 16, 8, 16],
    [8, 8, 8, 8],
    [8, 4, 8, 4],
    [4, 32, 4, 16],
    [4, 16, 4, 16],
    [4, 4, 4, 4],
];

impl Geometry {
    /// The best choice that fits the target and the number of rows.
    pub(super) fn choose(a: &Attention, target: &Target) -> Result<Geometry, KernelError> {
        let s = a.shape;
        if s.of_scores().iter().chain([&s.width]).any(|n| *n == 0) {
            return Err(unsupported("attention", format!("empty extents {s:?}")));
        }
        let rows = if a.variant == AttentionVariant::GradKeyValue { s.keys } else { s.queries };
        let most_rows = (rows.next_power_of_two() as u32).max(4);
        let invocations = target.max_invocations.min(target.max_workgroup_size[0]);
        CHOICES
            .into_iter()
            .map(|[rows, columns, high, wide]| Geometry { rows, columns, high, wide })
            .find(|g| {
                g.rows <= most_rows
                    && g.invocations() <= invocations
                    && g.bytes(a.variant, s.width as u32) <= target.max_workgroup_bytes
            })
            .ok_or_else(|| {
                let bytes = target.max_workgroup_bytes;
                unsupported("attention", format!("heads of {} elements in {bytes} bytes of memory", s.width))
            })
    }

    /// Invocations of a workgroup.
    pub(super) fn invocations(self) -> u32 {
        self.high * self.wide
    }

    /// Rows per invocation.
    pub(super) fn row_count(self) -> u32 {
        self.rows / self.high
    }

    /// Columns per invocation.
    pub(super) fn column_count(self) -> u32 {
        self.columns / self.wide
    }

    /// Invocations that share a row in the softmax.
    pub(super) fn lanes(self) -> u32 {
        self.invocations() / self.rows
    }

    /// Bytes of workgroup memory.
    fn bytes(self, variant: AttentionVariant, width: u32) -> u32 {
        let (row, scores) = (16 * stride(width), 4 * self.rows * self.columns);
        match variant {
            AttentionVariant::Forward => {
                (self.rows + self.columns) * row + scores + 4 * (self.invocations() + self.rows)
            }
            AttentionVariant::GradQuery => (2 * self.rows + self.columns) * row + scores,
            AttentionVariant::GradKeyValue => 2 * ((self.rows + self.columns) * row + scores),
        }
    }
}

/// Quadruples of a row.
pub(super) fn quads(width: u32) -> u32 {
    width.div_ceil(4)
}

/// Quadruples from a row in workgroup memory to the next: odd, so that neighbouring rows lie in different banks.
pub(super) fn stride(width: u32) -> u32 {
    quads(width) | 1
}

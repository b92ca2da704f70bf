//! Row: reductions along rows, then outputs per row and per element. Also Reduce (no element outputs) and Window
//! (pooling).
//!
//! One generator with a [`Shape`]: how many invocations share a row (`lanes`), how many rows a workgroup holds (`rows`),
//! which of the two is adjacent in memory (`rows_fast`), into how many chunks a row is cut between workgroups (`chunks`),
//! and whether the elements of an invocation are written out with their loads kept in registers (`unroll`).
//!
//! | realisation | lanes | chunks | unroll | when |
//! |---|---|---|---|---|
//! | serial | 1 | 1 | small windows | pooling, short rows, many adjacent columns |
//! | on-chip | >= 2 | 1 | yes | a row fits the registers of its workgroup |
//! | streaming | >= 2 | 1 | no | longer rows: every phase reads the row again |
//! | split | any | >= 2 | no | too few rows to fill the device |
//!
//! A split row has one dispatch per phase and one for the outputs: each writes the partial carries of its chunk to
//! scratch, and begins by merging the partials of all earlier phases ([`partial`]).
//!
//! Order of reduction: each invocation folds the elements `first + lane`, `+ lanes`, ... of its chunk in order; the lanes
//! merge as a binary tree; chunks merge in the same way, chunk for element. It depends on the shape alone. Combinations that carry an
//! index prefer the first NaN, then the better value, then the smaller index, so any order gives the same winner.

mod accumulate;
mod choose;
mod partial;
mod point;
mod program;

use super::Realisation;
use super::emit::unsupported;
use crate::KernelError;
use griffinfly_ir::loops::{Loop, LoopKind, Row};
use griffinfly_ir::target::Target;

/// The ways to run a row loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowRealisation {
    /// One invocation per row.
    Serial,
    /// A row's elements stay in the registers of the invocations that share it.
    OnChip,
    /// Every phase reads the row again.
    Streaming,
    /// Rows are cut into chunks for several workgroups; partial results go through scratch.
    Split,
}

impl RowRealisation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Serial, Self::OnChip, Self::Streaming, Self::Split];

    /// Readable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::OnChip => "on-chip",
            Self::Streaming => "streaming",
            Self::Split => "split",
        }
    }
}

/// How the work is laid out; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    realisation: RowRealisation,
    lanes: u32,
    rows: u32,
    rows_fast: bool,
    chunks: u32,
    unroll: Option<u32>,
}

/// Realises a row loop as sizes and target suggest.
///
/// # Errors
/// A loop of another kind, or one that needs more than the target allows.
pub fn realise_row(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    let row = row(l)?;
    program::realise(l, row, choose::shape(l, row, target), target)
}

/// Realises a row loop in a given way.
///
/// # Errors
/// As [`realise_row`], and on-chip for a row that does not fit.
pub fn realise_row_as(
    l: &Loop,
    target: &Target,
    realisation: RowRealisation,
) -> Result<Realisation, KernelError> {
    let row = row(l)?;
    program::realise(l, row, choose::forced(l, row, target, realisation)?, target)
}

fn row(l: &Loop) -> Result<&Row, KernelError> {
    match &l.kind {
        LoopKind::Row(row) => Ok(row),
        _ => Err(unsupported("row", "the loop is not a row loop")),
    }
}

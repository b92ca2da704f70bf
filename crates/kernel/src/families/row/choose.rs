//! The shape of a row loop: a table of rules over row count, width, memory order and device.

use super::{RowRealisation, Shape};
use crate::KernelError;
use crate::families::emit::unsupported;
use griffinfly_ir::index::IndexExpr;
use griffinfly_ir::loops::{Archetype, Body, Loop, Row};
use griffinfly_ir::target::Target;

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;
/// The same on software drivers, where a barrier changes from one invocation to the next: SwiftShader sums rows of 4,096 elements ten
/// times as fast with 16 lanes as with 256, lavapipe a little faster.
const SOFTWARE: u32 = 16;
/// Elements one invocation may keep in registers.
const MOST_UNROLLED: u32 = 8;
/// Instructions an unrolled body may have.
const MOST_CODE: usize = 800;
/// Rows up to this width are reduced by one invocation.
const SHORT: u32 = 16;
/// Adjacent rows of a workgroup when rows are adjacent in memory.
const ADJACENT: u32 = 32;
/// Elements per invocation and chunk below which cutting does not pay.
const LEAST_CHUNK: u32 = 8;
/// Chunks that save less time than the dispatches that merge them take.
const FEW_CHUNKS: u32 = 4;
/// Most chunks per row: partial results of a row are merged by one pass of its invocations.
const MOST_CHUNKS: u32 = 128;

/// Sizes the rules look at.
struct Sizes {
    rows: u32,
    width: u32,
    workgroup: u32,
    /// Most invocations of a workgroup.
    largest: u32,
    /// Times a row is read: once per phase, and once for outputs per element.
    passes: u32,
    /// Iterations an invocation may run.
    most_turns: u32,
}

impl Sizes {
    /// Whether one invocation may read all its elements in every pass.
    fn allows_whole(&self, lanes: u32) -> bool {
        let turns = u64::from(self.width.div_ceil(lanes)) + 1;
        turns * u64::from(self.passes) <= u64::from(self.most_turns)
    }

    /// Fewest chunks that keep every dispatch within the limit: each makes one pass over a chunk and merges the others.
    fn least_chunks(&self, lanes: u32) -> u32 {
        if self.allows_whole(lanes) {
            1
        } else {
            self.width.div_ceil(lanes.saturating_mul(self.most_turns / 2)).max(2)
        }
    }
}

fn sizes(row: &Row, target: &Target, workgroup: u32) -> Sizes {
    let largest = target.max_invocations.min(target.max_workgroup_size[0]).max(1);
    Sizes {
        rows: row.rows.iter().product::<usize>() as u32,
        width: row.cols.iter().product::<usize>() as u32,
        // A power of two, for the tree.
        workgroup: 1 << workgroup.min(largest).ilog2(),
        largest,
        passes: row.phases.len() as u32 + u32::from(!row.col_stores.is_empty()),
        most_turns: target.max_iterations,
    }
}

/// The shape that sizes and target suggest.
pub(super) fn shape(l: &Loop, row: &Row, target: &Target) -> Shape {
    let s = sizes(row, target, if target.is_hardware { WORKGROUP } else { SOFTWARE });
    if s.width <= SHORT || (l.archetype() == Archetype::Window && s.allows_whole(1)) {
        return serial(l, row, &s);
    }
    let rows_fast = rows_are_adjacent(l, row);
    let chunks = chunks(&s, rows_fast, target);
    if (2..=FEW_CHUNKS).contains(&chunks)
        && target.is_hardware
        && let Some(shape) = wide(l, row, &s, rows_fast)
    {
        return shape;
    }
    if chunks > 1 {
        return Shape { chunks, ..tiled(&s, rows_fast, RowRealisation::Split) };
    }
    on_chip(l, row, &s, rows_fast).unwrap_or_else(|| tiled(&s, rows_fast, RowRealisation::Streaming))
}

/// The shape of a realisation that a caller asked for, with the workgroups of hardware whatever the device.
pub(super) fn forced(
    l: &Loop,
    row: &Row,
    target: &Target,
    realisation: RowRealisation,
) -> Result<Shape, KernelError> {
    let s = sizes(row, target, WORKGROUP);
    let rows_fast = rows_are_adjacent(l, row);
    Ok(match realisation {
        RowRealisation::Serial => serial(l, row, &s),
        RowRealisation::OnChip => {
            on_chip(l, row, &s, rows_fast).or_else(|| wide(l, row, &s, rows_fast)).ok_or_else(|| {
                unsupported("row on-chip", format!("a width of {} is too much for registers", s.width))
            })?
        }
        RowRealisation::Streaming => tiled(&s, rows_fast, realisation),
        RowRealisation::Split => {
            let shape = tiled(&s, rows_fast, realisation);
            let chunks = s.width.div_ceil(64).clamp(2, 5).max(s.least_chunks(shape.lanes));
            Shape { chunks, ..shape }
        }
    })
}

fn serial(l: &Loop, row: &Row, s: &Sizes) -> Shape {
    let code = cost(l) * s.width as usize;
    let has_few_loads = loads(row) * s.width as usize <= 64;
    let unroll = (s.width <= 32 && code <= MOST_CODE && has_few_loads).then_some(s.width);
    // Small workgroups spread few rows over the device.
    let rows = if s.rows >= 1 << 16 { WORKGROUP } else { 64 }.min(1 << s.largest.ilog2());
    Shape { realisation: RowRealisation::Serial, lanes: 1, rows, rows_fast: true, chunks: 1, unroll }
}

/// Whole workgroups of rows and lanes; about eight elements per lane.
fn tiled(s: &Sizes, rows_fast: bool, realisation: RowRealisation) -> Shape {
    let rows = if rows_fast { s.rows.next_power_of_two().min(ADJACENT).min(s.workgroup) } else { 1 };
    let useful = s.width.div_ceil(if rows_fast { MOST_UNROLLED } else { MOST_UNROLLED / 2 });
    let lanes = useful.next_power_of_two().min(s.workgroup / rows).max(1);
    let rows = if rows_fast { rows } else { (s.workgroup / lanes).min(s.rows.next_power_of_two()) };
    Shape { realisation, lanes, rows, rows_fast, chunks: 1, unroll: None }
}

fn on_chip(l: &Loop, row: &Row, s: &Sizes, rows_fast: bool) -> Option<Shape> {
    in_registers(l, row, s, tiled(s, rows_fast, RowRealisation::OnChip))
}

/// One row to a workgroup larger than others.
fn wide(l: &Loop, row: &Row, s: &Sizes, rows_fast: bool) -> Option<Shape> {
    let lanes = s.width.div_ceil(MOST_UNROLLED).next_power_of_two();
    if rows_fast || lanes > s.largest {
        return None;
    }
    let shape =
        Shape { realisation: RowRealisation::OnChip, lanes, rows: 1, rows_fast, chunks: 1, unroll: None };
    in_registers(l, row, s, shape)
}

fn in_registers(l: &Loop, row: &Row, s: &Sizes, shape: Shape) -> Option<Shape> {
    let unroll = s.width.div_ceil(shape.lanes);
    let fits = unroll <= MOST_UNROLLED && cost(l) * unroll as usize <= MOST_CODE;
    (fits && loads(row) * unroll as usize <= 64).then_some(Shape { unroll: Some(unroll), ..shape })
}

/// Into how many chunks rows are cut so that the device is full.
fn chunks(s: &Sizes, rows_fast: bool, target: &Target) -> u32 {
    let shape = tiled(s, rows_fast, RowRealisation::Split);
    let groups = s.rows.div_ceil(shape.rows).max(1);
    let wanted =
        if target.is_hardware { target.compute_units.saturating_mul(2) } else { target.compute_units };
    // A second dispatch costs a few microseconds: on hardware worth it from a few thousand elements per row on.
    let least = shape.lanes * if target.is_hardware { LEAST_CHUNK } else { 16 * LEAST_CHUNK };
    let useful = (wanted / groups).min(s.width / least.max(1)).clamp(1, MOST_CHUNKS);
    useful.max(s.least_chunks(shape.lanes))
}

/// Rough instructions per element over all bodies.
fn cost(l: &Loop) -> usize {
    l.bodies().iter().map(|(body, _)| body.cost() + 2).sum()
}

/// Different loads per element.
fn loads(row: &Row) -> usize {
    row.phases.iter().map(|phase| phase.body.loads.len()).sum::<usize>() + row.col_body.loads.len()
}

/// Whether neighbouring rows, and not neighbouring elements of a row, are adjacent in most loads of the phases.
fn rows_are_adjacent(l: &Loop, row: &Row) -> bool {
    let moving = |extents: &[usize], first: usize| {
        extents.iter().rposition(|extent| *extent > 1).map(|axis| first + axis)
    };
    let (across, along) = (moving(&row.rows, 0), moving(&row.cols, row.rows.len()));
    let (mut rows, mut cols) = (0, 0);
    let offsets = |body: &Body| -> Vec<IndexExpr> {
        body.loads.iter().map(|load| load.access.offset(&l.operands[load.operand].dims)).collect()
    };
    for offset in row.phases.iter().flat_map(|phase| offsets(&phase.body)) {
        let stride = |axis: Option<usize>| axis.and_then(|axis| offset.coefficient(axis)).unwrap_or(0);
        rows += usize::from(stride(across) == 1);
        cols += usize::from(stride(along) == 1);
    }
    rows > cols
}

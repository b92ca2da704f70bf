//! Where an invocation is: its row, its lane, its elements, and the evaluation of bodies at them.

use super::Shape;
use super::accumulate::Seat;
use super::program::{Stage, count};
use crate::KernelError;
use crate::families::emit::{self, Bindings, Env};
use crate::kir::{Builder, Expr};
use griffinfly_ir::loops::{Body, Load};
use std::collections::HashMap;

/// Loaded values kept in registers: load and number of the element.
#[derive(Default)]
pub(super) struct Cache<'b> {
    known: HashMap<(Load, u32), Expr<'b>>,
}

/// Ids and ranges of one invocation.
pub(super) struct Frame<'a, 'b> {
    pub(super) b: &'b Builder,
    stage: &'a Stage<'a>,
    pub(super) bindings: &'a Bindings<'b>,
    extents: Vec<usize>,
    lane: Expr<'b>,
    local_row: Expr<'b>,
    /// The row, clamped to the last.
    pub(super) row: Expr<'b>,
    /// Axes of the row.
    pub(super) row_axes: Vec<Expr<'b>>,
    /// Whether the invocation has a row of its own.
    is_row: Expr<'b>,
    /// Whether it is the one that writes the outputs of its row.
    pub(super) is_first_of_row: Expr<'b>,
    /// Whether it is the one that writes for its row and chunk.
    pub(super) is_first_of_chunk: Expr<'b>,
    /// Number of rows.
    pub(super) rows: Expr<'b>,
    /// Number of the chunk.
    pub(super) chunk: Expr<'b>,
    /// Chunks per row in scratch.
    pub(super) partials: Expr<'b>,
    width: Expr<'b>,
    first: Expr<'b>,
    end: Expr<'b>,
}

impl<'a, 'b> Frame<'a, 'b> {
    /// Declares the parameters and works out the ids.
    pub(super) fn new(
        b: &'b Builder,
        stage: &'a Stage<'a>,
        bindings: &'a Bindings<'b>,
        has_chunks: bool,
    ) -> Self {
        let Shape { lanes, rows: local_rows, rows_fast, chunks, .. } = stage.shape;
        let (rows, width) = (b.param("rows"), b.param("width"));
        let (one, zero) = (b.constant(1_u32), b.constant(0_u32));
        let (partials, length) =
            if has_chunks { (b.param("chunks"), b.param("chunk_width")) } else { (one, width) };
        let group = b.flat_workgroup_id();
        let is_cut = chunks > 1;
        let (block, chunk) = if is_cut { (group / partials, group % partials) } else { (group, zero) };
        let local = b.local_index();
        let (lane, local_row) = match (lanes, local_rows) {
            (1, _) => (zero, local),
            (_, 1) => (local, zero),
            _ if rows_fast => (local / local_rows, local % local_rows),
            _ => (local % lanes, local / lanes),
        };
        let own = block * local_rows + local_row;
        let is_row = own.lt(rows);
        let row = own.native_min(rows - 1).named("row");
        let first = chunk * length;
        let (first, end) = if is_cut { (first, (first + length).native_min(width)) } else { (zero, width) };
        let is_first_of_chunk = lane.equals(0_u32) & is_row;
        let row_axes = emit::decompose(b, row, &stage.row.rows);
        Self {
            b,
            extents: stage.row.domain(),
            stage,
            bindings,
            lane,
            local_row,
            row,
            row_axes,
            is_row,
            is_first_of_row: if is_cut { is_first_of_chunk & chunk.equals(0_u32) } else { is_first_of_chunk },
            is_first_of_chunk,
            rows,
            chunk,
            partials,
            width,
            first,
            end,
        }
    }

    /// The place of the invocation in the tree of its row.
    pub(super) fn seat(&self, shape: Shape) -> Seat<'b> {
        let (stride, place) = if shape.rows_fast {
            (shape.rows, self.lane * shape.rows + self.local_row)
        } else {
            (1, self.local_row * shape.lanes + self.lane)
        };
        Seat { lane: self.lane, place, stride, lanes: shape.lanes }
    }

    /// Lane as the start of a loop over chunks.
    pub(super) fn lane(&self) -> Expr<'b> {
        self.lane
    }

    /// Lanes per row.
    pub(super) fn lanes(&self) -> u32 {
        self.stage.shape.lanes
    }

    /// Evaluates a body at every element of the invocation and hands the column, whether it is inside the row (`None`:
    /// certainly) and the values on.
    pub(super) fn each(
        &self,
        body: &Body,
        carries: &[Expr<'b>],
        cache: &mut Cache<'b>,
        mut take: impl FnMut(Expr<'b>, Option<Expr<'b>>, Vec<Expr<'b>>),
    ) -> Result<(), KernelError> {
        let Some(unroll) = self.unrolled() else {
            let mut outcome = Ok(());
            self.b.for_("c", (self.first + self.lane, self.end), self.lanes(), |col| {
                let values = self.at(col, carries, |env| emit::body(self.b, body, env));
                outcome = values.map(|values| take(col, None, values));
            });
            return outcome;
        };
        for element in 0..unroll {
            let (col, inside) = self.element(element);
            let values = self.at(col, carries, |env| {
                let mut loads: Vec<Option<Expr<'b>>> = body
                    .loads
                    .iter()
                    .map(|load| cache.known.get(&(load.clone(), element)).copied())
                    .collect();
                emit::fill_loads(self.b, body, env, &mut loads)?;
                for (load, value) in body.loads.iter().zip(&loads) {
                    if let (Some(value), None) = (value, &load.access.dynamic) {
                        cache.known.insert((load.clone(), element), *value);
                    }
                }
                emit::body_of_loads(self.b, body, env, &loads)
            })?;
            take(col, inside, values);
        }
        Ok(())
    }

    /// Evaluates and stores the outputs per element.
    pub(super) fn each_output(&self, carries: &[Expr<'b>], cache: &Cache<'b>) -> Result<(), KernelError> {
        let mut outcome = Ok(());
        let Some(unroll) = self.unrolled() else {
            self.b.if_(self.is_row, || {
                self.b.for_("c", (self.first + self.lane, self.end), self.lanes(), |col| {
                    let none = vec![None; self.stage.row.col_body.loads.len()];
                    outcome = self.output(col, carries, none);
                });
            });
            return outcome;
        };
        for element in 0..unroll {
            let (col, inside) = self.element(element);
            let writes = inside.map_or(self.is_row, |inside| self.is_row & inside);
            self.b.if_(writes, || {
                let loads = &self.stage.row.col_body.loads;
                let known = loads.iter().map(|load| cache.known.get(&(load.clone(), element)).copied());
                outcome = self.output(col, carries, known.collect());
            });
            outcome.clone()?;
        }
        Ok(())
    }

    fn output(
        &self,
        col: Expr<'b>,
        carries: &[Expr<'b>],
        mut loads: Vec<Option<Expr<'b>>>,
    ) -> Result<(), KernelError> {
        let row = self.stage.row;
        self.at(col, carries, |env| {
            emit::fill_loads(self.b, &row.col_body, env, &mut loads)?;
            let values = emit::body_of_loads(self.b, &row.col_body, env, &loads)?;
            self.stage.store(self.bindings, &row.col_stores, values, env)
        })
    }

    /// How many elements are written out, where they are.
    fn unrolled(&self) -> Option<u32> {
        self.stage.shape.unroll
    }

    /// Column of an element that is written out (clamped into the row), and whether it is inside (`None`: certainly).
    /// Only the last element of an invocation can be outside.
    fn element(&self, element: u32) -> (Expr<'b>, Option<Expr<'b>>) {
        let lanes = self.lanes();
        if lanes == 1 {
            return (self.b.constant(element), None);
        }
        let col = self.lane + element * lanes;
        if (element + 1) * lanes <= count(&self.stage.row.cols) {
            return (col, None);
        }
        (col.native_min(self.width - 1), Some(col.lt(self.width)))
    }

    /// Calls `f` with the environment of an element.
    fn at<T>(
        &self,
        col: Expr<'b>,
        carries: &[Expr<'b>],
        f: impl FnOnce(&Env<'_, 'b>) -> Result<T, KernelError>,
    ) -> Result<T, KernelError> {
        let row = self.stage.row;
        let cols = emit::decompose(self.b, col, &row.cols);
        let axes: Vec<Expr<'b>> = self.row_axes.iter().copied().chain(cols).collect();
        let mut env = self.bindings.env(&self.stage.l.operands, &self.extents, &axes);
        env.carries = carries;
        let is_wide = count(&row.cols) > 1;
        env.linear = is_wide.then(|| self.row * self.width + col);
        f(&env)
    }
}

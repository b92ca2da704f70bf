//! Scatter: rows summed by id, in item order.
//!
//! Each task owns a range of columns and walks all items, so the order of additions is that of the items whatever the
//! number of threads.

use super::code::{Code, Source};
use super::evaluate::{Need, Scratch};
use super::memory::View;
use super::points::LANES;
use super::workers::Workers;
use griffinfly_ir::loops::{Loop, Scatter};
use griffinfly_ir::types::DType;

/// Columns of a task, where rows are that long.
const TASK_COLUMNS: usize = LANES;

/// A plan of a scatter.
pub(super) struct ScatterPlan {
    operands: Vec<View>,
    result: View,
    ids: Code,
    source: Code,
    rows: usize,
    items: usize,
    cols: usize,
    nanoseconds: f64,
}

/// Converts the words of a column to the floats they stand for.
pub(super) fn to_floats(dtype: DType, words: &[u32], out: &mut [f32]) {
    let pairs = out.iter_mut().zip(words);
    match dtype {
        DType::F32 => pairs.for_each(|(o, w)| *o = f32::from_bits(*w)),
        DType::I32 => pairs.for_each(|(o, w)| *o = *w as i32 as f32),
        DType::U32 | DType::Bool => pairs.for_each(|(o, w)| *o = *w as f32),
    }
}

impl ScatterPlan {
    /// Plans a scatter.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn new(l: &Loop, s: &Scatter, views: &[View]) -> Result<ScatterPlan, String> {
        let (operands, results) = views.split_at(l.operands.len());
        let domain = [s.items.as_slice(), &s.cols].concat();
        let source =
            |body, extents| Source { body, operands: &l.operands, extents, stores: &[], results: &[] };
        let order: Vec<usize> = (0..domain.len()).collect();
        let ids = Code::new(&source(&s.ids, &s.items), &order[..s.items.len()], 0)?;
        let values = Code::new(&source(&s.source, &domain), &order, ids.end_register)?;
        let (items, cols): (usize, usize) = (s.items.iter().product(), s.cols.iter().product());
        let per_item = ids.nanoseconds(items) + cols as f64 * (0.2 + values.nanoseconds(LANES));
        Ok(ScatterPlan {
            operands: operands.to_vec(),
            result: results.first().cloned().ok_or("no result")?,
            nanoseconds: items as f64 * per_item + (s.rows * cols) as f64 * 0.2,
            ids,
            source: values,
            rows: s.rows,
            items,
            cols,
        })
    }

    /// Scratch needed.
    pub(super) fn need(&self) -> Need {
        Need::of(&self.ids).or(Need::of(&self.source))
    }

    /// Executes it.
    pub(super) fn run(&self, workers: &Workers) {
        let tasks = if self.cols >= 2 * TASK_COLUMNS { self.cols.div_ceil(TASK_COLUMNS) } else { 1 };
        workers.run(tasks, self.nanoseconds, &|t, scratch| {
            let width = if tasks == 1 { self.cols } else { TASK_COLUMNS };
            let from = t * width;
            self.run_columns(scratch, from, width.min(self.cols - from));
        });
    }

    fn run_columns(&self, scratch: &mut Scratch, from: usize, width: usize) {
        self.ids.begin(scratch);
        self.source.begin(scratch);
        for row in 0..self.rows {
            for at in (from..from + width).step_by(LANES) {
                let zeros = &[0; LANES][..LANES.min(from + width - at)];
                self.result.write_run((row * self.cols + at) as i64, 1, zeros);
            }
        }
        // Several short items make a block; long items make several blocks.
        let group = if width == self.cols { (LANES / width).clamp(1, LANES) } else { 1 };
        let mut ids = [0; LANES];
        for first in (0..self.items).step_by(LANES) {
            let n = LANES.min(self.items - first);
            self.ids.evaluate(scratch, &self.operands, first, n);
            let register = self.ids.outputs.first().map_or(0, |o| o.0);
            ids[..n].copy_from_slice(&scratch.registers[register][..n]);
            for g in (0..n).step_by(group) {
                let ids = &ids[g..n.min(g + group)];
                if ids.iter().any(|id| (*id as usize) < self.rows) {
                    self.add_items(scratch, first + g, ids, (from, width));
                }
            }
        }
    }

    fn add_items(&self, scratch: &mut Scratch, item: usize, ids: &[u32], (from, width): (usize, usize)) {
        let Some(&(register, dtype)) = self.source.outputs.first() else { return };
        let mut values = [0.0; LANES];
        if width <= LANES {
            let n = width * ids.len();
            self.source.evaluate(scratch, &self.operands, item * self.cols + from, n);
            to_floats(dtype, &scratch.registers[register][..n], &mut values);
            for (id, row) in ids.iter().zip(values[..n].chunks_exact(width)) {
                self.add(*id, from, row);
            }
            return;
        }
        for at in (from..from + width).step_by(LANES) {
            let n = LANES.min(from + width - at);
            self.source.evaluate(scratch, &self.operands, item * self.cols + at, n);
            to_floats(dtype, &scratch.registers[register][..n], &mut values[..n]);
            ids.iter().for_each(|id| self.add(*id, at, &values[..n]));
        }
    }

    fn add(&self, id: u32, column: usize, values: &[f32]) {
        if (id as usize) < self.rows {
            self.result.add_run((id as usize * self.cols + column) as i64, values);
        }
    }
}

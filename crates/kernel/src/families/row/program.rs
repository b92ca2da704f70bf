//! The kernels of a row loop: one for everything, or one per phase and one for the outputs.

use super::Shape;
use super::accumulate::{self, Arrays, Item};
use super::partial::{self, Partials};
use super::point::{Cache, Frame};
use crate::KernelError;
use crate::families::emit::{self, Bindings, Draft, element_type, fold_groups};
use crate::families::{Instance, Realisation};
use crate::kir::{Builder, Expr};
use griffinfly_ir::index::Store;
use griffinfly_ir::loops::{Body, Loop, Row};
use griffinfly_ir::target::Target;

/// One kernel of a row loop.
#[derive(Clone)]
pub(super) struct Stage<'a> {
    pub(super) l: &'a Loop,
    pub(super) row: &'a Row,
    pub(super) shape: Shape,
    /// The phases whose carries come from scratch.
    merged: usize,
    /// The phases run here, over all elements or those of a chunk.
    phases: std::ops::Range<usize>,
    /// Whether the outputs are written here (else the partial carries).
    outputs: bool,
    /// Chunks of a row in scratch (1: no scratch).
    partials: u32,
}

/// Makes all kernels of a row loop in a given shape.
pub(super) fn realise(
    l: &Loop,
    row: &Row,
    shape: Shape,
    target: &Target,
) -> Result<Realisation, KernelError> {
    let phases = row.phases.len();
    let (rows, carries) = (count(&row.rows), row.carries().len());
    let base = Stage { l, row, shape, merged: 0, phases: 0..phases, outputs: true, partials: 1 };
    if shape.chunks < 2 {
        return Ok(Realisation { dispatches: vec![base.instance(target)?], ..Realisation::default() });
    }
    let mut dispatches = Vec::new();
    for phase in 0..phases {
        let stage = Stage {
            merged: phase,
            phases: phase..phase + 1,
            outputs: false,
            partials: shape.chunks,
            ..base.clone()
        };
        dispatches.push(stage.instance(target)?);
    }
    // Without outputs per element the last stage needs no chunks.
    let chunks = if row.col_stores.is_empty() { 1 } else { shape.chunks };
    let shape = Shape { chunks, ..base.shape };
    let last = Stage { shape, merged: phases, phases: 0..0, partials: base.shape.chunks, ..base.clone() };
    dispatches.push(last.instance(target)?);
    let words = carries as u64 * u64::from(rows) * u64::from(base.shape.chunks);
    Ok(Realisation { dispatches, scratch: vec![4 * words.max(1)], counters: 0 })
}

/// Elements of a box of extents.
pub(super) fn count(extents: &[usize]) -> u32 {
    extents.iter().product::<usize>() as u32
}

impl Stage<'_> {
    fn name(&self) -> String {
        let Shape { realisation, lanes, rows, rows_fast, chunks, unroll } = self.shape;
        let order = if rows_fast { "rows fast" } else { "lanes fast" };
        let mut name = format!("row {} {rows}x{lanes} {order}", realisation.name());
        if let Some(unroll) = unroll {
            name += &format!(" unrolled {unroll}");
        }
        if self.partials > 1 {
            let part =
                if self.outputs { "outputs".to_owned() } else { format!("phase {}", self.phases.start) };
            name += &format!(" {part} of {chunks} chunks");
        }
        name
    }

    fn instance(&self, target: &Target) -> Result<Instance, KernelError> {
        let Shape { lanes, rows, chunks, .. } = self.shape;
        let name = self.name();
        let b = Builder::new(name.clone(), [lanes * rows, 1, 1]);
        let (all_rows, width) = (count(&self.row.rows), count(&self.row.cols));
        let mut parameters = vec![all_rows, width];
        if self.partials > 1 {
            // The same number of elements in each chunk but the last.
            parameters.extend([self.partials, width.div_ceil(self.partials)]);
        }
        let bindings = self.emit(&b)?;
        let blocks = u64::from(all_rows.div_ceil(rows));
        let groups = fold_groups(blocks * u64::from(chunks), target)?;
        Draft { name, bindings, parameters, groups }.finish(b, target)
    }

    fn emit(&self, b: &Builder) -> Result<Vec<crate::families::Slot>, KernelError> {
        let (bindings, scratch) = self.bindings(b);
        let frame = Frame::new(b, self, &bindings, self.partials > 1);
        let mut arrays = Arrays::new(b, self.shape.lanes * self.shape.rows);
        let seat = frame.seat(self.shape);
        let mut carries: Vec<Expr<'_>> = Vec::new();
        if let Some(partials) = &scratch {
            for phase in &self.row.phases[..self.merged] {
                let items = partial::merge(partials, (phase, carries.len()), &frame, &seat, &mut arrays);
                carries.extend(items.into_iter().flat_map(Item::parts));
            }
        }
        let mut cache = Cache::default();
        for phase in &self.row.phases[self.phases.clone()] {
            let all = accumulate::declare(b, phase);
            let add = |col: Expr<'_>, inside: Option<Expr<'_>>, values: Vec<Expr<'_>>| {
                all.iter().zip(values).for_each(|(a, value)| a.add_value(value, col, inside));
            };
            frame.each(&phase.body, &carries, &mut cache, add)?;
            accumulate::tree(b, &all, &seat, &mut arrays);
            let items: Vec<Item<'_>> = all.iter().map(|a| a.get()).collect();
            if let (Some(partials), false) = (&scratch, self.outputs) {
                partial::store(partials, &items, carries.len(), &frame);
            }
            carries.extend(items.into_iter().flat_map(Item::parts));
        }
        if self.outputs {
            self.write(&frame, &carries, &cache)?;
        }
        Ok(bindings.slots())
    }

    fn bindings<'b>(&self, b: &'b Builder) -> (Bindings<'b>, Option<Partials<'b>>) {
        let mut bodies: Vec<&Body> = self.row.phases[self.phases.clone()].iter().map(|p| &p.body).collect();
        if self.outputs {
            bodies.extend([&self.row.row_body, &self.row.col_body]);
        }
        let mut bindings = Bindings::new(b, self.l).bodies(&self.l.operands, &bodies);
        if self.outputs {
            for store in self.row.row_stores.iter().chain(&self.row.col_stores) {
                bindings.result(store.result, element_type(self.l.results[store.result].dtype));
            }
        }
        let scratch = (self.partials > 1).then(|| Partials::new(&mut bindings, !self.outputs));
        (bindings, scratch)
    }

    fn write<'b>(
        &self,
        frame: &Frame<'_, 'b>,
        carries: &[Expr<'b>],
        cache: &Cache<'b>,
    ) -> Result<(), KernelError> {
        let mut outcome = Ok(());
        if !self.row.row_stores.is_empty() {
            frame.b.if_(frame.is_first_of_row, || {
                let mut env = frame.bindings.env(&self.l.operands, &self.row.rows, &frame.row_axes);
                env.carries = carries;
                env.linear = Some(frame.row);
                outcome = emit::body(frame.b, &self.row.row_body, &env)
                    .and_then(|values| self.store(frame.bindings, &self.row.row_stores, values, &env));
            });
        }
        outcome?;
        if self.row.col_stores.is_empty() {
            return Ok(());
        }
        frame.each_output(carries, cache)
    }

    /// Writes values where stores say.
    pub(super) fn store<'b>(
        &self,
        bindings: &Bindings<'b>,
        stores: &[Store],
        values: Vec<Expr<'b>>,
        env: &emit::Env<'_, 'b>,
    ) -> Result<(), KernelError> {
        for (store, value) in stores.iter().zip(values) {
            let target = (bindings.target(store.result)?, &self.l.results[store.result]);
            emit::store(value.builder(), store, target, value, env);
        }
        Ok(())
    }
}

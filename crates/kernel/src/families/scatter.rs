//! Scatter: rows summed by id, owner-computes.
//!
//! Each output element has one invocation, which adds the items with its row's id in item order: no atomics, and the
//! order of the sum is the order of the items. A workgroup holds some rows and a block of columns; it evaluates the ids of
//! a tile of items together, and looks at the tile only if one of its rows occurs in it. Where an invocation may run only
//! so many loop iterations, the items are cut into ranges with a dispatch each, which go on from the sums so far: the
//! order of the sum is the same.

use super::emit::{self, Bindings, Draft, fold_groups};
use super::{Instance, Realisation, Slot};
use crate::KernelError;
use crate::kir::{Builder, Expr, Scalar, Shared, Type};
use griffinfly_ir::loops::{Loop, LoopKind, Scatter};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::DType;

/// Invocations of a workgroup, and items of a tile.
const WORKGROUP: u32 = 256;
/// Id of an item that does not exist: no row has it.
const NOBODY: i32 = -1;

/// Layout: a workgroup is `rows` rows of `lanes` columns.
struct Shape {
    rows: u32,
    lanes: u32,
    blocks: u32,
}

impl Shape {
    fn of(s: &Scatter, target: &Target) -> Self {
        let size = WORKGROUP.min(target.max_invocations).min(target.max_workgroup_size[0]).max(1);
        let cols = count(&s.cols);
        let lanes = cols.next_power_of_two().min(1 << size.ilog2());
        Self { rows: ((1 << size.ilog2()) / lanes).min(16), lanes, blocks: cols.div_ceil(lanes) }
    }

    fn size(&self) -> u32 {
        self.rows * self.lanes
    }

    /// Most items of a dispatch, whole tiles: an invocation looks at each tile and may add all its items.
    fn most_items(&self, target: &Target) -> u32 {
        let tiles = (target.max_iterations - 1) / (self.size() + 2);
        tiles.max(1).saturating_mul(self.size())
    }
}

fn count(extents: &[usize]) -> u32 {
    extents.iter().product::<usize>() as u32
}

/// Realises a scatter.
///
/// # Errors
/// A loop of another kind, or one that needs more than the target allows.
pub fn realise_scatter(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    let LoopKind::Scatter(s) = &l.kind else {
        return Err(emit::unsupported("scatter", "the loop is not a scatter"));
    };
    let shape = Shape::of(s, target);
    let (items, most) = (count(&s.items), shape.most_items(target));
    let ranges = (0..items).step_by(most as usize).map(|begin| begin..items.min(begin.saturating_add(most)));
    let dispatches = ranges.map(|range| instance(l, (s, &shape), range, target)).collect::<Result<_, _>>()?;
    Ok(Realisation { dispatches, ..Realisation::default() })
}

/// The dispatch that adds a range of items: to zero, or for a later range to the sums so far.
fn instance(
    l: &Loop,
    (s, shape): (&Scatter, &Shape),
    items: std::ops::Range<u32>,
    target: &Target,
) -> Result<Instance, KernelError> {
    let goes_on = items.start > 0;
    let name = format!("scatter {}x{}{}", shape.rows, shape.lanes, if goes_on { " on" } else { "" });
    let b = Builder::new(name.clone(), [shape.size(), 1, 1]);
    let bindings = emit_scatter(&b, l, (s, shape), goes_on)?;
    let parameters = vec![s.rows as u32, count(&s.cols), items.start, items.end, shape.blocks];
    let row_blocks = (s.rows as u64).div_ceil(u64::from(shape.rows));
    let groups = fold_groups(row_blocks * u64::from(shape.blocks), target)?;
    Draft { name, bindings, parameters, groups }.finish(b, target)
}

fn emit_scatter(
    b: &Builder,
    l: &Loop,
    (s, shape): (&Scatter, &Shape),
    goes_on: bool,
) -> Result<Vec<Slot>, KernelError> {
    let mut bindings = Bindings::new(b, l).bodies(&l.operands, &[&s.ids, &s.source]);
    let result = bindings.result(0, Type::F32);
    let (rows, cols) = (b.param("rows"), b.param("cols"));
    let (begin, end, blocks) = (b.param("begin"), b.param("end"), b.param("blocks"));
    let group = b.flat_workgroup_id();
    let local = b.local_index();
    let first_row = group / blocks * shape.rows;
    let row = (first_row + local / shape.lanes).named("row");
    let col = (group % blocks * shape.lanes + local % shape.lanes).named("col");
    let place = (row.native_min(rows - 1) * cols + col.native_min(cols - 1)).named("place");
    let sum = b.var("sum", if goes_on { result.load(place) } else { b.constant(0.0_f32) });
    let tile = Tile {
        b,
        l,
        s,
        bindings: &bindings,
        end,
        ids: b.shared("ids", Type::I32, shape.size()),
        found: b.shared("found", Type::U32, 1),
    };
    let mut outcome = Ok(());
    b.for_("tile", (begin, end), shape.size(), |start| {
        outcome = tile.gather(start, (first_row, shape.rows));
        let any = tile.found.load(0_u32).differs(0_u32);
        b.if_uniform(any, || {
            let added = tile.add(start, shape.size(), (row, col.native_min(cols - 1)), sum);
            outcome = outcome.clone().and(added);
        });
        b.barrier();
    });
    outcome?;
    b.if_(row.lt(rows) & col.lt(cols), || result.store(place, sum.get()));
    Ok(bindings.slots())
}

/// One tile of items.
struct Tile<'a, 'b> {
    b: &'b Builder,
    l: &'a Loop,
    s: &'a Scatter,
    bindings: &'a Bindings<'b>,
    /// End of the range of items.
    end: Expr<'b>,
    ids: Shared<'b>,
    found: Shared<'b>,
}

impl<'b> Tile<'_, 'b> {
    /// Evaluates the ids of the tile, and whether one belongs to the rows of the workgroup.
    fn gather(&self, start: Expr<'b>, (first, rows): (Expr<'b>, u32)) -> Result<(), KernelError> {
        let b = self.b;
        let local = b.local_index();
        b.if_(local.equals(0_u32), || self.found.store(0_u32, 0_u32));
        b.barrier();
        let item = start + local;
        let axes = emit::decompose(b, item.native_min(self.end - 1), &self.s.items);
        let mut env = self.bindings.env(&self.l.operands, &self.s.items, &axes);
        env.linear = Some(item.native_min(self.end - 1));
        let id = emit::body(b, &self.s.ids, &env)?;
        let id = id.first().copied().ok_or_else(|| emit::unsupported("scatter", "no id"))?;
        let id = item.lt(self.end).select(id.bitcast(Scalar::I32), b.constant(NOBODY));
        self.ids.store(local, id);
        let is_ours = (id.bitcast(Scalar::U32) - first).lt(rows);
        b.if_(is_ours, || self.found.store(0_u32, 1_u32));
        b.barrier();
        Ok(())
    }

    /// Adds the items of the tile that belong to a row.
    fn add(
        &self,
        start: Expr<'b>,
        size: u32,
        (row, col): (Expr<'b>, Expr<'b>),
        sum: crate::kir::Var<'b>,
    ) -> Result<(), KernelError> {
        let b = self.b;
        let mut outcome = Ok(());
        let count = (self.end - start).native_min(size);
        b.for_("i", (0_u32, count), 1_u32, |i| {
            let mine = self.ids.load(i).bitcast(Scalar::U32).equals(row);
            b.if_(mine, || outcome = self.source(start + i, col).map(|value| sum.set(sum.get() + value)));
        });
        outcome
    }

    fn source(&self, item: Expr<'b>, col: Expr<'b>) -> Result<Expr<'b>, KernelError> {
        let b = self.b;
        let extents = [self.s.items.as_slice(), &self.s.cols].concat();
        let mut axes = emit::decompose(b, item, &self.s.items);
        axes.extend(emit::decompose(b, col, &self.s.cols));
        let mut env = self.bindings.env(&self.l.operands, &extents, &axes);
        env.linear = Some(item * count(&self.s.cols) + col);
        let value = emit::body(b, &self.s.source, &env)?;
        let value = value.first().copied().ok_or_else(|| emit::unsupported("scatter", "no source"))?;
        Ok(emit::cast(DType::F32, value))
    }
}

//! Keys in parts, for few queries of long sequences (decoding): each part has workgroups of its own, which leave behind sums, and the
//! maximum and total that they refer to; a second dispatch puts the parts together, in order.
//!
//! Source: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference" (2023). Here scores are to the base 2:
//! `y = sum_p s_p 2^(m_p - m) / sum_p t_p 2^(m_p - m)` with `m` the largest `m_p`.
//!
//! Invariants: parts are whole tiles, so no tile is in two; a part without keys leaves zeros and the least finite maximum.

use super::geometry::{Geometry, quads};
use super::product::Sums;
use super::tile::Rows;
use super::{Frame, Views, axes, sight};
use crate::KernelError;
use crate::families::Instance;
use crate::families::contract::point::{self, Buffers};
use crate::families::emit::{Draft, fold_groups};
use crate::kir::{Access, Buffer, Builder, Expr, Type, Var};
use griffinfly_ir::loops::{Attention, Loop};
use griffinfly_ir::target::Target;
use std::f32::consts::LN_2;

/// Invocations per workgroup of the second dispatch.
const INVOCATIONS: u32 = 64;

/// What parts leave behind, by part, head, query.
#[derive(Clone, Copy)]
pub(super) struct Scratch<'b> {
    /// Quadruples of sums.
    sums: Buffer<'b>,
    /// Maximum (to the base 2) and total.
    statistics: Buffer<'b>,
}

impl<'b> Scratch<'b> {
    pub(super) fn new(buffers: &mut Buffers<'b>, access: Access) -> Self {
        Self {
            sums: buffers.scratch(0, Type::F32X4, access),
            statistics: buffers.scratch(1, Type::F32X2, access),
        }
    }
}

/// The part of a workgroup.
#[derive(Clone, Copy)]
pub(super) struct Part<'b> {
    pub(super) scratch: Scratch<'b>,
    pub(super) number: Expr<'b>,
}

impl<'b> Frame<'_, 'b> {
    /// The keys that the block's queries see, as far as they are in the workgroup's part, as (first, end).
    pub(super) fn seen_by_part(&self) -> (Expr<'b>, Expr<'b>) {
        let (start, end) = self.seen();
        let Some(part) = self.part else { return (start, end) };
        let (splits, columns) = (self.geometry.splits, self.geometry.columns);
        let tiles = (end.native_max(start) - start + (splits * columns - 1)) / (splits * columns);
        let first = (start + part.number * tiles * columns).named("part_start");
        (first, (first + tiles * columns).native_min(end).named("part_end"))
    }

    /// Leaves merged sums, maxima and totals of the invocation's rows behind.
    pub(super) fn leave(
        &self,
        part: Part<'b>,
        rows: Rows<'b>,
        (sums, most, totals): (&Sums<'b>, &[Var<'b>], &[Expr<'b>]),
    ) {
        let (b, s, width) = (self.b, self.a.shape, quads(self.width()));
        let heads = (s.batch * s.heads) as u32;
        for (((row, sums), most), total) in self.rows().into_iter().zip(sums).zip(most).zip(totals) {
            let at = rows.first + row;
            b.if_(at.lt(rows.end) & self.lanes_part().0.equals(0_u32), || {
                let slot = (part.number * heads + rows.head) * self.queries + at;
                for (quad, sum) in self.sum_quads().into_iter().zip(sums) {
                    b.if_(quad.lt(width), || part.scratch.sums.store(slot * width + quad, sum.get()));
                }
                b.if_(self.place.1.equals(0_u32), || {
                    part.scratch.statistics.store(slot, b.vector(&[most.get(), *total]));
                });
            });
        }
    }
}

/// The dispatch that puts the parts together: an invocation per quadruple of a row.
pub(super) fn merge(
    l: &Loop,
    (a, geometry): (&Attention, Geometry),
    target: &Target,
) -> Result<Instance, KernelError> {
    let (s, width) = (a.shape, quads(a.shape.width as u32));
    let name = format!("attention merge {}", geometry.splits);
    let b = Builder::new(name.clone(), [INVOCATIONS, 1, 1]);
    let [queries, rows, points] = ["queries", "rows", "points"].map(|name| b.param(name));
    let views = Views::new(l, a, &[0, 1]);
    let mut buffers = Buffers::new((&b, target), l, &[]);
    let scratch = Scratch::new(&mut buffers, Access::Read);
    for (result, view) in &views.results {
        buffers.result(l, *result, sight(view).1.is_some());
    }
    let id = b.flat_global_id().named("id");
    let mut outcome = Ok(());
    b.if_(id.lt(points), || {
        let (row, quad) = ((id / width).named("row"), (id % width).named("quad"));
        let most = b.var("most", f32::MIN);
        b.for_("part", (0_u32, geometry.splits), 1_u32, |part| {
            most.set(most.get().native_max(scratch.statistics.load(part * rows + row).lane(0)));
        });
        let (total, sum) = (b.var("total", 0.0_f32), b.var("sum", b.zero(Type::F32X4)));
        b.for_("part", (0_u32, geometry.splits), 1_u32, |part| {
            let slot = part * rows + row;
            let statistics = scratch.statistics.load(slot);
            let factor = (statistics.lane(0) - most.get()).exp2();
            total.set(statistics.lane(1).fma(factor, total.get()));
            sum.set(scratch.sums.load(slot * width + quad).fma(factor, sum.get()));
        });
        let (head, query, total) = (row / queries, row % queries, total.get());
        // A row that sees nothing has sums of zero.
        let value = sum.get() * (1.0_f32 / total.equals(0.0_f32).select(1.0_f32, total));
        let (y, lse) = (&views.results[0].1, &views.results[1].1);
        let (sight, axes_of_row) = (sight(y), axes(&b, y, head, query));
        let step = if sight.1.is_some() { 4 } else { 1 };
        for e in (0..4).step_by(step) {
            let d = quad * 4 + e as u32;
            let value = if step == 4 { value } else { value.lane(e as u8) };
            b.if_(d.lt(s.width as u32), || {
                let axes = [axes_of_row.as_slice(), &[d]].concat();
                outcome = outcome.clone().and(point::store(&b, &buffers, sight, &axes, &[value]));
            });
        }
        b.if_(quad.equals(0_u32), || {
            let value = most.get() * LN_2 + total.log();
            let stored = point::store(&b, &buffers, (lse, None), &axes(&b, lse, head, query), &[value]);
            outcome = outcome.clone().and(stored);
        });
    });
    outcome?;
    let rows = s.batch * s.heads * s.queries;
    let points = rows as u64 * u64::from(width);
    let parameters = [s.queries, rows, points as usize].map(|n| n as u32).to_vec();
    let groups = fold_groups(points.div_ceil(INVOCATIONS.into()), target)?;
    Draft { name, bindings: buffers.slots(), parameters, groups }.finish(b, target)
}

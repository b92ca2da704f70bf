//! Substituting one body into another: axes, loads and carried values are replaced.

use griffinfly_ir::index::{Bound, Domain, IndexExpr};
use griffinfly_ir::loops::{Body, Load};
use griffinfly_ir::scalar::{ScalarId, ScalarNode};
use griffinfly_ir::types::DType;

/// How a source body is seen from a destination body.
pub(super) struct View<'a> {
    /// For each axis of the source, its value over the destination's axes.
    pub(super) map: &'a [IndexExpr],
    /// Must hold for the source to be meaningful; loads are guarded by it.
    pub(super) guard: &'a [Bound],
    /// Extents of the destination's axes.
    pub(super) extents: &'a [usize],
    /// For each operand of the source, its number in the destination.
    pub(super) operands: &'a [usize],
}

/// Copies `source`'s outputs into `dest` through a view. `known` may supply the value of a load.
pub(super) fn substitute(
    dest: &mut Body,
    source: &Body,
    view: &View<'_>,
    known: &dyn Fn(&Load) -> Option<ScalarId>,
) -> Vec<ScalarId> {
    let domain = Domain { extents: view.extents, bounds: view.guard };
    let roots = source.expr.outputs().to_vec();
    dest.import(source, &roots, &mut |dest, leaf| match leaf {
        ScalarNode::Load(k) => Some(load(dest, source, *k as usize, view, known)),
        ScalarNode::Index(e) => Some(dest.expr.index(e.substitute(view.map, domain))),
        ScalarNode::Within(bounds) => {
            let moved = bounds.iter().map(|b| Bound::new(b.expr.substitute(view.map, domain), b.lo, b.hi));
            let moved: Vec<Bound> = moved.collect();
            Some(dest.expr.within(moved))
        }
        _ => None,
    })
}

fn load(
    dest: &mut Body,
    source: &Body,
    k: usize,
    view: &View<'_>,
    known: &dyn Fn(&Load) -> Option<ScalarId>,
) -> ScalarId {
    let old = &source.loads[k];
    if let Some(value) = known(old) {
        return value;
    }
    let mut access = old.access.substitute(view.map, view.guard, view.extents);
    if let Some(d) = &mut access.dynamic {
        let index = load(dest, source, d.load, view, known);
        if let ScalarNode::Load(n) = *dest.expr.node(index) {
            d.load = n as usize;
        }
    }
    let new = Load { operand: view.operands[old.operand], access };
    let dtype = dtype_of(source, k);
    let n = dest.loads.iter().position(|l| *l == new).unwrap_or_else(|| {
        dest.loads.push(new);
        dest.loads.len() - 1
    });
    dest.expr.load(n, dtype)
}

/// The dtype a load has in its body (index loads that no expression names are `i32`).
fn dtype_of(body: &Body, k: usize) -> DType {
    let node = ScalarNode::Load(k as u32);
    let found = body.expr.nodes().iter().position(|n| *n == node);
    found.map_or(DType::I32, |i| body.expr.dtype(ScalarId(i as u32)))
}

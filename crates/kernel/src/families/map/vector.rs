//! Four neighbouring elements per invocation through 128-bit accesses.
//!
//! Possible when the domain can be cut into quadruples along its innermost moving axis such that every access is either a
//! quadruple at a multiple of four (innermost axis with stride 1, everything else a multiple of 4) or the same element for
//! all four, every guard and index value is the same for all four, and each operand is used in one of the two ways only.
//! A map whose accesses all are in place or constant is first seen as one flat axis, so that only its element count must
//! divide.

use super::Plan;
use crate::families::emit::{self, flat_axis};
use crate::kir::Lanes;
use griffinfly_ir::index::{Atom, Bound, Domain, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Loop, Map};
use griffinfly_ir::scalar::ScalarNode;
use griffinfly_ir::types::TensorType;

const LANES: i64 = 4;

/// The map in quadruples, if it can be.
pub(super) fn plan(l: &Loop, map: &Map) -> Option<Plan> {
    let mut plan = super::scalar_plan(l, map);
    if let Some((domain, body, stores)) = flattened(l, map) {
        plan.types = flat_types(&l.operands);
        plan.results = flat_types(&l.results);
        (plan.domain, plan.body, plan.stores) = (domain, body, stores);
    }
    let domain = plan.domain.clone();
    let axis = domain.iter().rposition(|extent| *extent > 1)?;
    let cut = Cut { axis, domain: &domain };
    if !domain[axis].is_multiple_of(LANES as usize) || !cut.is_uniform(&plan.body) {
        return None;
    }
    plan.lanes = LANES as u32;
    plan.domain[axis] /= LANES as usize;
    for operand in cut.loads(&mut plan.body, &plan.types)? {
        plan.elements[operand] = plan.elements[operand].with_lanes(Lanes::Four);
        narrow(&mut plan.types[operand])?;
    }
    for store in &mut plan.stores {
        store.coords = cut.coords(&store.coords, plan.results[store.result].dims.last())?;
    }
    plan.results.iter_mut().try_for_each(narrow)?;
    Some(plan)
}

/// The type seen as quadruples along its innermost dimension.
fn narrow(ty: &mut TensorType) -> Option<()> {
    let last = ty.dims.last_mut()?;
    (last.is_multiple_of(LANES as usize)).then(|| *last /= LANES as usize)
}

fn flat_types(types: &[TensorType]) -> Vec<TensorType> {
    types.iter().map(|ty| TensorType::new(ty.dtype, [ty.elements()])).collect()
}

/// The map over one flat axis, if every access is in place or of one element and nothing else depends on the point.
fn flattened(l: &Loop, map: &Map) -> Option<(Vec<usize>, Body, Vec<Store>)> {
    let row_major = flat_axis(0, &map.domain);
    let flat = |offset: &IndexExpr| {
        let offset = emit::squeezed(offset, &map.domain);
        let is_in_place = offset == row_major;
        is_in_place.then(|| IndexExpr::axis(0)).or_else(|| offset.as_constant().map(IndexExpr::constant))
    };
    let depends = |node: &ScalarNode| matches!(node, ScalarNode::Index(_) | ScalarNode::Within(_));
    if map.body.expr.nodes().iter().any(depends) {
        return None;
    }
    let mut body = map.body.clone();
    for load in &mut body.loads {
        let access = &mut load.access;
        if !access.valid.is_empty() || access.dynamic.is_some() {
            return None;
        }
        access.coords = vec![flat(&access.offset(&l.operands[load.operand].dims))?];
    }
    let mut stores = map.stores.clone();
    for store in &mut stores {
        store.coords = vec![flat(&IndexExpr::flatten(&store.coords, &l.results[store.result].dims))?];
    }
    Some((vec![map.domain.iter().product()], body, stores))
}

/// The cut of a domain along one axis.
struct Cut<'a> {
    axis: usize,
    domain: &'a [usize],
}

impl Cut<'_> {
    /// Whether guards and index values are the same for all four points.
    fn is_uniform(&self, body: &Body) -> bool {
        let still = |bounds: &[Bound]| bounds.iter().all(|b| !b.expr.uses(self.axis));
        body.loads.iter().all(|load| still(&load.access.valid))
            && body.expr.nodes().iter().all(|node| match node {
                ScalarNode::Index(e) => !e.uses(self.axis),
                ScalarNode::Within(bounds) => still(bounds),
                _ => true,
            })
    }

    /// Rewrites the loads for the cut domain; gives the operands that are read in quadruples.
    fn loads(&self, body: &mut Body, types: &[TensorType]) -> Option<Vec<usize>> {
        let mut is_wide: Vec<Option<bool>> = vec![None; types.len()];
        let mut moves = vec![false; body.loads.len()];
        for k in emit::needed(body) {
            let load = &mut body.loads[k];
            moves[k] = load.access.coords.iter().any(|c| c.uses(self.axis));
            if let Some(dynamic) = &load.access.dynamic
                && (moves[dynamic.load] || dynamic.dimension + 1 == load.access.coords.len())
            {
                return None;
            }
            if *is_wide[load.operand].get_or_insert(moves[k]) != moves[k] {
                return None;
            }
            if moves[k] {
                load.access.coords = self.coords(&load.access.coords, types[load.operand].dims.last())?;
            }
        }
        Some((0..types.len()).filter(|operand| is_wide[*operand] == Some(true)).collect())
    }

    /// Coordinates in quadruples: the innermost one is the cut axis plus multiples of four, the others do not use it.
    fn coords(&self, coords: &[IndexExpr], last_extent: Option<&usize>) -> Option<Vec<IndexExpr>> {
        let (last, others) = coords.split_last()?;
        let fits = last_extent.is_some_and(|extent| *extent as i64 % LANES == 0)
            && last.coefficient(self.axis) == Some(1)
            && last.offset() % LANES == 0
            && others.iter().all(|c| !c.uses(self.axis));
        let aligned =
            |(c, atom): &(i64, Atom)| matches!(atom, Atom::Axis(a) if *a == self.axis) || c % LANES == 0;
        if !fits || !last.terms().iter().all(aligned) {
            return None;
        }
        let map: Vec<IndexExpr> = (0..self.domain.len())
            .map(|a| if a == self.axis { IndexExpr::axis(a).times(LANES) } else { IndexExpr::axis(a) })
            .collect();
        let mut domain = self.domain.to_vec();
        domain[self.axis] /= LANES as usize;
        let quotient = last.substitute(&map, Domain::of(&domain)).div(LANES, Domain::of(&domain));
        Some(others.iter().cloned().chain([quotient]).collect())
    }
}

//! Appending a pointwise loop to the loop whose result it reads.
//!
//! The pointwise loop must read the result through a bijection (in place, reshaped or permuted). Its axes are rewritten over
//! the producer's output axes, its reads of the result become the value at hand, and its results become further results of
//! the producer. Results nobody else reads are no longer written.

use super::pool::Pool;
use super::substitute::{View, substitute};
use crate::lower::{LoopNode, Phase, TensorId};
use griffinfly_ir::index::{Access, Domain, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Loop, LoopKind, Map};

/// What pointwise loops are appended to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Onto {
    /// Pointwise loops that compute again what the forward pass computed.
    Again,
    /// Loops that are not pointwise.
    Others,
    /// All loops.
    All,
}

/// Joins as many pairs as qualify; gives whether any did.
pub(super) fn run(pool: &mut Pool, max_bindings: usize, onto: Onto) -> bool {
    let mut any = false;
    for m in pool.in_order() {
        if let Some((p, joined)) = candidate(pool, m, max_bindings, onto) {
            pool.merge(p, m, joined);
            any = true;
        }
    }
    any
}

/// The loop that `m` can be appended to, and both as one.
fn candidate(pool: &Pool, m: usize, max_bindings: usize, onto: Onto) -> Option<(usize, LoopNode)> {
    let reader = pool.node(m)?;
    let LoopKind::Map(map) = &reader.l.kind else { return None };
    reader.inputs.iter().find_map(|t| {
        let p = pool.producer(*t)?;
        let producer = pool.node(p)?;
        let is_map = matches!(producer.l.kind, LoopKind::Map(_));
        let qualifies = match onto {
            Onto::Again => is_map && pool.is_again(producer),
            Onto::Others => !is_map,
            Onto::All => true,
        };
        if !qualifies || !may_join(pool, producer, reader) {
            return None;
        }
        let others: Vec<TensorId> =
            reader.inputs.iter().copied().filter(|o| pool.producer(*o) != Some(p)).collect();
        if pool.depends_on(&others, p) {
            return None;
        }
        let keep: Vec<bool> = producer
            .outputs
            .iter()
            .map(|o| pool.is_root(*o) || pool.consumers(*o).iter().any(|&c| c != m))
            .collect();
        let joined = join(producer, reader, map, &keep)?;
        (joined.bindings() <= max_bindings && joined.l.verify().is_empty()).then_some((p, joined))
    })
}

/// Whether the phases let a reader run with its producer. What the backward pass computes from forward results alone would
/// be computed early and kept; that is only as good as keeping what it is computed from where no pointwise loop, which could
/// compute it itself, reads it.
fn may_join(pool: &Pool, producer: &LoopNode, reader: &LoopNode) -> bool {
    if (producer.phase, reader.phase) != (Phase::Forward, Phase::Backward) {
        return producer.phase == reader.phase;
    }
    let mut readers = reader.outputs.iter().flat_map(|t| pool.consumers(*t)).filter_map(|c| pool.node(*c));
    !pool.is_again(reader) && !readers.any(|n| matches!(n.l.kind, LoopKind::Map(_)))
}

/// Where a producer's outputs are computed: a body over some axes with its stores.
struct Site<'a> {
    body: &'a Body,
    stores: &'a [Store],
    extents: Vec<usize>,
}

fn sites(l: &Loop) -> Vec<Site<'_>> {
    match &l.kind {
        LoopKind::Contract(c) => vec![Site { body: &c.epilogue, stores: &c.stores, extents: c.domain() }],
        LoopKind::Row(r) => vec![
            Site { body: &r.row_body, stores: &r.row_stores, extents: r.rows.clone() },
            Site { body: &r.col_body, stores: &r.col_stores, extents: r.domain() },
        ],
        LoopKind::Map(m) => vec![Site { body: &m.body, stores: &m.stores, extents: m.domain.clone() }],
        _ => Vec::new(),
    }
}

/// The producer with the pointwise loop as part of the site that computes the result it reads.
fn join(producer: &LoopNode, reader: &LoopNode, map: &Map, keep: &[bool]) -> Option<LoopNode> {
    let all = sites(&producer.l);
    let which = all
        .iter()
        .position(|s| s.stores.iter().any(|st| reader.inputs.contains(&producer.outputs[st.result])))?;
    let site = &all[which];
    let read = |i: usize| producer.outputs.iter().position(|t| *t == reader.inputs[i]);
    let stored = |result: usize| site.stores.iter().position(|s| s.result == result);
    let mut axes: Option<Vec<IndexExpr>> = None;
    for load in &map.body.loads {
        let Some(result) = read(load.operand) else { continue };
        let store = &site.stores[stored(result)?];
        let dims = &producer.l.results[result].dims;
        let over_result = invert(&load.access, dims, &map.domain)?;
        let domain = Domain::of(&site.extents);
        let over_site: Vec<IndexExpr> =
            over_result.iter().map(|e| e.substitute(&store.coords, domain)).collect();
        if axes.get_or_insert_with(|| over_site.clone()) != &over_site {
            return None;
        }
    }
    let axes = axes?;
    let mut joined = producer.clone();
    let mut operands = Vec::new();
    for (t, ty) in reader.inputs.iter().zip(&reader.l.operands) {
        operands.push(joined.inputs.len());
        joined.inputs.push(*t);
        joined.l.operands.push(ty.clone());
    }
    let mut body = site.body.clone();
    let values = site.body.expr.outputs();
    let view = View { map: &axes, guard: &[], extents: &site.extents, operands: &operands };
    let made = substitute(&mut body, &map.body, &view, &|load| {
        read(load.operand).and_then(stored).map(|s| values[s])
    });
    let mut stores = site.stores.to_vec();
    let mut outputs = values.to_vec();
    for (value, store) in made.into_iter().zip(&map.stores) {
        let coords = store.coords.iter().map(|c| c.substitute(&axes, Domain::of(&site.extents))).collect();
        stores.push(Store { result: joined.outputs.len(), coords });
        joined.outputs.push(reader.outputs[store.result]);
        joined.l.results.push(reader.l.results[store.result].clone());
        outputs.push(value);
    }
    body.expr.set_outputs(outputs);
    set_site(&mut joined.l, which, body, stores);
    joined.labels.extend(reader.labels.iter().cloned());
    drop_results(&mut joined, keep);
    joined.compact();
    Some(joined)
}

fn set_site(l: &mut Loop, which: usize, body: Body, stores: Vec<Store>) {
    match (&mut l.kind, which) {
        (LoopKind::Contract(c), _) => (c.epilogue, c.stores) = (body, stores),
        (LoopKind::Map(m), _) => (m.body, m.stores) = (body, stores),
        (LoopKind::Row(r), 0) => (r.row_body, r.row_stores) = (body, stores),
        (LoopKind::Row(r), _) => (r.col_body, r.col_stores) = (body, stores),
        _ => {}
    }
}

/// Stops writing the results that are not kept (those beyond `keep` stay).
pub(super) fn drop_results(node: &mut LoopNode, keep: &[bool]) {
    let kept: Vec<usize> =
        (0..node.outputs.len()).filter(|&r| keep.get(r).copied().unwrap_or(true)).collect();
    let place = |r: usize| kept.iter().position(|k| *k == r);
    let filter = |body: &mut Body, stores: &mut Vec<Store>| {
        let pairs: Vec<_> = stores
            .iter()
            .zip(body.expr.outputs())
            .filter_map(|(s, o)| place(s.result).map(|r| (Store { result: r, coords: s.coords.clone() }, *o)))
            .collect();
        body.expr.set_outputs(pairs.iter().map(|p| p.1).collect());
        *stores = pairs.into_iter().map(|p| p.0).collect();
    };
    match &mut node.l.kind {
        LoopKind::Contract(c) => filter(&mut c.epilogue, &mut c.stores),
        LoopKind::Row(r) => {
            filter(&mut r.row_body, &mut r.row_stores);
            filter(&mut r.col_body, &mut r.col_stores);
        }
        LoopKind::Map(m) => filter(&mut m.body, &mut m.stores),
        _ => {}
    }
    node.outputs = kept.iter().map(|&r| node.outputs[r]).collect();
    node.l.results = kept.iter().map(|&r| node.l.results[r].clone()).collect();
}

/// For an access that reads every element of a tensor exactly once, the domain's axes over the tensor's axes.
fn invert(access: &Access, dims: &[usize], domain: &[usize]) -> Option<Vec<IndexExpr>> {
    if !access.valid.is_empty() || access.dynamic.is_some() {
        return None;
    }
    let (elements, points): (usize, usize) = (dims.iter().product(), domain.iter().product());
    if elements != points {
        return None;
    }
    // Order-preserving: the flat positions agree.
    let own = IndexExpr::flatten(&axes(domain), domain);
    if without_unit_axes(&IndexExpr::flatten(&access.coords, dims), domain) == without_unit_axes(&own, domain)
    {
        let flat = IndexExpr::flatten(&axes(dims), dims);
        return Some(flat.unflatten(domain, Domain::of(dims)));
    }
    // Permuted: each coordinate is one axis.
    let mut inverse = vec![IndexExpr::constant(0); domain.len()];
    let mut seen = vec![false; domain.len()];
    for (d, c) in access.coords.iter().enumerate().filter(|(d, _)| dims[*d] > 1) {
        let a = c.as_axis()?;
        if std::mem::replace(&mut seen[a], true) || domain[a] != dims[d] {
            return None;
        }
        inverse[a] = IndexExpr::axis(d);
    }
    Some(inverse)
}

/// The expression with axes of extent 1 replaced by 0.
pub(super) fn without_unit_axes(e: &IndexExpr, domain: &[usize]) -> IndexExpr {
    let axis = |(a, &d): (usize, &usize)| if d == 1 { IndexExpr::constant(0) } else { IndexExpr::axis(a) };
    let map: Vec<IndexExpr> = domain.iter().enumerate().map(axis).collect();
    e.substitute(&map, Domain::of(domain))
}

fn axes(extents: &[usize]) -> Vec<IndexExpr> {
    (0..extents.len()).map(IndexExpr::axis).collect()
}

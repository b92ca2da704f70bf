//! Inlining a pointwise producer into its readers.
//!
//! A read of the producer's result at `c(p)` becomes the producer's expression with its axes replaced by `c(p)`; where the
//! read was padded, the expression is chosen against the fill value and its loads are guarded. The producer disappears, except
//! that attention of the same pass computes a rotation of its operands itself whoever else reads the result: then it does not
//! wait for it, and the gradients find it done.

use super::INDEX_COST_LIMIT;
use super::pool::Pool;
use super::substitute::{View, substitute};
use crate::lower::{LoopNode, Phase};
use griffinfly_ir::index::{Access, Domain};
use griffinfly_ir::loops::{Attention, Body, LoopKind, Map};
use griffinfly_ir::scalar::ScalarNode;

/// Cost and loads of a producer, other than a view, that attention and what reads its gradients may do on load: a rotary
/// embedding of a part of the elements has 14 and 4.
const ON_LOAD: (usize, usize) = (16, 4);
/// Most queries and keys of such attention. Each key is read for every block of queries and each query for every block of
/// keys, 8 to 48 at a time, and each time costs the loads of the producer: a level saved is worth that for short sequences
/// only, where a kernel waits for its loads more than it computes.
const ON_LOAD_LENGTH: usize = 512;

/// Inlines as many producers as qualify, the last ones first; gives whether any did.
pub(super) fn run(pool: &mut Pool, max_bindings: usize) -> bool {
    let mut any = false;
    for p in pool.in_order().into_iter().rev() {
        if let Some(joined) = candidate(pool, p, max_bindings) {
            joined.into_iter().for_each(|(c, n)| pool.replace(c, n));
            pool.remove(p);
            any = true;
        }
    }
    any
}

/// Lets attention compute what a cheap producer of its own pass does to its operands.
pub(super) fn run_ahead(pool: &mut Pool, max_bindings: usize) {
    for p in pool.in_order().into_iter().rev() {
        let Some(node) = pool.node(p).cloned() else { continue };
        let (LoopKind::Map(map), [out]) = (&node.l.kind, &node.outputs[..]) else { continue };
        for c in pool.consumers(*out).to_vec() {
            let Some(reader) = pool.node(c).filter(|reader| reader.phase == node.phase) else { continue };
            let on_load = matches!(&reader.l.kind, LoopKind::Attention(a) if is_done_on_load(map, a));
            let joined = if on_load { inlined(reader, &node, map, max_bindings) } else { None };
            let Some(joined) = joined else { continue };
            pool.replace(c, joined);
        }
    }
    pool.drop_dead();
}

/// The readers of loop `p` with its expression in place of their reads, if all of them can have it.
fn candidate(pool: &Pool, p: usize, max_bindings: usize) -> Option<Vec<(usize, LoopNode)>> {
    let node = pool.node(p)?;
    let LoopKind::Map(map) = &node.l.kind else { return None };
    let [out] = node.outputs[..] else { return None };
    let readers = pool.consumers(out);
    if pool.is_root(out) || readers.is_empty() || !worth_it(pool, node, map, readers) {
        return None;
    }
    // What the producer reads comes before it and its readers after it: no circle can arise.
    let joined = |&c: &usize| Some((c, inlined(pool.node(c)?, node, map, max_bindings)?));
    readers.iter().map(joined).collect()
}

/// The reader with the producer's expression in place of its reads, if it is sound and has few enough bindings.
fn inlined(reader: &LoopNode, producer: &LoopNode, map: &Map, max_bindings: usize) -> Option<LoopNode> {
    let joined = inline(reader, producer, map)?;
    // Several bodies read what is inlined into several of them, maybe one of them element by element.
    let bindings = if is_view(map) { joined.bindings() } else { super::terms::bindings(&joined) };
    (bindings <= max_bindings && joined.l.verify().is_empty()).then_some(joined)
}

/// Whether a loop does so little to the elements that it moves that any reader can do it.
pub(super) fn is_view(map: &Map) -> bool {
    map.body.expr.cost() <= 4 && map.body.loads.len() <= 1
}

/// Whether recomputing the producer at every read beats writing it once.
fn worth_it(pool: &Pool, node: &LoopNode, map: &Map, readers: &[usize]) -> bool {
    let (arithmetic, loads) = (map.body.expr.cost(), map.body.loads.len());
    let is_view = is_view(map);
    readers.iter().filter_map(|c| pool.node(*c)).all(|reader| {
        if (reader.phase == Phase::Update) != (node.phase == Phase::Update) {
            return false;
        }
        match &reader.l.kind {
            LoopKind::Contract(_) => is_view || follows_attention(pool, node, map),
            LoopKind::Attention(_) => is_view,
            LoopKind::Row(r) => {
                is_view || (readers.len() == 1 && arithmetic <= 8 * usize::from(r.phases.len() < 2) + 8)
            }
            LoopKind::Map(_) => {
                is_view || readers.len() == 1 || (arithmetic <= 8 && loads <= 2 && readers.len() <= 4)
            }
            LoopKind::Scatter(_) => is_view || (readers.len() == 1 && arithmetic <= 8),
            LoopKind::Update(_) => false,
        }
    })
}

/// Whether a producer reads what attention writes, which has no epilogue, and contractions can compute it.
fn follows_attention(pool: &Pool, node: &LoopNode, map: &Map) -> bool {
    let mut before = node.inputs.iter().filter_map(|t| pool.node(pool.producer(*t)?));
    before.any(|n| matches!(&n.l.kind, LoopKind::Attention(a) if is_done_on_load(map, a)))
}

/// Whether attention can compute a producer wherever it reads the result.
fn is_done_on_load(map: &Map, reader: &Attention) -> bool {
    let s = reader.shape;
    map.body.expr.cost() <= ON_LOAD.0
        && map.body.loads.len() <= ON_LOAD.1
        && s.queries.max(s.keys) <= ON_LOAD_LENGTH
}

/// The reader with the producer's expression in place of its reads; `None` where a read cannot be replaced.
fn inline(reader: &LoopNode, producer: &LoopNode, map: &Map) -> Option<LoopNode> {
    let out = producer.outputs[0];
    let mut joined = reader.clone();
    let mut operands = Vec::new();
    for (t, ty) in producer.inputs.iter().zip(&producer.l.operands) {
        operands.push(joined.inputs.len());
        joined.inputs.push(*t);
        joined.l.operands.push(ty.clone());
    }
    let read: Vec<usize> = (0..reader.inputs.len()).filter(|&i| reader.inputs[i] == out).collect();
    let extents: Vec<Vec<usize>> = reader.l.bodies().into_iter().map(|(_, e)| e).collect();
    for (body, extents) in joined.l.bodies_mut().into_iter().zip(&extents) {
        *body = inline_body(body, &read, map, &Context { operands: &operands, extents })?;
    }
    joined.labels.extend(producer.labels.iter().cloned());
    joined.compact();
    let cost = |n: &LoopNode| -> usize {
        let loads = n.l.bodies().into_iter().flat_map(|(b, _)| b.loads.iter()).map(|l| l.access.cost());
        loads.max().unwrap_or(0)
    };
    (cost(&joined) <= INDEX_COST_LIMIT.max(cost(reader))).then_some(joined)
}

struct Context<'a> {
    operands: &'a [usize],
    extents: &'a [usize],
}

fn inline_body(body: &Body, read: &[usize], map: &Map, cx: &Context<'_>) -> Option<Body> {
    let replaced = |operand: usize| read.contains(&operand);
    if !body.loads.iter().any(|l| replaced(l.operand)) {
        return Some(body.clone());
    }
    let by_data = body.loads.iter().any(|l| {
        let index = l.access.dynamic.as_ref().map(|d| &body.loads[d.load]);
        (replaced(l.operand) && l.access.dynamic.is_some()) || index.is_some_and(|i| replaced(i.operand))
    });
    if by_data {
        return None;
    }
    let mut new = Body::new();
    let roots = body.expr.outputs().to_vec();
    let images = new.import(body, &roots, &mut |new, leaf| {
        let ScalarNode::Load(k) = leaf else { return None };
        let load = &body.loads[*k as usize];
        if !replaced(load.operand) {
            return None;
        }
        Some(read_through(new, map, &load.access, cx))
    });
    new.expr.set_outputs(images);
    Some(new)
}

/// The producer's value at the place an access reads.
fn read_through(
    new: &mut Body,
    map: &Map,
    access: &Access,
    cx: &Context<'_>,
) -> griffinfly_ir::scalar::ScalarId {
    // A coordinate over an axis of extent 1 is 0.
    let domain = Domain { extents: cx.extents, bounds: &access.valid };
    let coords: Vec<_> =
        access
            .coords
            .iter()
            .map(|c| {
                if c.range(domain) == (0, 0) {
                    griffinfly_ir::index::IndexExpr::constant(0)
                } else {
                    c.clone()
                }
            })
            .collect();
    let view = View { map: &coords, guard: &access.valid, extents: cx.extents, operands: cx.operands };
    let value = substitute(new, &map.body, &view, &|_| None)[0];
    if access.valid.is_empty() {
        return value;
    }
    let (inside, fill) = (new.expr.within(access.valid.clone()), new.expr.constant(access.fill));
    new.expr.select(inside, value, fill)
}

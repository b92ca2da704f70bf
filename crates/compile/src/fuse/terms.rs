//! Joining contractions over one domain.
//!
//! Where the epilogue of a contraction reads the result of another one in place, both become one loop of several terms: the
//! read becomes a sum at hand (`silu(x G) * (x U)`), or, where the two sums are only added, one sum of both
//! (`p Q + r S`). So the second does not wait for the first, the result in between is written only if others want it, and
//! factors with one left side are read once.

use super::pool::Pool;
use crate::lower::{LoopNode, TensorId};
use griffinfly_ir::index::{Access, Domain, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Contract, LoopKind, Term};
use griffinfly_ir::scalar::{BinaryFn, ScalarExpr, ScalarId, ScalarNode};
use griffinfly_ir::types::DType;

/// Most terms of a loop.
const MOST_TERMS: usize = 4;
/// Most sums: each takes a register tile.
const MOST_SUMS: usize = 2;

/// Joins as many pairs as qualify.
pub(super) fn run(pool: &mut Pool, max_bindings: usize) {
    for second in pool.in_order() {
        let mut at = second;
        while let Some((first, joined)) = candidate(pool, at, max_bindings) {
            pool.merge(first, at, joined);
            at = first;
        }
    }
}

/// An earlier contraction whose result the epilogue of loop `y` reads, and both as one.
fn candidate(pool: &Pool, y: usize, max_bindings: usize) -> Option<(usize, LoopNode)> {
    let reader = pool.node(y)?;
    let LoopKind::Contract(contract) = &reader.l.kind else { return None };
    contract.epilogue.operands().into_iter().find_map(|operand| {
        let x = pool.producer(reader.inputs[operand])?;
        let producer = pool.node(x)?;
        if producer.phase != reader.phase {
            return None;
        }
        let others = |t: &&TensorId| !producer.outputs.contains(t);
        let others: Vec<TensorId> = reader.inputs.iter().filter(others).copied().collect();
        if pool.depends_on(&others, x) {
            return None;
        }
        let wanted = |t: &TensorId| pool.is_root(*t) || pool.consumers(*t).iter().any(|c| *c != y);
        let keep: Vec<bool> = producer.outputs.iter().map(wanted).collect();
        let joined = join(producer, reader, &keep)?;
        (bindings(&joined) <= max_bindings && joined.l.verify().is_empty()).then_some((x, joined))
    })
}

/// Bindings of a contraction; an operand that several bodies read may be bound once as scalars and once as quadruples.
pub(super) fn bindings(node: &LoopNode) -> usize {
    let readers = |operand: usize| {
        let bodies = node.l.bodies();
        bodies.iter().filter(|(body, _)| body.operands().contains(&operand)).count()
    };
    node.bindings() + (0..node.inputs.len()).filter(|operand| readers(*operand) > 1).count()
}

/// The reader with the producer's terms; `keep` tells which results of the producer are still written.
fn join(producer: &LoopNode, reader: &LoopNode, keep: &[bool]) -> Option<LoopNode> {
    let (LoopKind::Contract(x), LoopKind::Contract(y)) = (&producer.l.kind, &reader.l.kind) else {
        return None;
    };
    if x.domain() != y.domain() || (x.batch.len(), x.m.len()) != (y.batch.len(), y.m.len()) {
        return None;
    }
    // The results of the producer are read in the epilogue alone.
    let read = |operand: usize| producer.outputs.iter().position(|t| *t == reader.inputs[operand]);
    let factors = y.terms().flat_map(|(_, a, b, _)| [a, b]);
    if factors.flat_map(|body| &body.loads).any(|load| read(load.operand).is_some()) {
        return None;
    }
    let mut joined = reader.clone();
    let shift = joined.inputs.len();
    joined.inputs.extend(&producer.inputs);
    joined.l.operands.extend(producer.l.operands.iter().cloned());
    let moved = |body: &Body| {
        let mut body = body.clone();
        body.loads.iter_mut().for_each(|load| load.operand += shift);
        body
    };
    let epilogue = moved(&x.epilogue);
    let mut both = Body::new();
    let values = both.import(&epilogue, epilogue.expr.outputs(), &mut |new, leaf| match leaf {
        ScalarNode::Carry(k) => Some(new.expr.carry(*k as usize + y.sums(), DType::F32)),
        _ => None,
    });
    let mut fits = true;
    let mut outputs = both.import(&y.epilogue, y.epilogue.expr.outputs(), &mut |_, leaf| {
        let ScalarNode::Load(k) = leaf else { return None };
        let load = &y.epilogue.loads[*k as usize];
        let result = read(load.operand)?;
        let at = x.stores.iter().position(|store| store.result == result)?;
        fits &= is_in_place(&load.access, &x.stores[at], (&producer.l.results[result].dims, &y.domain()));
        Some(values[at])
    });
    let mut stores = y.stores.clone();
    for (store, value) in x.stores.iter().zip(&values).filter(|(store, _)| keep[store.result]) {
        stores.push(Store { result: joined.outputs.len(), coords: store.coords.clone() });
        joined.outputs.push(producer.outputs[store.result]);
        joined.l.results.push(producer.l.results[store.result].clone());
        outputs.push(*value);
    }
    both.expr.set_outputs(outputs);
    let term = |(k, a, b, sum): (&[usize], &Body, &Body, usize)| Term {
        k: k.to_vec(),
        a: moved(a),
        b: moved(b),
        sum: sum + y.sums(),
    };
    let more = y.more.iter().cloned().chain(x.terms().map(term)).collect();
    let mut contract = Contract { more, epilogue: both, stores, ..y.clone() };
    while let Some((body, [kept, gone])) = without_addition(&contract.epilogue) {
        contract.epilogue = body;
        for term in &mut contract.more {
            term.sum = renumbered(term.sum, (kept, gone));
        }
    }
    let (terms, sums) = (contract.more.len() + 1, contract.sums());
    joined.l.kind = LoopKind::Contract(contract);
    joined.labels.extend(producer.labels.iter().cloned());
    joined.compact();
    // An id that the producer makes is loaded by its access and not by the expression.
    let fits = fits && !joined.inputs.iter().any(|t| producer.outputs.contains(t));
    (fits && terms <= MOST_TERMS && sums <= MOST_SUMS).then_some(joined)
}

/// The number of a sum when the sum `gone` has become part of `kept`.
fn renumbered(sum: usize, (kept, gone): (usize, usize)) -> usize {
    match sum {
        sum if sum == gone => kept,
        sum if sum > gone => sum - 1,
        sum => sum,
    }
}

/// Whether an access reads at every point what a store puts there.
fn is_in_place(access: &Access, store: &Store, (dims, domain): (&[usize], &[usize])) -> bool {
    let same = |e: &IndexExpr| {
        // Axes of extent 1 are 0.
        let axis =
            |(a, &n): (usize, &usize)| if n == 1 { IndexExpr::constant(0) } else { IndexExpr::axis(a) };
        let axes: Vec<IndexExpr> = domain.iter().enumerate().map(axis).collect();
        e.substitute(&axes, Domain::of(domain))
    };
    access.valid.is_empty()
        && access.dynamic.is_none()
        && same(&access.offset(dims)) == same(&IndexExpr::flatten(&store.coords, dims))
}

/// The body without the addition of one of two sums that are only added up, with each other and with what else there is: the
/// later one has become part of the earlier one. Gives the numbers of both.
fn without_addition(body: &Body) -> Option<(Body, [usize; 2])> {
    let expr = &body.expr;
    let live = expr.reachable(expr.outputs());
    let (mut uses, mut user) = (vec![0; expr.nodes().len()], vec![0; expr.nodes().len()]);
    for (i, node) in expr.nodes().iter().enumerate().filter(|(i, _)| live[*i]) {
        for id in node.arguments() {
            uses[id.index()] += 1;
            user[id.index()] = i;
        }
    }
    expr.outputs().iter().for_each(|id| uses[id.index()] += 2);
    // The last of the additions that a value goes through.
    let is_addition = |i: usize| matches!(expr.nodes()[i], ScalarNode::Binary(BinaryFn::Add, ..));
    let total = |mut i: usize| {
        while uses[i] == 1 && is_addition(user[i]) {
            i = user[i];
        }
        i
    };
    let sums = expr.nodes().iter().enumerate().filter_map(|(i, node)| match node {
        ScalarNode::Carry(k) if live[i] && total(i) != i => Some((*k as usize, i, total(i))),
        _ => None,
    });
    let sums: Vec<(usize, usize, usize)> = sums.collect();
    let pair = |(k, i, end): &(usize, usize, usize)| {
        let first = sums.iter().filter(|(j, _, other)| j < k && other == end).map(|(j, ..)| *j).min()?;
        Some((user[*i], *i, first, *k))
    };
    let (at, dropped, kept, gone) = sums.iter().find_map(pair)?;
    let mut new = ScalarExpr::new();
    let mut images: Vec<ScalarId> = Vec::with_capacity(expr.nodes().len());
    for (i, node) in expr.nodes().iter().enumerate() {
        let image = |id: &ScalarId| images[id.index()];
        images.push(match node {
            ScalarNode::Binary(_, x, y) if i == at => image(if x.index() == dropped { y } else { x }),
            ScalarNode::Const(value) => new.constant(*value),
            ScalarNode::Load(k) => new.load(*k as usize, expr.dtype(ScalarId(i as u32))),
            ScalarNode::Carry(k) => new.carry(renumbered(*k as usize, (kept, gone)), DType::F32),
            ScalarNode::Index(e) => new.index(e.clone()),
            ScalarNode::Within(bounds) => new.within(bounds.clone()),
            ScalarNode::Unary(f, x) => new.unary(*f, image(x)),
            ScalarNode::Binary(f, x, y) => new.binary(*f, image(x), image(y)),
            ScalarNode::Select(c, x, y) => new.select(image(c), image(x), image(y)),
            ScalarNode::Cast(dtype, x) => new.cast(*dtype, image(x)),
        });
    }
    new.set_outputs(expr.outputs().iter().map(|id| images[id.index()]).collect());
    Some((Body { loads: body.loads.clone(), expr: new }.pruned(), [kept, gone]))
}

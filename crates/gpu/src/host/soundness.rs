//! What a loop must satisfy before it is planned, beyond `Loop::verify`: a program may come from a file.
//!
//! Checked before the verifier runs: no empty or absurd extents, index expressions over existing axes with positive
//! divisors, outputs that exist. Checked besides it: counts and dtypes of reductions, factors, segments.

use griffinfly_ir::index::{Atom, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Combine, Loop, LoopKind};
use griffinfly_ir::scalar::ScalarNode;
use griffinfly_ir::types::{DType, MAX_ELEMENTS};

/// Points of a domain at most: flat indices stay far from overflow.
const MAX_POINTS: usize = if usize::BITS > 48 { 1 << (usize::BITS - 16) } else { 1 << (usize::BITS - 2) };

/// Faults of a loop, as one sentence.
///
/// # Errors
/// The first fault, in words.
pub(super) fn check(l: &Loop) -> Result<(), String> {
    for ty in l.operands.iter().chain(&l.results) {
        ty.check()?;
    }
    for (i, (body, extents)) in l.bodies().into_iter().enumerate() {
        points(&extents).and_then(|_| check_body(body, &extents)).map_err(|e| format!("body {i}: {e}"))?;
    }
    check_kind(l)?;
    match l.verify().into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

fn points(extents: &[usize]) -> Result<usize, String> {
    let points =
        extents.iter().try_fold(1usize, |n, &e| n.checked_mul(e)).filter(|n| (1..=MAX_POINTS).contains(n));
    points.ok_or_else(|| format!("a domain of {extents:?} is empty or too large"))
}

fn check_index(e: &IndexExpr, axes: usize) -> Result<(), String> {
    e.terms().iter().try_for_each(|(_, atom)| match atom {
        Atom::Axis(a) if *a < axes => Ok(()),
        Atom::Div(e, n) | Atom::Mod(e, n) if *n > 0 => check_index(e, axes),
        _ => Err(format!("{e} has a missing axis or a divisor that is not positive")),
    })
}

fn check_body(body: &Body, extents: &[usize]) -> Result<(), String> {
    let axes = extents.len();
    let nodes = body.expr.nodes();
    if let Some(o) = body.expr.outputs().iter().find(|o| o.index() >= nodes.len()) {
        return Err(format!("output {} is missing", o.index()));
    }
    for (i, node) in nodes.iter().enumerate() {
        if node.arguments().iter().any(|a| a.index() >= i) {
            return Err(format!("scalar node {i} refers to a later node"));
        }
        match node {
            ScalarNode::Index(e) => check_index(e, axes)?,
            ScalarNode::Within(b) => b.iter().try_for_each(|b| check_index(&b.expr, axes))?,
            _ => {}
        }
    }
    for (k, load) in body.loads.iter().enumerate() {
        let exprs = load.access.coords.iter().chain(load.access.valid.iter().map(|b| &b.expr));
        exprs.into_iter().try_for_each(|e| check_index(e, axes))?;
        if load.access.dynamic.as_ref().is_some_and(|d| d.load >= k) {
            return Err(format!("load {k} takes a coordinate from a later load"));
        }
    }
    Ok(())
}

fn check_stores(stores: &[Store], axes: usize) -> Result<(), String> {
    stores.iter().flat_map(|s| &s.coords).try_for_each(|c| check_index(c, axes))
}

fn outputs(body: &Body, n: usize, what: &str) -> Result<(), String> {
    let found = body.expr.outputs().len();
    if found == n { Ok(()) } else { Err(format!("{what} has {found} outputs instead of {n}")) }
}

fn check_kind(l: &Loop) -> Result<(), String> {
    match &l.kind {
        LoopKind::Map(m) => check_stores(&m.stores, m.domain.len()),
        LoopKind::Row(r) => {
            check_stores(&r.row_stores, r.rows.len())?;
            check_stores(&r.col_stores, r.rows.len() + r.cols.len())?;
            for (i, p) in r.phases.iter().enumerate() {
                outputs(&p.body, p.combines.len(), &format!("phase {i}"))?;
                let bools = p.body.expr.outputs().iter().map(|o| p.body.expr.dtype(*o) == DType::Bool);
                let plain = |c: &Combine| matches!(c, Combine::Sum | Combine::Max | Combine::Min);
                if p.combines.iter().zip(bools).any(|(c, b)| b && plain(c)) {
                    return Err(format!("phase {i} combines truth values"));
                }
            }
            Ok(())
        }
        LoopKind::Contract(c) => {
            points(&[c.domain(), c.k.clone()].concat())?;
            check_stores(&c.stores, c.domain().len())?;
            outputs(&c.a, 1, "the left factor")?;
            outputs(&c.b, 1, "the right factor")
        }
        LoopKind::Scatter(s) => {
            outputs(&s.ids, 1, "the id")?;
            outputs(&s.source, 1, "the source")?;
            let elements = s.cols.iter().try_fold(s.rows, |n, &c| n.checked_mul(c));
            match l.results.as_slice() {
                [ty] if Some(ty.elements()) == elements && ty.dtype == DType::F32 => Ok(()),
                _ => Err(format!("a scatter of {} rows of {:?} does not fill its result", s.rows, s.cols)),
            }
        }
        LoopKind::Update(_) => check_update(l),
        LoopKind::Attention(a) => {
            let stores = a.stores.iter().zip(a.domains());
            stores.into_iter().try_for_each(|(s, e)| check_stores(std::slice::from_ref(s), e.len()))
        }
    }
}

fn check_update(l: &Loop) -> Result<(), String> {
    let LoopKind::Update(u) = &l.kind else { return Ok(()) };
    let n = u.body.expr.outputs().len();
    let lanes = u.segments.len().checked_mul(u.lanes).filter(|n| *n <= l.operands.len());
    if lanes.is_none() || u.segments.len().checked_mul(n) != Some(l.results.len()) {
        return Err(format!("an update of {} segments does not fit its tensors", u.segments.len()));
    }
    for (s, &elements) in u.segments.iter().enumerate() {
        let operands = &l.operands[s * u.lanes..(s + 1) * u.lanes];
        let results = &l.results[s * n..(s + 1) * n];
        let sizes = operands.iter().chain(results).all(|t| t.elements() == elements);
        if !sizes || !(1..=MAX_ELEMENTS).contains(&elements) {
            return Err(format!("segment {s} has {elements} elements, its tensors do not"));
        }
        let first = &l.operands[..u.lanes];
        let same = operands.iter().zip(first).all(|(a, b)| a.dtype == b.dtype);
        let mut typed = results.iter().zip(u.body.expr.outputs());
        if !same || typed.any(|(t, o)| u.body.expr.dtype(*o) != t.dtype) {
            return Err(format!("segment {s} has other dtypes than the body"));
        }
    }
    Ok(())
}

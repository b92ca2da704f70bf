//! The loop verifier.
//!
//! Proves: operand and result numbers exist; every access is in range; expressions are well typed and their loads and
//! carries exist with the right dtype; each result is stored exactly once by a bijection with the right dtype.

use super::{Body, Loop, LoopKind};
use crate::index::{Domain, IndexExpr, Store};
use crate::scalar::ScalarNode;
use crate::types::{DType, TensorType};

impl Loop {
    /// All faults, in words; empty for a sound loop.
    #[must_use]
    pub fn verify(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let operands = self.body_operands();
        for (i, (body, extents)) in self.bodies().into_iter().enumerate() {
            let carries = self.carries_of(i);
            check_body(body, &operands, &extents, &carries, &mut |f| faults.push(format!("body {i}: {f}")));
        }
        let mut stored = vec![0; self.results.len()];
        for (body, extents, stores) in self.stores() {
            if body.expr.outputs().len() != stores.len() {
                faults.push(format!("{} outputs for {} stores", body.expr.outputs().len(), stores.len()));
            }
            for (s, o) in stores.iter().zip(body.expr.outputs()) {
                let Some(ty) = self.results.get(s.result) else {
                    faults.push(format!("store to missing result {}", s.result));
                    continue;
                };
                stored[s.result] += 1;
                if body.expr.dtype(*o) != ty.dtype {
                    faults.push(format!("result {} is {ty}, stored {}", s.result, body.expr.dtype(*o)));
                }
                check_store(s, &ty.dims, &extents, &mut faults);
            }
        }
        if let LoopKind::Attention(a) = &self.kind {
            faults.extend(a.faults());
            for (s, extents) in a.stores.iter().zip(a.domains()) {
                match self.results.get(s.result) {
                    Some(ty) if ty.dtype == DType::F32 => {
                        stored[s.result] += 1;
                        check_store(s, &ty.dims, &extents, &mut faults);
                    }
                    other => faults.push(format!("store of f32 to result {}, which is {other:?}", s.result)),
                }
            }
        }
        if let LoopKind::Contract(c) = &self.kind {
            let mut sums = 1;
            for (i, term) in c.more.iter().enumerate() {
                if term.sum > sums {
                    faults.push(format!("term {} adds to sum {} of {sums}", i + 1, term.sum));
                }
                sums = sums.max(term.sum + 1);
            }
            // The factor of a further term may be the same body as the first, whose second output counts once.
            for (i, (_, a, b, _)) in c.terms().enumerate() {
                let counts = [a, b].map(|body| body.expr.outputs().len());
                if !(counts == [1, 1] || (counts == [2, 1] && *a == c.a)) {
                    faults.push(format!("term {i} has factors of {counts:?} outputs"));
                }
            }
        }
        let implicit = matches!(self.kind, LoopKind::Scatter(_) | LoopKind::Update(_));
        if !implicit {
            let bad = stored.iter().enumerate().filter(|(_, n)| **n != 1);
            faults.extend(bad.map(|(r, n)| format!("result {r} is stored {n} times")));
        }
        faults
    }

    /// Operand types as the bodies see them.
    fn body_operands(&self) -> Vec<TensorType> {
        let LoopKind::Update(u) = &self.kind else { return self.operands.clone() };
        let longest = u.segments.iter().copied().max().unwrap_or(1);
        let shared = u.segments.len() * u.lanes;
        let lanes = self.operands.iter().take(u.lanes).map(|t| TensorType::new(t.dtype, [longest]));
        lanes.chain(self.operands.iter().skip(shared).cloned()).collect()
    }

    fn carries_of(&self, body: usize) -> Vec<DType> {
        match &self.kind {
            LoopKind::Row(r) => {
                let before: usize =
                    r.phases.iter().take(body).flat_map(|p| &p.combines).map(|c| c.carries()).sum();
                r.carries().into_iter().take(before).collect()
            }
            LoopKind::Contract(c) if body == 2 + 2 * c.more.len() => vec![DType::F32; c.carries()],
            _ => Vec::new(),
        }
    }

    fn stores(&self) -> Vec<(&Body, Vec<usize>, &[Store])> {
        match &self.kind {
            LoopKind::Map(m) => vec![(&m.body, m.domain.clone(), &m.stores)],
            LoopKind::Row(r) => {
                vec![(&r.row_body, r.rows.clone(), &r.row_stores), (&r.col_body, r.domain(), &r.col_stores)]
            }
            LoopKind::Contract(c) => vec![(&c.epilogue, c.domain(), &c.stores)],
            LoopKind::Scatter(_) | LoopKind::Update(_) | LoopKind::Attention(_) => Vec::new(),
        }
    }
}

fn check_body(
    body: &Body,
    operands: &[TensorType],
    extents: &[usize],
    carries: &[DType],
    fault: &mut dyn FnMut(String),
) {
    body.expr.faults().into_iter().for_each(&mut *fault);
    for (k, load) in body.loads.iter().enumerate() {
        let Some(ty) = operands.get(load.operand) else {
            fault(format!("load {k} reads missing operand {}", load.operand));
            continue;
        };
        if let Err(e) = load.access.verify(&ty.dims, extents) {
            fault(format!("load {k} of {ty}: {e}"));
        }
        if !load.access.valid.is_empty() && load.access.fill.dtype() != ty.dtype {
            fault(format!("load {k} of {ty} is {:?} outside", load.access.fill));
        }
        if let Some(d) = &load.access.dynamic
            && (d.load >= k || d.dimension >= ty.rank())
        {
            fault(format!("load {k} takes coordinate {} from load {}", d.dimension, d.load));
        }
    }
    for (i, node) in body.expr.nodes().iter().enumerate() {
        let dtype = body.expr.dtype(crate::scalar::ScalarId(i as u32));
        let rank = match node {
            ScalarNode::Index(e) => e.rank(),
            ScalarNode::Within(bounds) => bounds.iter().map(|b| b.expr.rank()).max().unwrap_or(0),
            _ => 0,
        };
        if rank > extents.len() {
            fault(format!(
                "scalar node {i}: {node:?} names an axis beyond the {} of the domain",
                extents.len()
            ));
        }
        let known = match node {
            ScalarNode::Load(k) => {
                body.loads.get(*k as usize).and_then(|l| operands.get(l.operand)).map(|t| t.dtype)
            }
            ScalarNode::Carry(k) => carries.get(*k as usize).copied(),
            _ => Some(dtype),
        };
        if known != Some(dtype) {
            fault(format!("scalar node {i}: {node:?} is {dtype}, its source {known:?}"));
        }
    }
}

/// A store must be a bijection of its domain onto the result.
fn check_store(s: &Store, dims: &[usize], extents: &[usize], faults: &mut Vec<String>) {
    if let Some(c) = s.coords.iter().find(|c| c.rank() > extents.len()) {
        faults.push(format!("store coordinate {c} names an axis beyond the {} of the domain", extents.len()));
        return;
    }
    let elements: usize = dims.iter().product();
    let points: usize = extents.iter().product();
    if s.coords.len() != dims.len() || elements != points {
        faults.push(format!("store of {points} points into {dims:?} with {} coordinates", s.coords.len()));
        return;
    }
    let flat = IndexExpr::flatten(&s.coords, dims);
    if !is_mixed_radix(&flat, extents) && !is_permutation(&s.coords, dims, extents) {
        faults.push(format!("store to result {} is not a bijection: {flat}", s.result));
    }
}

/// Affine with coefficients that, sorted, are the running products of their extents: a bijection onto `0..n`.
fn is_mixed_radix(flat: &IndexExpr, extents: &[usize]) -> bool {
    let mut factors: Vec<(i64, usize)> = Vec::new();
    for (a, &e) in extents.iter().enumerate().filter(|(_, e)| **e > 1) {
        match flat.coefficient(a) {
            Some(c) => factors.push((c, e)),
            None => return false,
        }
    }
    factors.sort_unstable();
    let mut next = 1;
    for (c, e) in factors {
        if c != next {
            return false;
        }
        next *= e as i64;
    }
    flat.offset() == 0 && flat.is_affine()
}

/// The general case, decided by enumeration for domains of up to 2^16 points and refused above.
fn is_permutation(coords: &[IndexExpr], dims: &[usize], extents: &[usize]) -> bool {
    let points: usize = extents.iter().product();
    if points > 1 << 16 {
        return false;
    }
    let domain = Domain::of(extents);
    let in_range = coords.iter().zip(dims).all(|(c, &d)| {
        let (lo, hi) = c.range(domain);
        lo >= 0 && hi < d as i64
    });
    if !in_range {
        return false;
    }
    let flat = IndexExpr::flatten(coords, dims);
    let strides = crate::types::strides(extents);
    let mut seen = vec![false; points];
    (0..points).all(|i| {
        let p: Vec<usize> = extents.iter().zip(&strides).map(|(e, s)| i / s % e).collect();
        let at = flat.eval(&p) as usize;
        at < points && !std::mem::replace(&mut seen[at], true)
    })
}

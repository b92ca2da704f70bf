//! Scaling the rows of a product instead of its left factor.
//!
//! Where a row loop multiplies its elements by a factor that depends on a sum along the row alone, as RMS norm does, and a
//! contraction sums products of these elements along the same axis,
//! `sum over k of (x(m, k) g(k) r(m)) b(n, k) = r(m) sum over k of (x(m, k) g(k)) b(n, k)`: the contraction reads what the row
//! loop reads, sums for every row what that sums, and its epilogue multiplies by the factor. So it does not wait for the row
//! loop, which is gone if nobody else wants its results.
//!
//! Invariants: values stay the same but for rounding as long as the products without the factor are finite; only what is
//! multiplied qualifies, for a mean that is subtracted after the product would cancel.

use super::epilogue::drop_results;
use super::pool::Pool;
use super::substitute::{View, substitute};
use crate::lower::{LoopNode, TensorId};
use griffinfly_ir::index::{Access, Domain, IndexExpr};
use griffinfly_ir::loops::{Body, Combine, Contract, LoopKind, Row};
use griffinfly_ir::scalar::{BinaryFn, ScalarExpr, ScalarId, ScalarNode};
use griffinfly_ir::types::{DType, TensorType};

/// Loads of an element, and arithmetic of it and of what is summed: every tile of columns does them again.
const MOST_LOADS: usize = 3;
const MOST_COST: usize = 12;

/// Frees contractions of the row loops that they wait for, as far as they qualify.
pub(super) fn run(pool: &mut Pool, max_bindings: usize) {
    for i in pool.in_order() {
        let Some(node) = pool.node(i).cloned() else { continue };
        let Some(scaled) = Scaled::new(&node) else { continue };
        for c in pool.consumers(scaled.tensor).to_vec() {
            let reader = pool.node(c).filter(|reader| reader.phase == node.phase);
            let Some(joined) = reader.and_then(|reader| scaled.join(reader)) else { continue };
            if super::terms::bindings(&joined) <= max_bindings && joined.l.verify().is_empty() {
                pool.replace(c, joined);
            }
        }
        drop_unread(pool, i);
    }
    pool.drop_dead();
}

/// Stops writing results that nobody reads, of a loop some of whose results are read.
fn drop_unread(pool: &mut Pool, i: usize) {
    let Some(mut node) = pool.node(i).cloned() else { return };
    let is_read = |t: &TensorId| pool.is_root(*t) || !pool.consumers(*t).is_empty();
    let keep: Vec<bool> = node.outputs.iter().map(is_read).collect();
    if keep.contains(&true) && keep.contains(&false) {
        drop_results(&mut node, &keep);
        node.compact();
        pool.replace(i, node);
    }
}

/// A row loop whose only result per element is a product of factors that do not depend on the row's sum and of factors that
/// depend on nothing else.
struct Scaled<'a> {
    node: &'a LoopNode,
    row: &'a Row,
    /// The result and its type.
    tensor: TensorId,
    ty: &'a TensorType,
    /// Factors of an element and of a row, in the body of the columns.
    factors: [Vec<ScalarId>; 2],
}

impl<'a> Scaled<'a> {
    fn new(node: &'a LoopNode) -> Option<Self> {
        let LoopKind::Row(row) = &node.l.kind else { return None };
        let ([phase], [store], [value]) = (&row.phases[..], &row.col_stores[..], row.col_body.expr.outputs())
        else {
            return None;
        };
        let ty = &node.l.results[store.result];
        let is_sum = phase.combines == [Combine::Sum] && row.carries() == [DType::F32];
        // The elements lie in the order of rows and columns.
        let (domain, dims) = (row.domain(), &ty.dims);
        let axes: Vec<IndexExpr> = (0..domain.len()).map(IndexExpr::axis).collect();
        let is_ordered = flat(&store.coords, dims, &domain) == flat(&axes, &domain, &domain);
        let is_cheap = |body: &Body| body.loads.len() <= MOST_LOADS && body.expr.cost() <= MOST_COST;
        let mut factors = [Vec::new(), Vec::new()];
        let is_product = split(&row.col_body.expr, *value, &mut factors);
        let fits = is_sum && ty.dtype == DType::F32 && is_ordered && is_product && !factors[1].is_empty();
        let tensor = node.outputs[store.result];
        let cheap = is_cheap(&phase.body) && row.col_body.loads.len() <= MOST_LOADS;
        (fits && cheap).then_some(Self { node, row, tensor, ty, factors })
    }

    /// A contraction of the elements, as one of what they are made of.
    fn join(&self, reader: &LoopNode) -> Option<LoopNode> {
        let LoopKind::Contract(contract) = &reader.l.kind else { return None };
        let operand = reader.inputs.iter().position(|t| *t == self.tensor)?;
        let left = self.left(contract, operand)?;
        let mut joined = reader.clone();
        let mut operands = Vec::new();
        for (t, ty) in self.node.inputs.iter().zip(&self.node.l.operands) {
            operands.push(joined.inputs.len());
            joined.inputs.push(*t);
            joined.l.operands.push(ty.clone());
        }
        let extents = [contract.batch.as_slice(), &contract.m, &contract.k].concat();
        let view = View { map: &left, guard: &[], extents: &extents, operands: &operands };
        let mut a = Body::new();
        let element =
            Body { expr: outputs(&self.row.col_body.expr, &self.factors[0]), ..self.row.col_body.clone() };
        let element = substitute(&mut a, &element.pruned(), &view, &|_| None);
        let summed = substitute(&mut a, &self.row.phases[0].body, &view, &|_| None);
        let product = product(&mut a.expr, &element);
        a.expr.set_outputs(vec![product, summed[0]]);
        let LoopKind::Contract(c) = &mut joined.l.kind else { return None };
        c.epilogue = self.epilogue(contract);
        c.more.iter_mut().for_each(|term| term.a = a.clone());
        c.a = a;
        joined.labels.extend(self.node.labels.iter().cloned());
        joined.compact();
        Some(joined)
    }

    /// Rows and columns of the elements over the axes of the left factor, if that is the elements in all terms and nothing else
    /// reads them, and if products run through exactly the columns.
    fn left(&self, c: &Contract, operand: usize) -> Option<Vec<IndexExpr>> {
        let reads = |body: &Body| body.operands().contains(&operand);
        let same = c.more.iter().all(|term| term.a == c.a && term.k == c.k && !reads(&term.b));
        if c.has_row_sum() || !same || reads(&c.b) || reads(&c.epilogue) || !c.a.is_move() {
            return None;
        }
        let Access { coords, valid, dynamic, .. } = &c.a.loads[0].access;
        if c.a.loads[0].operand != operand || !valid.is_empty() || dynamic.is_some() {
            return None;
        }
        let extents = [c.batch.as_slice(), &c.m, &c.k].concat();
        let domain = self.row.domain();
        let place = IndexExpr::flatten(coords, &self.ty.dims).unflatten(&domain, Domain::of(&extents));
        let (rows, columns) = place.split_at(self.row.rows.len());
        let first = c.batch.len() + c.m.len();
        let products: Vec<IndexExpr> = (first..extents.len()).map(IndexExpr::axis).collect();
        let is_whole = flat(columns, &self.row.cols, &extents) == flat(&products, &c.k, &extents);
        let count = |extents: &[usize]| extents.iter().product::<usize>();
        let uses_products =
            rows.iter().any(|e| (first..extents.len()).any(|axis| e.uses(axis) && extents[axis] > 1));
        (is_whole && count(&self.row.cols) == count(&c.k) && !uses_products).then_some(place)
    }

    /// The epilogue with its sums times the factors of their rows.
    fn epilogue(&self, c: &Contract) -> Body {
        let (mut new, sums) = (Body::new(), c.sums());
        let rows = new.import(&self.row.col_body, &self.factors[1], &mut |new, leaf| match leaf {
            ScalarNode::Carry(_) => Some(new.expr.carry(sums, DType::F32)),
            _ => None,
        });
        let scale = product(&mut new.expr, &rows);
        let outputs = new.import(&c.epilogue, c.epilogue.expr.outputs(), &mut |new, leaf| match leaf {
            ScalarNode::Carry(k) => {
                let sum = new.expr.carry(*k as usize, DType::F32);
                Some(new.expr.mul(sum, scale))
            }
            _ => None,
        });
        new.expr.set_outputs(outputs);
        new
    }
}

/// A place as one number, with axes of extent 1 as 0.
fn flat(coords: &[IndexExpr], dims: &[usize], domain: &[usize]) -> IndexExpr {
    super::epilogue::without_unit_axes(&IndexExpr::flatten(coords, dims), domain)
}

/// Sorts the factors of a product into those without a carry and those of carries and constants alone; `false` where one is
/// neither.
fn split(expr: &ScalarExpr, value: ScalarId, factors: &mut [Vec<ScalarId>; 2]) -> bool {
    let live = expr.reachable(&[value]);
    let any = |kind: fn(&ScalarNode) -> bool| {
        expr.nodes().iter().zip(&live).any(|(node, live)| *live && kind(node))
    };
    let has_carry = any(|node| matches!(node, ScalarNode::Carry(_)));
    let has_element =
        any(|node| matches!(node, ScalarNode::Load(_) | ScalarNode::Index(_) | ScalarNode::Within(_)));
    match expr.node(value) {
        _ if !has_carry => factors[0].push(value),
        _ if !has_element => factors[1].push(value),
        ScalarNode::Binary(BinaryFn::Mul, x, y) => {
            return split(expr, *x, factors) && split(expr, *y, factors);
        }
        _ => return false,
    }
    true
}

/// The expression with other outputs.
fn outputs(expr: &ScalarExpr, values: &[ScalarId]) -> ScalarExpr {
    let mut expr = expr.clone();
    expr.set_outputs(values.to_vec());
    expr
}

fn product(expr: &mut ScalarExpr, factors: &[ScalarId]) -> ScalarId {
    let mut factors = factors.iter().copied();
    let Some(first) = factors.next() else { return expr.f32(1.0) };
    factors.fold(first, |x, y| expr.mul(x, y))
}

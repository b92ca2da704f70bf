//! How much arithmetic a loop is, for reports.
//!
//! Counted are operations on values, not on addresses: a multiply-add of a product is two, every node of a scalar
//! expression is one, and a pair of attention is what its products need. What a kernel computes more than once counts once.

use super::{Attention, AttentionVariant, Body, Loop, LoopKind};
use crate::scalar::ScalarNode;

impl Loop {
    /// Arithmetic operations on values.
    #[must_use]
    pub fn operations(&self) -> u64 {
        match &self.kind {
            LoopKind::Map(m) => points(&m.domain) * of_body(&m.body),
            LoopKind::Row(r) => {
                let phase = |body: &Body| of_body(body) + body.expr.outputs().len() as u64;
                let phases: u64 = r.phases.iter().map(|p| phase(&p.body)).sum();
                points(&r.domain()) * (phases + of_body(&r.col_body)) + points(&r.rows) * of_body(&r.row_body)
            }
            LoopKind::Contract(c) => {
                let [batch, m, n, _] = c.sizes().map(|size| size as u64);
                let term = |(k, a, b, _): (&[usize], &Body, &Body, usize)| {
                    let k = points(k);
                    batch * k * (2 * m * n + m * of_body(a) + n * of_body(b))
                };
                let rows = if c.has_row_sum() { batch * m * points(&c.k) } else { 0 };
                c.terms().map(term).sum::<u64>() + rows + points(&c.domain()) * of_body(&c.epilogue)
            }
            LoopKind::Scatter(s) => {
                points(&s.items) * (of_body(&s.ids) + points(&s.cols) * (1 + of_body(&s.source)))
            }
            LoopKind::Update(u) => u.segments.iter().sum::<usize>() as u64 * of_body(&u.body),
            LoopKind::Attention(a) => of_attention(a),
        }
    }
}

fn points(extents: &[usize]) -> u64 {
    extents.iter().map(|&n| n as u64).product()
}

fn of_body(body: &Body) -> u64 {
    let live = body.expr.reachable(body.expr.outputs());
    let is_arithmetic = |node: &ScalarNode| {
        matches!(
            node,
            ScalarNode::Unary(..) | ScalarNode::Binary(..) | ScalarNode::Select(..) | ScalarNode::Cast(..)
        )
    };
    body.expr.nodes().iter().zip(live).filter(|(node, live)| *live && is_arithmetic(node)).count() as u64
}

/// Products over the pairs that see each other: scores and values forward; scores, dP and one product per gradient backward.
fn of_attention(a: &Attention) -> u64 {
    let s = a.shape;
    let seen: usize = (0..s.queries).map(|i| a.mask.keys(i, [s.queries, s.keys]).len()).sum();
    let products = match a.variant {
        AttentionVariant::Forward => 2,
        AttentionVariant::GradQuery => 3,
        AttentionVariant::GradKeyValue => 4,
    };
    // Besides, an exponential and what goes with it.
    let pair = products * 2 * s.width as u64 + 4;
    (s.batch * s.heads) as u64 * seen as u64 * pair
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Access, Store};
    use crate::loops::{Contract, Map, Term};
    use crate::types::{DType, TensorType};

    #[test]
    fn a_pointwise_loop_counts_its_live_nodes() {
        let ty = TensorType::f32([3, 5]);
        let mut body = Body::new();
        let x = body.load(0, &ty, Access::identity(2));
        let square = body.expr.mul(x, x);
        let y = body.expr.add(square, x);
        body.expr.mul(y, y);
        body.output(y);
        let map = Map { domain: vec![3, 5], body, stores: vec![Store::identity(0, 2)] };
        let l = Loop { operands: vec![ty.clone()], results: vec![ty], kind: LoopKind::Map(map) };
        assert_eq!(l.operations(), 15 * 2);
    }

    #[test]
    fn every_term_of_a_contraction_counts() {
        let of = |rows: usize, k: usize| Body::of_load(0, &TensorType::f32([rows, k]), Access::identity(2));
        let mut epilogue = Body::new();
        let (x, y) = (epilogue.expr.carry(0, DType::F32), epilogue.expr.carry(1, DType::F32));
        let sum = epilogue.expr.add(x, y);
        epilogue.output(sum);
        let contract = Contract {
            batch: vec![2],
            m: vec![3],
            n: vec![5],
            k: vec![7],
            a: of(3, 7),
            b: of(5, 7),
            more: vec![Term { k: vec![11], a: of(3, 11), b: of(5, 11), sum: 1 }],
            epilogue,
            stores: vec![],
        };
        let l = Loop { operands: vec![], results: vec![], kind: LoopKind::Contract(contract) };
        assert_eq!(l.operations(), 2 * 3 * 5 * (2 * (7 + 11) + 1));
    }
}

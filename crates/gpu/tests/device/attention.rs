//! Attention loops of many shapes, for the tests of both devices.

use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::index::{Access, Bound, Domain, IndexExpr};
use griffinfly_ir::loops::{AttentionMask, AttentionVariant, Body, Load, Loop, LoopKind};
use griffinfly_ir::ops::{AttentionOptions, Lowering, SampleInput};
use griffinfly_ir::types::{DType, TensorType};

/// A problem: batch, query heads, key heads, queries, keys, width; mask; dimensions of the bias.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) extents: [usize; 6],
    pub(crate) mask: AttentionMask,
    pub(crate) bias: Option<Vec<usize>>,
}

/// The forward loop and the two of the gradients, with their contents.
pub(crate) fn loops(p: &Problem) -> Vec<(String, Loop, Vec<Vec<u32>>)> {
    let [b, hq, hkv, sq, sk, d] = p.extents;
    let mut g = Graph::new();
    let (q, k) = (g.input("q", [b, sq, hq, d]), g.input("k", [b, sk, hkv, d]));
    let v = g.input("v", [b, sk, hkv, d]);
    let bias = p.bias.as_ref().map(|dims| g.input("bias", dims.clone()));
    let y = g.scaled_dot_product_attention(q, k, v, &AttentionOptions { mask: p.mask, scale: None, bias });
    let loss = g.mean_all(y);
    gradients(&mut g, loss, &[q, k, v]).expect("attention has a gradient");
    let found = g.ids().filter_map(|id| match g.lowering(id) {
        Lowering::Loop(l) => Some(*l),
        _ => None,
    });
    let named = found.filter_map(|l| {
        let LoopKind::Attention(a) = &l.kind else { return None };
        let name = format!("{:?} {p:?}", a.variant);
        // Log-sum-exps as they occur: probabilities of a row sum to about 1.
        let typical = (sk as f64).ln();
        let is_gradient = a.variant != AttentionVariant::Forward;
        let fill = |(i, ty): (usize, &TensorType)| {
            let (lo, hi) = if is_gradient && i == 4 { (typical, typical + 1.0) } else { (-1.0, 1.0) };
            let values = SampleInput::uniform(&ty.dims, lo, hi).values(i as u64 + 3);
            values.into_iter().map(|x| (x as f32).to_bits()).collect()
        };
        let operands = l.operands.iter().enumerate().map(fill).collect();
        Some((name, l, operands))
    });
    named.collect()
}

/// The same loops with queries and keys that are rotated on load, elements j and `j + pairs` of a head together.
pub(crate) fn rotated(p: &Problem, pairs: usize) -> Vec<(String, Loop, Vec<Vec<u32>>)> {
    let mut all = loops(p);
    for (name, l, operands) in &mut all {
        let LoopKind::Attention(a) = &mut l.kind else { continue };
        let [queries, keys] = [a.shape.of_queries(), a.shape.of_keys()];
        for (body, extents) in [(&mut a.q, queries), (&mut a.k, keys)] {
            let table = l.operands.len();
            for _ in 0..2 {
                let ty = TensorType::f32([extents[2], pairs]);
                let values = SampleInput::uniform(&ty.dims, -1.0, 1.0).values(l.operands.len() as u64 + 3);
                operands.push(values.into_iter().map(|x| (x as f32).to_bits()).collect());
                l.operands.push(ty);
            }
            rotate(body, &extents, (table, pairs));
        }
        name.push_str(&format!(" rotated {pairs}"));
    }
    all
}

/// `x(d) cos + x(partner of d) (-sin or sin)` for `d < 2 pairs`, with cos and sin in the operands from `table` on.
fn rotate(body: &mut Body, extents: &[usize], (table, pairs): (usize, usize)) {
    let (domain, n) = (Domain::of(extents), pairs as i64);
    let axes: Vec<IndexExpr> = (0..4).map(IndexExpr::axis).collect();
    let partner = axes[3].plus_constant(n).rem(2 * n, domain);
    let other = [&axes[..3], &[partner]].concat();
    let load = body.loads[0].clone();
    body.loads.push(Load { access: load.access.substitute(&other, &[], extents), ..load });
    for operand in [table, table + 1] {
        let access = Access::at(vec![axes[2].clone(), axes[3].rem(n, domain)]);
        body.loads.push(Load { operand, access });
    }
    let e = &mut body.expr;
    let [own, other, cos, sin] = [0, 1, 2, 3].map(|k| e.load(k, DType::F32));
    let first = e.within(vec![Bound::new(axes[3].clone(), 0, n)]);
    let inside = e.within(vec![Bound::new(axes[3].clone(), 0, 2 * n)]);
    let negative = e.unary(griffinfly_ir::scalar::UnaryFn::Neg, sin);
    let sin = e.select(first, negative, sin);
    let (straight, turn) = (e.mul(own, cos), e.mul(other, sin));
    let y = e.add(straight, turn);
    let y = e.select(inside, y, own);
    e.set_outputs(vec![y]);
}

/// Problems with the pairs of their rotation: in quadruples and not, of whole heads and of a part.
pub(crate) fn rotations() -> Vec<(Problem, usize)> {
    let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
    let p = |extents, mask| Problem { extents, mask, bias: None };
    vec![
        (p([2, 3, 1, 17, 17, 32], causal), 16),
        (p([1, 9, 3, 50, 50, 64], causal), 32),
        (p([1, 4, 2, 19, 33, 16], full), 4),
        (p([1, 2, 2, 9, 21, 12], full), 6),
        (p([2, 2, 1, 13, 13, 9], causal), 3),
    ]
}

/// Widths, lengths, group ratios and masks, each with every other at least once in a small way.
pub(crate) fn problems() -> Vec<Problem> {
    let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
    let window = AttentionMask::sliding_window(7);
    let local = AttentionMask { causal: false, window: Some(4) };
    let p =
        |extents, mask, bias: Option<&[usize]>| Problem { extents, mask, bias: bias.map(<[usize]>::to_vec) };
    vec![
        p([1, 1, 1, 1, 1, 1], full, None),
        p([2, 3, 1, 17, 17, 32], causal, None),
        p([1, 8, 1, 50, 50, 64], causal, None),
        p([1, 9, 3, 128, 128, 64], causal, None),
        p([2, 3, 3, 2, 17, 72], full, None),
        p([1, 3, 1, 50, 50, 80], window, None),
        p([1, 8, 8, 17, 128, 80], causal, None),
        p([1, 2, 2, 50, 17, 128], full, None),
        p([1, 8, 1, 17, 50, 128], window, None),
        p([1, 3, 1, 17, 17, 256], causal, None),
        p([2, 2, 1, 1, 50, 256], causal, None),
        p([1, 2, 1, 128, 128, 33], local, None),
        p([1, 2, 1, 50, 17, 6], causal, None),
        p([2, 4, 2, 17, 50, 64], full, Some(&[2, 1, 17, 50])),
        p([1, 3, 1, 50, 50, 72], causal, Some(&[3, 1, 50])),
        p([1, 2, 1, 1500, 1500, 64], full, None),
    ]
}

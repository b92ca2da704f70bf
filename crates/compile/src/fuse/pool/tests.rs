//! Random joins in random graphs: the order and the tables stay true.

use super::*;
use crate::lower::{Phase, Source, Tensor};
use griffinfly_ir::loops::{Body, Loop, LoopKind, Map};
use griffinfly_ir::types::TensorType;
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeSet;

/// A loop that only reads and writes tensors; what it computes does not matter here.
fn node(inputs: Vec<TensorId>, outputs: Vec<TensorId>) -> LoopNode {
    let map = Map { domain: vec![1], body: Body::new(), stores: Vec::new() };
    let l = Loop { operands: Vec::new(), results: Vec::new(), kind: LoopKind::Map(map) };
    LoopNode { l, inputs, outputs, labels: BTreeSet::new(), phase: Phase::Forward }
}

/// Loop i writes tensor i and reads some of the tensors before it.
fn graph(reads: &[Vec<prop::sample::Index>]) -> LoopGraph {
    let mut g = LoopGraph::default();
    for (i, reads) in reads.iter().enumerate() {
        let t =
            g.add_tensor(Tensor { ty: TensorType::f32([]), source: Source::Temporary, label: String::new() });
        let mut inputs: Vec<TensorId> = Vec::new();
        if i > 0 {
            inputs = reads.iter().map(|r| TensorId(r.index(i) as u32)).collect();
        }
        inputs.sort_unstable();
        inputs.dedup();
        g.loops.push(node(inputs, vec![t]));
    }
    g
}

/// Whether `a` is behind `b`, by following every edge.
fn is_behind(pool: &Pool, a: usize, b: usize) -> bool {
    let Some(node) = pool.node(b) else { return false };
    let producers = node.inputs.iter().filter_map(|t| pool.producer(*t));
    producers.into_iter().any(|p| p == a || is_behind(pool, a, p))
}

fn joined(pool: &Pool, a: usize, b: usize) -> LoopNode {
    let (x, y) = (pool.node(a).expect("is left"), pool.node(b).expect("is left"));
    let outputs: Vec<TensorId> = x.outputs.iter().chain(&y.outputs).copied().collect();
    let mut inputs: Vec<TensorId> = x.inputs.iter().chain(&y.inputs).copied().collect();
    inputs.retain(|t| !outputs.contains(t));
    inputs.sort_unstable();
    inputs.dedup();
    node(inputs, outputs)
}

fn assert_sound(pool: &Pool) -> Result<(), TestCaseError> {
    let order = pool.in_order();
    prop_assert_eq!(order.len(), pool.len());
    for (at, &i) in order.iter().enumerate() {
        prop_assert_eq!(pool.order[pool.position[i]], i);
        let node = pool.node(i).expect("is left");
        for t in &node.inputs {
            prop_assert!(pool.consumers(*t).contains(&i));
            let p = pool.producer(*t).expect("every tensor has a loop");
            prop_assert!(order[..at].contains(&p), "loop {} comes after its reader {}", p, i);
        }
        prop_assert!(node.outputs.iter().all(|t| pool.producer(*t) == Some(i)));
    }
    for (t, readers) in pool.consumers.iter().enumerate() {
        let reads = |c: &usize| pool.node(*c).is_some_and(|n| n.inputs.contains(&TensorId(t as u32)));
        prop_assert!(readers.iter().all(reads));
    }
    Ok(())
}

type Pair = (prop::sample::Index, prop::sample::Index);

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn joins_keep_the_order_and_the_tables(
        reads in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 2..20),
        pairs in prop::collection::vec(any::<Pair>(), 0..30),
    ) {
        let mut pool = Pool::new(graph(&reads));
        assert_sound(&pool)?;
        for (a, b) in pairs {
            let order = pool.in_order();
            let (a, b) = (a.index(order.len()), b.index(order.len()));
            let (a, b) = (order[a.min(b)], order[a.max(b)]);
            if a == b {
                continue;
            }
            // What b reads besides the results of a.
            let own = pool.node(a).expect("is left").outputs.clone();
            let others: Vec<TensorId> =
                pool.node(b).expect("is left").inputs.iter().copied().filter(|t| !own.contains(t)).collect();
            let circle = others.iter().filter_map(|t| pool.producer(*t)).any(|p| is_behind(&pool, a, p));
            prop_assert_eq!(pool.depends_on(&others, a), circle);
            if !circle {
                let both = joined(&pool, a, b);
                pool.merge(a, b, both);
                assert_sound(&pool)?;
            }
        }
        let mut g = pool.finish();
        let before = g.loops.clone();
        prop_assert!(g.sort().is_ok());
        prop_assert_eq!(g.loops, before, "the order was topological");
    }
}

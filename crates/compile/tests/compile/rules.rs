//! The rule suite: every row of the table is driven through the oracle.

use crate::programs::{Feeds, network};
use griffinfly_compile::rewrite::{Exactness, Rule, Stage, When, recognise, rules, run, simplify};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{Graph, LeafKind, Value};
use griffinfly_ir::ops::SampleInput;
use griffinfly_ir::types::DType;
use std::collections::BTreeSet;

/// What floats can be.
const SPECIAL: [f64; 8] = [0.0, -0.0, 1.0, -1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.25];

/// Random values for every input; with special ones among them for rules that hold bit for bit.
fn feeds(g: &Graph, seed: u64, special: bool) -> Feeds {
    let mut out = Feeds::new();
    for (i, (_, leaf)) in g.leaves().filter(|(_, l)| !matches!(l.kind, LeafKind::Constant(_))).enumerate() {
        let seed = seed * 31 + i as u64;
        let mut data = SampleInput::uniform(&leaf.ty.dims, -2.0, 2.0).values(seed);
        for (n, x) in data.iter_mut().enumerate().filter(|(n, _)| special && (n + i) % 2 == 0) {
            *x = SPECIAL[(n / 2 + seed as usize) % SPECIAL.len()];
        }
        out.insert(leaf.name.clone(), Array { ty: leaf.ty.clone(), data });
    }
    out
}

/// Whether the new value may stand for the old one.
fn agree(exactness: Exactness, old: f64, new: f64) -> bool {
    match exactness {
        Exactness::Bits => old.to_bits() == new.to_bits() || (old.is_nan() && new.is_nan()),
        Exactness::Real => !old.is_finite() || old == new || (old - new).abs() <= 2e-6 * (1.0 + old.abs()),
    }
}

/// Every output of both graphs agrees.
fn assert_agree(old: &Graph, new: &Graph, feeds: &Feeds, exactness: Exactness, what: &str) {
    let (a, b) = (eval::<f64>(old, feeds).expect("evaluates"), eval::<f64>(new, feeds).expect("evaluates"));
    assert_eq!(old.outputs().len(), new.outputs().len(), "{what}");
    for (x, y) in old.outputs().iter().zip(new.outputs()) {
        assert_eq!((&x.name, old.ty(x.value)), (&y.name, new.ty(y.value)), "{what}");
        for (i, (p, q)) in a.get(x.value).data.iter().zip(&b.get(y.value).data).enumerate() {
            assert!(agree(exactness, *p, *q), "{what}: '{}' [{i}] was {p}, is {q}\n{old}\n{new}", x.name);
        }
    }
}

fn leaf_names(g: &Graph) -> Vec<&str> {
    g.leaves().filter(|(_, l)| !l.name.is_empty()).map(|(_, l)| l.name.as_str()).collect()
}

/// The example and what the rule makes of it.
fn applied(rule: &Rule) -> (Graph, Graph) {
    let old = rule.example();
    assert_eq!(old.finish(), Ok(()), "{rule:?}");
    let (new, fired) = rule.apply(&old);
    assert!(fired > 0, "{rule:?} does not fire in its example\n{old}");
    assert_eq!(new.finish(), Ok(()), "{rule:?}");
    assert_eq!(new.verify(), [], "{rule:?}");
    assert_eq!(leaf_names(&old), leaf_names(&new), "{rule:?}");
    (old, new)
}

#[test]
fn names_are_unique() {
    let mut seen = BTreeSet::new();
    assert!(rules().all(|r| seen.insert(r.name) && !r.formula.is_empty()));
    assert!(seen.len() >= 40, "{} rules", seen.len());
}

#[test]
fn every_rule_fires_in_its_example_and_keeps_its_value() {
    for rule in rules() {
        let (old, new) = applied(rule);
        for seed in 0..6 {
            let special = rule.exactness == Exactness::Bits && seed % 2 == 1;
            assert_agree(&old, &new, &feeds(&old, seed, special), rule.exactness, &format!("{rule:?}"));
        }
    }
}

#[test]
fn every_rule_is_reached_in_its_stages_and_comes_to_rest() {
    for rule in rules() {
        let stages = match rule.when {
            When::Before => vec![Stage::Recognise],
            When::After => vec![Stage::Simplify],
            When::Always => vec![Stage::Recognise, Stage::Simplify],
        };
        for stage in stages {
            let (new, fired) = run(&rule.example(), stage);
            assert!(fired.0.contains(&rule.name), "{rule:?} is hidden by {:?}", fired.0);
            assert!(run(&new, stage).1.0.is_empty(), "{rule:?}: {:?}", run(&new, stage).1);
        }
    }
}

/// The example with a weighted sum of its output differentiated to every float input; zeros among the inputs.
fn differentiated(g: &Graph) -> Graph {
    let mut g = g.clone();
    let y = g.outputs()[0].value;
    let dims = g.dims(y).to_vec();
    let weights = SampleInput::uniform(&dims, 0.5, 1.5).values(5);
    let weights: Vec<f32> = weights.into_iter().map(|w| w as f32).collect();
    let w = g.constant(&weights, dims);
    let weighted = g.mul(y, w);
    let loss = g.mean_all(weighted);
    let float = |g: &Graph, v: &Value| g.ty(*v).is_some_and(|t| t.dtype == DType::F32);
    let names: Vec<String> = leaf_names(&g).into_iter().map(Into::into).collect();
    let inputs: Vec<Value> = names.iter().filter_map(|n| g.leaf(n)).filter(|v| float(&g, v)).collect();
    let found = gradients(&mut g, loss, &inputs).expect("differentiable");
    for (i, d) in found.into_iter().enumerate() {
        g.output(&format!("d{i}"), d);
    }
    g
}

#[test]
fn rules_of_the_first_stage_keep_every_gradient() {
    for rule in rules().filter(|r| r.when != When::After) {
        let (old, new) = applied(rule);
        if old.ty(old.outputs()[0].value).is_none_or(|t| t.dtype != DType::F32) {
            continue;
        }
        let (old, new) = (differentiated(&old), differentiated(&new));
        for seed in 0..6 {
            let mut feeds = feeds(&old, seed, false);
            feeds.values_mut().for_each(|a| a.data[seed as usize % 4] = 0.0);
            assert_agree(&old, &new, &feeds, Exactness::Real, &format!("gradient of {rule:?}"));
        }
    }
}

/// Lines of the text form of an operation.
fn count(g: &Graph, op: &str) -> usize {
    g.to_string().lines().filter(|l| l.contains(&format!("= {op} "))).count()
}

#[test]
fn a_written_out_layer_norm_becomes_one_operation() {
    for divide in [true, false] {
        let mut g = Graph::new();
        let (x, gamma, beta) = (g.input("x", [5, 8]), g.input("gamma", [8]), g.input("beta", [8]));
        let mean = g.mean_keep(x, &[1]);
        let d = g.sub(x, mean);
        let two = g.scalar(2.0);
        let square = g.pow(d, two);
        let variance = g.mean(square, &[1]);
        let variance = g.insert_axes(variance, &[1]);
        let eps = g.scalar(1e-5);
        let shifted = g.add(variance, eps);
        let root = g.sqrt(shifted);
        let normal = if divide {
            g.div(d, root)
        } else {
            let one = g.scalar(1.0);
            let r = g.div(one, root);
            g.mul(r, d)
        };
        let scaled = g.mul(normal, gamma);
        let y = g.add(scaled, beta);
        g.output("y", y);
        let new = recognise(&g);
        assert_eq!((count(&new, "layer_norm"), new.nodes().len()), (1, 4), "{new}");
        assert_agree(&g, &new, &feeds(&g, 3, false), Exactness::Real, "layer norm");
        let (g, new) = (differentiated(&g), differentiated(&new));
        assert_agree(&g, &new, &feeds(&g, 3, false), Exactness::Real, "gradient of layer norm");
    }
}

#[test]
fn what_only_looks_like_a_composite_stays() {
    let mut g = Graph::new();
    let (x, z) = (g.input("x", [5, 8]), g.input("z", [5, 8]));
    let e = g.exp(x);
    let over_columns = g.sum_keep(e, &[0]);
    let other = g.exp(z);
    let sum = g.sum_keep(other, &[1]);
    let a = g.div(e, sum);
    let sigmoid = g.sigmoid(z);
    let b = g.mul(x, sigmoid);
    let (k, one) = (g.scale(x, 0.7), g.scalar(1.0));
    let curve = g.erf(k);
    let curve = g.add(curve, one);
    let half = g.scale(x, 0.5);
    let c = g.mul(half, curve);
    for (name, v) in [("a", a), ("b", b), ("c", c), ("d", over_columns)] {
        g.output(name, v);
    }
    assert_eq!(run(&g, Stage::Recognise).1.0, [""; 0]);
}

#[test]
fn rewriting_keeps_leaves_updates_and_their_order() {
    let g = network();
    for new in [recognise(&g), simplify(&g)] {
        assert_eq!(leaf_names(&g), leaf_names(&new));
        let updated = |g: &Graph| -> Vec<String> {
            g.updates().iter().filter_map(|u| g.as_leaf(u.leaf).map(|l| l.name.clone())).collect()
        };
        assert_eq!(updated(&g), updated(&new));
        assert_eq!(new.verify(), []);
    }
}

#[test]
fn a_long_chain_of_constants_is_folded() {
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    let mut k = g.constant(&[0.5, 1.0, 2.0], [3]);
    for _ in 0..100 {
        k = g.neg(k);
    }
    let k = g.exp(k);
    let y = g.mul(x, k);
    g.output("y", y);
    let new = simplify(&g);
    assert_eq!(new.nodes().len(), 3, "{new}");
    assert_agree(&g, &new, &feeds(&g, 1, false), Exactness::Real, "chain");
}

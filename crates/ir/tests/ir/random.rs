//! Random tensors and dropout: distribution, what draws depend on, the backward pass, bad calls.

use crate::support::{Feeds, agree, feeds, gradients_of};
use griffinfly_ir::graph::{Graph, LeafKind, Value};
use griffinfly_ir::random::{RANDOM_KEY, random_key};

fn key(g: &Graph, seed: u64, step: u64) -> Feeds {
    let words = random_key(seed, step).map(f64::from);
    feeds(g, &[(RANDOM_KEY, &words)])
}

/// Draws `n` numbers.
fn draw(n: usize, seed: u64, step: u64, f: impl Fn(&mut Graph, Value) -> Value) -> Vec<f64> {
    let mut g = Graph::new();
    let like = g.splat(0.25, [n]);
    let y = f(&mut g, like);
    g.output("y", y);
    g.finish().unwrap();
    agree(&g, &key(&g, seed, step)).remove(0)
}

fn moments(x: &[f64]) -> (f64, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64)
}

#[test]
fn distributions_have_their_moments() {
    let n = 20_000;
    let uniform = draw(n, 7, 1, Graph::rand_like);
    let (mean, variance) = moments(&uniform);
    assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.002, "{mean} {variance}");
    assert!(uniform.iter().all(|u| (0.0..1.0).contains(u) && (u * 16_777_216.0).fract() == 0.0));
    let normal = draw(n, 7, 1, Graph::randn_like);
    let (mean, variance) = moments(&normal);
    assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    // The numbers of a pair are independent: so are neighbours.
    for distance in 1..4 {
        let products: Vec<f64> = normal.windows(distance + 1).map(|w| w[0] * w[distance]).collect();
        assert!(moments(&products).0.abs() < 0.03, "{distance}");
    }
    let tail = normal.iter().filter(|z| z.abs() > 1.96).count() as f64 / n as f64;
    assert!((tail - 0.05).abs() < 0.006, "{tail}");
    let hits = draw(n, 7, 1, Graph::bernoulli);
    assert!((moments(&hits).0 - 0.25).abs() < 0.01 && hits.iter().all(|h| *h == 0.0 || *h == 1.0));
}

#[test]
fn draws_depend_on_seed_step_and_stream_alone() {
    let base = draw(33, 1, 1, Graph::rand_like);
    assert_eq!(base, draw(33, 1, 1, Graph::rand_like));
    assert_eq!(base[..20], draw(20, 1, 1, Graph::rand_like));
    for (seed, step) in [(2, 1), (1, 2), (1 + (1 << 32), 1), (1, 1 + (1 << 32))] {
        let other = draw(33, seed, step, Graph::rand_like);
        assert!(base.iter().zip(&other).all(|(a, b)| a != b), "{seed} {step}");
    }
    let second = draw(33, 1, 1, |g, like| {
        g.rand_like(like);
        g.rand_like(like)
    });
    assert!(base.iter().zip(&second).all(|(a, b)| a != b));
}

#[test]
fn draws_survive_rebuilding_and_text() {
    let mut g = Graph::new();
    let like = g.splat(0.0, [5, 3]);
    let unused = g.rand_like(like);
    let (a, b) = (g.randn_like(like), g.dropout(unused, 0.5));
    let y = g.add(a, b);
    g.output("y", y);
    let f = key(&g, 3, 4);
    let expected = agree(&g, &f);
    let rebuilt = g.rebuild(&mut |_, _, _| None);
    assert_eq!(agree(&rebuilt, &f), expected);
    let parsed: Graph = g.to_string().parse().unwrap();
    assert_eq!(agree(&parsed, &f), expected);
}

fn dropped(p: f32, n: usize) -> (Graph, Value) {
    let mut g = Graph::new();
    let x = g.input("x", [n]);
    let y = g.dropout(x, p);
    g.output("y", y);
    (g, y)
}

#[test]
fn dropout_scales_what_it_keeps_and_drops_the_same_backwards() {
    let n = 4000;
    let (mut g, y) = dropped(0.2, n);
    let loss = g.sum_all(y);
    let mut f = key(&g, 11, 5);
    f.extend(feeds(&g, &[("x", &vec![1.0; n])]));
    let found = agree(&g, &f).remove(0);
    let kept = found.iter().filter(|y| **y != 0.0).count() as f64 / n as f64;
    assert!((kept - 0.8).abs() < 0.02, "{kept}");
    assert!(found.iter().all(|y| *y == 0.0 || (*y - 1.25).abs() < 1e-7));
    assert_eq!(gradients_of(&g, loss, &["x"], &f)[0], found);
}

#[test]
fn dropout_of_nothing_and_of_everything() {
    let x = [1.0, f64::NAN, f64::INFINITY, -2.0];
    for (p, keeps) in [(0.0, true), (1.0, false)] {
        let (g, _) = dropped(p, 4);
        let mut f = key(&g, 1, 1);
        f.extend(feeds(&g, &[("x", &x)]));
        let found = agree(&g, &f).remove(0);
        let same = found
            .iter()
            .zip(x)
            .all(|(y, x)| if keeps { *y == x || x.is_nan() == y.is_nan() } else { *y == 0.0 });
        assert!(same, "{p}: {found:?}");
    }
}

#[test]
fn without_dropout_values_pass() {
    let (g, _) = dropped(0.5, 4);
    let plain = g.without_dropout();
    let f = feeds(&plain, &[("x", &[1.0, 2.0, 3.0, 4.0]), (RANDOM_KEY, &[0.0; 4])]);
    assert_eq!(agree(&plain, &f)[0], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(plain.nodes().len(), 2, "the input and the key");
}

#[test]
fn bad_draws_are_refused() {
    let mut g = Graph::new();
    let (x, ids) = (g.input("x", [3]), g.input_ids("ids", [3]));
    for p in [-0.1, 1.5, f32::NAN] {
        g.dropout(x, p);
    }
    g.dropout(ids, 0.5);
    g.rand_like(ids);
    assert_eq!(g.finish().unwrap_err().0.len(), 5);
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    g.add_leaf(RANDOM_KEY, LeafKind::Input, griffinfly_ir::types::TensorType::f32([2]));
    g.rand_like(x);
    let errors = g.finish().unwrap_err().0;
    assert!(errors[0].reason.contains("u32[4]"), "{}", errors[0]);
}

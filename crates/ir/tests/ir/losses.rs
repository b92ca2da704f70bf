//! Losses against their formulas, at the edge, and their gradients.

use crate::support::{Feeds, agree, assert_close, check_gradients, feeds, gradients_of};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Reduction;

const INF: f64 = f64::INFINITY;

/// A loss of `a` and `b`: checks that lowering agrees, and gives the losses and the gradient in `a` of their sum.
fn rows(a: &[f64], b: &[f64], f: impl Fn(&mut Graph, Value, Value) -> Value) -> (Vec<f64>, Vec<f64>) {
    let mut g = Graph::new();
    let [x, y] = ["a", "b"].map(|name| g.input(name, [a.len()]));
    let loss = f(&mut g, x, y);
    g.output("loss", loss);
    g.finish().unwrap();
    let fed = feeds(&g, &[("a", a), ("b", b)]);
    let sum = g.sum_all(loss);
    let d = gradients_of(&g, sum, &["a"], &fed).remove(0);
    (agree(&g, &fed).remove(0), d)
}

#[test]
fn absolute_and_huber_losses() {
    let (a, b) = ([0.0, 0.5, 1.0, -3.0, 1e30, INF], [0.0; 6]);
    let huge = f64::from(1e30f32);
    let a = a.map(|a| f64::from(a as f32));
    let (loss, d) = rows(&a, &b, |g, a, b| g.l1_loss(a, b, Reduction::None));
    assert_eq!((loss, d), (vec![0.0, 0.5, 1.0, 3.0, huge, INF], vec![0.0, 1.0, 1.0, -1.0, 1.0, 1.0]));
    let (loss, d) = rows(&a, &b, |g, a, b| g.huber_loss(a, b, 2.0, Reduction::None));
    assert_close(&loss, &[0.0, 0.125, 0.5, 4.0, 2.0 * huge, INF], 1e-12);
    assert_eq!(d, [0.0, 0.5, 1.0, -2.0, 2.0, 2.0]);
    let (loss, d) = rows(&a, &b, |g, a, b| g.smooth_l1_loss(a, b, 2.0, Reduction::None));
    assert_close(&loss[..4], &[0.0, 0.0625, 0.25, 2.0], 1e-12);
    assert_eq!(d[..4], [0.0, 0.25, 0.5, -1.0]);
    let (loss, _) = rows(&a, &b, |g, a, b| g.smooth_l1_loss(a, b, 0.0, Reduction::None));
    assert_eq!(loss[..4], [0.0, 0.5, 1.0, 3.0]);
}

#[test]
fn reductions_are_none_sum_or_mean() {
    let (a, b) = ([1.0, 2.0, -3.0, 0.0], [0.0; 4]);
    for (reduction, expected) in [
        (Reduction::None, vec![1.0, 2.0, 3.0, 0.0]),
        (Reduction::Sum, vec![6.0]),
        (Reduction::Mean, vec![1.5]),
    ] {
        assert_eq!(rows(&a, &b, |g, a, b| g.l1_loss(a, b, reduction)).0, expected);
    }
    assert_eq!(Reduction::default(), Reduction::Mean);
}

#[test]
fn divergence_of_distributions() {
    let p = [0.5, 0.25, 0.25, 0.0, 0.0];
    let q = [0.25f64, 0.25, 0.5, 0.1, 0.0].map(|q| f64::from(q.ln() as f32));
    let (loss, d) = rows(&q, &p, |g, q, p| g.kl_div(q, p, Reduction::None));
    let ln2 = std::f64::consts::LN_2;
    assert_close(&loss, &[0.5 * ln2, 0.0, -0.25 * ln2, 0.0, 0.0], 1e-7);
    assert_eq!(d, [-0.5, -0.25, -0.25, 0.0, 0.0]);
    let (_, d) = rows(&p, &q, |g, p, q| g.kl_div(q, p, Reduction::None));
    assert_close(&d, &[1.0 + ln2, 1.0, 1.0 - ln2, 0.0, 0.0], 1e-6);
}

#[test]
fn binary_cross_entropy_of_any_logit() {
    let x = [0.0, 2.0, -2.0, 1e4, -1e4, 1e4, -1e4];
    let t = [0.5, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0];
    let bce = |g: &mut Graph, x, t| g.binary_cross_entropy_with_logits(x, t, None, Reduction::None);
    let (loss, d) = rows(&x, &t, bce);
    let near = (1.0 + (-2f64).exp()).ln();
    assert_close(&loss, &[std::f64::consts::LN_2, near, near + 2.0, 0.0, 0.0, 1e4, 1e4], 1e-12);
    let s = 1.0 / (1.0 + (-2f64).exp());
    assert_close(&d, &[0.0, s - 1.0, -s, 0.0, 0.0, 1.0, -1.0], 1e-12);
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| g.input(name, [2, 3]));
    let w = g.input("w", [3]);
    let loss = g.binary_cross_entropy_with_logits(a, b, Some(w), Reduction::Mean);
    g.output("loss", loss);
    let (x, t) = ([0.3, -1.0, 2.0, 0.0, 5.0, -3.0], [1.0, 0.0, 0.5, 1.0, 1.0, 0.25]);
    let w = [3.0, 0.5, 1.0];
    let f = feeds(&g, &[("a", &x), ("b", &t), ("w", &w)]);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let each = (0..6).map(|i| -(w[i % 3] * t[i] * sigmoid(x[i]).ln() + (1.0 - t[i]) * sigmoid(-x[i]).ln()));
    assert_close(&agree(&g, &f)[0], &[each.sum::<f64>() / 6.0], 1e-9);
    check_gradients(&g, loss, &["a", "b", "w"], &f, 6);
}

#[test]
fn losses_of_other_shapes_are_refused() {
    let mut g = Graph::new();
    let (a, b) = (g.input("a", [4, 1]), g.input("b", [4]));
    let all = [
        g.l1_loss(a, b, Reduction::Mean),
        g.huber_loss(a, b, 1.0, Reduction::Mean),
        g.huber_loss(a, a, 0.0, Reduction::Mean),
        g.kl_div(a, b, Reduction::Sum),
        g.binary_cross_entropy_with_logits(a, b, None, Reduction::Mean),
        g.binary_cross_entropy_with_logits(a, a, Some(b), Reduction::Mean),
        g.cross_entropy_soft(a, b, Reduction::Mean),
    ];
    assert!(all.iter().all(|v| g.ty(*v).is_none()));
    let ids = g.input_ids("ids", [4]);
    g.cross_entropy_rows_smoothed(a, ids, None, 1.5);
    let errors = g.finish().unwrap_err().0;
    assert_eq!(errors.len(), all.len() + 1, "{errors:?}");
    assert!(errors.last().unwrap().reason.contains("1.5"));
}

fn smoothed(x: &[f64], ids: &[f64], ignore: i32, smoothing: f32) -> (Graph, Feeds, Value) {
    let mut g = Graph::new();
    let logits = g.input("x", [ids.len(), x.len() / ids.len()]);
    let labels = g.input_ids("ids", [ids.len()]);
    let (loss, count) = g.cross_entropy_smoothed(logits, labels, ignore, smoothing);
    g.output("loss", loss);
    g.output("count", count);
    let f = feeds(&g, &[("x", x), ("ids", ids)]);
    (g, f, loss)
}

/// As `torch.nn.functional.cross_entropy(x, ids, ignore_index=-1, label_smoothing=s)`, from its formula.
#[test]
fn smoothed_labels_share_a_part_with_all_classes() {
    let x = [0.5, -1.0, 2.0, 1.0, 1.0, 0.0, -3.0, 0.25, 4.0];
    let (g, f, loss) = smoothed(&x, &[2.0, -1.0, 1.0], -1, 0.3);
    let row = |x: &[f64], id: usize| {
        let lse = x.iter().map(|x| x.exp()).sum::<f64>().ln();
        0.7 * (lse - x[id]) + 0.3 * x.iter().map(|x| lse - x).sum::<f64>() / 3.0
    };
    let found = agree(&g, &f);
    assert_close(&found[0], &[(row(&x[..3], 2) + row(&x[6..], 1)) / 2.0], 1e-7);
    assert_eq!(found[1], [2.0]);
    check_gradients(&g, loss, &["x"], &f, 9);
    let (g, f, loss) = smoothed(&x, &[-1.0; 3], -1, 0.3);
    assert_eq!(agree(&g, &f), [[0.0], [0.0]]);
    assert_eq!(gradients_of(&g, loss, &["x"], &f)[0], [0.0; 9]);
    // A common offset of the logits changes nothing.
    let far: Vec<f64> = x.iter().map(|x| x + 16384.0).collect();
    let (near, far) = (smoothed(&x, &[2.0, 0.0, 1.0], -1, 0.5), smoothed(&far, &[2.0, 0.0, 1.0], -1, 0.5));
    assert_close(&agree(&near.0, &near.1)[0], &agree(&far.0, &far.1)[0], 1e-9);
}

#[test]
fn probabilities_as_targets() {
    let mut g = Graph::new();
    let [x, p] = ["x", "p"].map(|name| g.input(name, [2, 3]));
    let loss = g.cross_entropy_soft(x, p, Reduction::Mean);
    let rows = g.cross_entropy_soft(x, p, Reduction::None);
    g.output("loss", loss);
    g.output("rows", rows);
    let logits = [1.0, -INF, 2.0, 0.5, 0.25, -0.5];
    let f = feeds(&g, &[("x", &logits), ("p", &[0.25, 0.0, 0.75, 0.0, 0.5, 0.5])]);
    let lse = |x: &[f64]| x.iter().map(|x| x.exp()).sum::<f64>().ln();
    let first = lse(&[1.0, 2.0]) - 0.25 - 1.5;
    let second = lse(&[0.5, 0.25, -0.5]) + 0.125;
    let found = agree(&g, &f);
    assert_close(&found[1], &[first, second], 1e-7);
    assert_close(&found[0], &[(first + second) / 2.0], 1e-7);
    let d = gradients_of(&g, loss, &["x"], &f).remove(0);
    assert!(d.iter().all(|d| d.is_finite()), "{d:?}");
    let finite =
        feeds(&g, &[("x", &[1.0, 0.0, 2.0, 0.5, 0.25, -0.5]), ("p", &[0.25, 0.1, 0.65, 0.2, 0.3, 0.5])]);
    check_gradients(&g, loss, &["x", "p"], &finite, 6);
}

//! What operations promise at the edge, kept by the kernels of the device under test: NaN and infinities, ties, kinks and poles,
//! masked rows, logits of any size, cancellation, wrapping integers. Expected is what the oracle says, element by element.

use super::Feeds;
use super::faults::{check, check_within, differentiated, filled};
use griffinfly_ir::array::Array;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::{AttentionOptions, Window2d};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn fed(g: &Graph, values: &[(&str, &[f64])]) -> Feeds {
    let one = |(name, data): &(&str, &[f64])| {
        let ty = g.ty(g.leaf(name).expect("a leaf")).expect("typed").clone();
        assert_eq!(ty.elements(), data.len(), "{name}");
        (name.to_string(), Array { ty, data: data.to_vec() })
    };
    values.iter().map(one).collect()
}

/// Each in a graph of its own name, all in one program.
fn each(g: &mut Graph, x: Value, all: &[fn(&mut Graph, Value) -> Value]) -> Vec<Value> {
    all.iter().map(|f| f(g, x)).collect()
}

/// NaN goes through what compares; the derivative at a kink is 0 or goes to the first, at a pole it is infinite.
#[test]
fn device_keeps_nan_kinks_and_poles() {
    let mut g = Graph::new();
    let (x, tied) = (g.input("x", [8]), g.input("tied", [2, 4]));
    let (base, exponent) = (g.input("base", [6]), g.input("exponent", [6]));
    let not_negative = g.input("not_negative", [4]);
    let mut results = each(
        &mut g,
        x,
        &[
            Graph::relu,
            |g, x| g.clamp(x, Some(-1.0), Some(1.0)),
            |g, x| {
                let zero = g.scalar(0.0);
                g.maximum(x, zero)
            },
            |g, x| {
                let zero = g.scalar(0.0);
                g.minimum(zero, x)
            },
            Graph::relu6,
        ],
    );
    results.extend(each(
        &mut g,
        tied,
        &[
            |g, x| g.max(x, &[1]),
            |g, x| g.min(x, &[1]),
            |g, x| {
                let image = g.split_axis(x, 0, &[1, 1, 0]);
                g.max_pool2d(image, [1, 2], Window2d::strided(1))
            },
            |g, x| {
                let image = g.split_axis(x, 0, &[1, 1, 0]);
                g.max_pool2d(image, [2, 3], Window2d::strided(2).padded(1).ceil())
            },
        ],
    ));
    results.push(g.pow(base, exponent));
    results.extend(each(&mut g, not_negative, &[Graph::sqrt, Graph::rsqrt, Graph::abs]));
    differentiated(&mut g, &results, -2.5);
    let f = fed(
        &g,
        &[
            ("x", &[NAN, 0.0, -0.0, 1.0, -1.0, INF, -INF, 0.5]),
            ("tied", &[2.0, 2.0, -1.0, -1.0, 0.5, NAN, 3.0, NAN]),
            ("base", &[0.0, 0.0, 0.0, 0.0, 2.0, 3.0]),
            ("exponent", &[0.0, 2.0, 1.0, 1.5, 0.0, 2.0]),
            ("not_negative", &[0.0, 4.0, 0.25, 1.0]),
        ],
    );
    check("edges", &g, &f);
}

#[test]
fn device_max_pool_gradient_goes_to_the_first_of_equal_elements() {
    let mut g = Graph::new();
    let x = g.input("x", [1, 2, 7, 9]);
    let apart = g.max_pool2d(x, [2, 2], Window2d::strided(2));
    let overlapping = g.max_pool2d(x, [3, 3], Window2d::strided(1).padded(1));
    let all = g.global_max_pool2d(x);
    differentiated(&mut g, &[apart, overlapping, all], -2.5);
    // Three values, so that most windows have a tie.
    let data: Vec<f64> = (0..126).map(|i| f64::from(i * 5 % 7 % 3)).collect();
    check("ties", &g, &fed(&g, &[("x", &data)]));
}

/// Queries that see no key, by the mask or by a bias of -inf, and rows of a softmax that are all -inf.
#[test]
fn device_fully_masked_rows_give_zeros_and_zero_gradients() {
    let mut g = Graph::new();
    let rows = g.input("rows", [3, 4]);
    let masked = g.softmax(rows, 1);
    let [q, k, v] = [("q", 20), ("k", 3), ("v", 3)].map(|(n, length)| g.input(n, [1, length, 2, 8]));
    // The mask shows no key to the first 17 queries, the bias none to the last but one.
    let hidden: Vec<f32> =
        (0..60).map(|i| if i / 3 == 18 || i % 7 == 3 { f32::NEG_INFINITY } else { 0.25 }).collect();
    let bias = g.constant(&hidden, [20, 3]);
    let options = AttentionOptions { bias: Some(bias), ..AttentionOptions::causal() };
    let attended = g.scaled_dot_product_attention(q, k, v, &options);
    differentiated(&mut g, &[masked, attended], -2.5);
    let x = [-INF, -INF, -INF, -INF, 1.0, -INF, 1.0, 0.5, -INF, -INF, -INF, 2.0];
    let f = filled(&g, fed(&g, &[("rows", &x)]));
    let oracle = griffinfly_ir::eval::eval::<f64>(&g, &f).expect("fed");
    let of = |name: &str| {
        let output = g.outputs().iter().find(|o| o.name == name).expect("an output");
        oracle.get(output.value).data.clone()
    };
    let (y, d) = (of("y1"), of("drows"));
    let seen = |query: usize| query == 17 || query == 19;
    assert!(y.chunks(16).enumerate().all(|(i, row)| row.iter().all(|y| (*y != 0.0) == seen(i))), "{y:?}");
    assert!(d[..4] == [0.0; 4] && d.iter().all(|d| d.is_finite()) && d[4] != 0.0, "{d:?}");
    check("masked", &g, &f);
}

#[test]
fn device_losses_are_finite_for_large_logits_and_count_what_they_ignore() {
    let mut g = Graph::new();
    let (x, all) = (g.input("x", [5, 3]), g.input("all", [2, 3]));
    let (ids, none) = (g.input_ids("ids", [5]), g.input_ids("none", [2]));
    let log = g.log_softmax(x, 1);
    let rows = g.cross_entropy_rows(x, ids, Some(-1));
    let (mean, count) = g.cross_entropy_ignoring(x, ids, -1);
    let (zero, nothing) = g.cross_entropy_ignoring(all, none, -1);
    let targets = g.splat(0.25, [5, 3]);
    let binary = g.binary_cross_entropy_with_logits(x, targets, None, griffinfly_ir::ops::Reduction::None);
    differentiated(&mut g, &[log, rows, mean, zero, binary], -2.5);
    g.output("count", count);
    g.output("nothing", nothing);
    let logits = [1e4, -1e4, 0.0, -1e4, 1e4, 1e4, 0.0, 0.0, 0.0, -1e4, -1e4, -1e4, 3.0, 1.0, 2.0];
    let f = fed(
        &g,
        &[
            ("x", &logits),
            ("ids", &[1.0, 0.0, 2.0, -1.0, 0.0]),
            ("all", &[1e4, NAN, -INF, 0.0, 1.0, INF]),
            ("none", &[-1.0, -1.0]),
        ],
    );
    // The logarithm of a sum of exponentials of 1e4 is rounded to 5e-4, and so are the logits themselves.
    check_within("logits", &g, &f, 1e-3);
}

/// Variance as a difference of large numbers is 0, negative or noise for a row of 1e4 and tiny differences.
#[test]
fn device_variance_survives_a_large_mean() {
    let (n, channels) = (96, 4);
    let mut g = Graph::new();
    let (x, row) = (g.input("x", [2, channels, n]), g.input("row", [3, 1100]));
    let weights = [g.splat(1.0, [channels]), g.splat(0.5, [channels])];
    let [batched, _, variance] = g.batch_norm(x, weights, 1e-8);
    let grouped = g.group_norm(x, 2, weights, 1e-8);
    let (gamma, beta) = (g.splat(1.0, [1100]), g.splat(0.0, [1100]));
    let layered = g.layer_norm(row, gamma, beta, 1e-8);
    for (name, v) in
        [("batched", batched), ("variance", variance), ("grouped", grouped), ("layered", layered)]
    {
        g.output(name, v);
    }
    let tiny = |count: usize| -> Vec<f64> {
        (0..count).map(|i| f64::from(1e4f32 + (i * 37 % 61) as f32 / 256.0)).collect()
    };
    let f = fed(&g, &[("x", &tiny(2 * channels * n)), ("row", &tiny(3300))]);
    let oracle = griffinfly_ir::eval::eval::<f64>(&g, &f).expect("fed");
    assert!(oracle.get(variance).data.iter().all(|v| (1e-3..1e-2).contains(v)));
    // The mean itself is rounded to 1e-3 of the deviation.
    check_within("variance", &g, &f, 1e-2);
}

#[test]
fn device_integers_wrap_and_divide_downwards() {
    let pairs = [
        (i32::MAX, i32::MAX),
        (i32::MIN, -1),
        (i32::MIN, i32::MIN),
        (i32::MAX, i32::MIN),
        (46_341, 46_341),
        (123_456_789, -987_654_321),
        (-7, 2),
        (7, -2),
        (-7, -2),
        (5, 0),
    ];
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(|p| (f64::from(p.0), f64::from(p.1))).unzip();
    let mut g = Graph::new();
    let [x, y] = ["a", "b"].map(|name| g.input_ids(name, [pairs.len()]));
    let results = [
        g.add(x, y),
        g.sub(x, y),
        g.mul(x, y),
        g.neg(x),
        g.abs(x),
        g.floor_divide(x, y),
        g.remainder(x, y),
        g.sum(y, &[0]),
    ];
    results.iter().enumerate().for_each(|(i, v)| g.output(&i.to_string(), *v));
    let f = fed(&g, &[("a", &a), ("b", &b)]);
    check_within("integers", &g, &f, 0.0);
}

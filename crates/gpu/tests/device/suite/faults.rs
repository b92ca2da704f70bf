//! Faults that released systems of this kind had in their kernels, each as a test of the whole kind: through the compiler, on the
//! device under test, against the oracle. The list of all is in the tests of `griffinfly-ir`, at the top of `pitfalls.rs`.

use super::{Feeds, run_graph, with_device};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{Graph, LeafKind, Value};
use griffinfly_ir::ops::{AttentionOptions, SampleInput, Window2d};
use griffinfly_ir::types::DType;

/// A loss that sees every element of every value with another weight, behind a coefficient.
pub(super) fn weighted(g: &mut Graph, values: &[Value], coefficient: f32) -> Value {
    let mut loss = g.scalar(0.0);
    for (seed, v) in values.iter().enumerate() {
        let dims = g.dims(*v).to_vec();
        let weights = SampleInput::uniform(&dims, 0.5, 1.5).values(seed as u64 + 77);
        let weights: Vec<f32> = weights.into_iter().map(|w| w as f32).collect();
        let w = g.constant(&weights, dims);
        let product = g.mul(*v, w);
        let sum = g.sum_all(product);
        loss = g.add(loss, sum);
    }
    g.scale(loss, coefficient)
}

/// Makes values and the gradients of their weighted sum in all float inputs the outputs.
pub(super) fn differentiated(g: &mut Graph, values: &[Value], coefficient: f32) {
    let loss = weighted(g, values, coefficient);
    let is_wanted = |kind: &LeafKind, dtype: DType| *kind == LeafKind::Input && dtype == DType::F32;
    let names: Vec<String> =
        g.leaves().filter(|(_, l)| is_wanted(&l.kind, l.ty.dtype)).map(|(_, l)| l.name.clone()).collect();
    let inputs: Vec<Value> = names.iter().filter_map(|n| g.leaf(n)).collect();
    let found = gradients(g, loss, &inputs).expect("differentiable");
    values.iter().enumerate().for_each(|(i, v)| g.output(&format!("y{i}"), *v));
    names.iter().zip(found).for_each(|(name, d)| g.output(&format!("d{name}"), d));
}

/// Seeded contents of every input that has none yet.
pub(super) fn filled(g: &Graph, mut feeds: Feeds) -> Feeds {
    for (k, (_, leaf)) in g.leaves().filter(|(_, l)| l.kind == LeafKind::Input).enumerate() {
        let data = || SampleInput::f32(&leaf.ty.dims).values(k as u64 + 5);
        feeds.entry(leaf.name.clone()).or_insert_with(|| Array { ty: leaf.ty.clone(), data: data() });
    }
    feeds
}

/// Runs the graph and compares all outputs with the oracle, relative to the largest expected value of each.
pub(super) fn check(what: &str, g: &Graph, feeds: &Feeds) {
    check_within(what, g, feeds, 2e-5);
}

/// The same with another tolerance.
pub(super) fn check_within(what: &str, g: &Graph, feeds: &Feeds, tolerance: f64) {
    g.finish().unwrap_or_else(|e| panic!("{what}: {e}"));
    let oracle = eval::<f64>(g, feeds).unwrap_or_else(|e| panic!("{what}: {e}"));
    with_device(|device| {
        let found = run_graph(device, g, feeds);
        for o in g.outputs() {
            let expected = oracle.get(o.value);
            let finite = expected.data.iter().filter(|y| y.is_finite());
            let scale = finite.fold(0.0f64, |m, y| m.max(y.abs()));
            let got: Array<f64> = Array::from_words(&expected.ty, &found[&o.name]);
            for (i, (x, y)) in got.data.iter().zip(&expected.data).enumerate() {
                let near = (x - y).abs() <= tolerance * scale;
                let same = x == y || (x.is_nan() && y.is_nan()) || (y.is_finite() && near);
                assert!(same, "{what} '{}' [{i}]: {x}, expected {y}", o.name);
            }
        }
    });
}

fn check_filled(what: &str, g: &Graph) {
    check(what, g, &filled(g, Feeds::new()));
}

/// The backward pass dropped what lies beyond element 63 of wide heads where sequences were short; heads of other widths took the
/// pipeline of the last one; causal rows from 16 on were cut.
#[test]
fn device_attention_uses_every_head_dimension_beyond_sixty_four_and_every_row_beyond_sixteen() {
    let mut g = Graph::new();
    let mut results = Vec::new();
    for (width, queries, keys) in [(72, 3, 5), (16, 17, 17), (72, 19, 19)] {
        let [q, k, v] = [("q", queries), ("k", keys), ("v", keys)]
            .map(|(name, length)| g.input(&format!("{name}{width}_{queries}"), [1, length, 2, width]));
        results.push(g.scaled_dot_product_attention(q, k, v, &AttentionOptions::causal()));
    }
    differentiated(&mut g, &results, -2.5);
    check_filled("attention", &g);
}

/// Weight gradients of norms read beyond the last of two or three rows, or raced.
#[test]
fn device_norm_weight_gradients_of_few_rows_and_many() {
    for (rows, channels) in [(1, 6), (2, 70), (3, 10), (67, 4)] {
        let mut g = Graph::new();
        let x = g.input("x", [rows, channels, 3]);
        let line = g.input("line", [rows, channels]);
        let weights = |g: &mut Graph, norm: &str| {
            ["gamma", "beta"].map(|name| g.input(&format!("{norm}.{name}"), [channels]))
        };
        let [a, b, c, d] = ["layer", "rms", "group", "batch"].map(|norm| weights(&mut g, norm));
        let results = [
            g.layer_norm(line, a[0], a[1], 1e-2),
            g.rms_norm(line, b[0], 1e-2),
            g.group_norm(x, 2, c, 1e-2),
            g.batch_norm(x, d, 1e-2)[0],
        ];
        differentiated(&mut g, &results, -2.5);
        check_filled(&format!("{rows} rows of {channels}"), &g);
    }
}

/// Input gradients right for "same" padding alone, widths at which division by reciprocals is off by one, depths that are no
/// multiple of 4, batches that end within a tile.
#[test]
fn device_convolution_gradients_of_awkward_sizes() {
    let mut g = Graph::new();
    let mut results = Vec::new();
    for (width, stride, padding, channels) in [(41, 1, [0, 0], 3), (47, 2, [2, 1], 5), (55, 3, [0, 2], 1)] {
        let x = g.input(&format!("x{width}"), [3, channels, 3, width]);
        let w = g.input(&format!("w{width}"), [5, channels, 2, 3]);
        let window = Window2d { stride: [1, stride], padding: [[1, 0], padding], ..Window2d::default() };
        results.push(g.conv2d(x, w, window));
    }
    differentiated(&mut g, &results, -2.5);
    check_filled("awkward widths", &g);
}

/// Very short sums gave zeros, the last columns of a tile went elsewhere, only the first batch was right where rows end within a
/// tile, operands changed roles.
#[test]
fn device_products_of_batches_that_end_within_tiles() {
    let mut g = Graph::new();
    let mut results = Vec::new();
    for (m, n, k) in [(5, 18, 1), (19, 33, 2), (66, 3, 3), (33, 50, 6)] {
        for transposed in [[false, false], [true, true]] {
            let dims = |flip: bool, [a, b]: [usize; 2]| if flip { [3, b, a] } else { [3, a, b] };
            let a = g.input(&format!("a{m}{}", transposed[0]), dims(transposed[0], [m, k]));
            let b = g.input(&format!("b{m}{}", transposed[1]), dims(transposed[1], [k, n]));
            results.push(g.matmul_with(a, b, transposed));
        }
    }
    differentiated(&mut g, &results, 0.75);
    check_filled("products", &g);
}

/// What half precision overflows at, and gradients it loses: nothing of a training is computed in it.
#[test]
fn device_keeps_large_values_and_tiny_gradients() {
    let mut g = Graph::new();
    let [a, b] = [("a", [9, 33]), ("b", [33, 17])].map(|(name, dims)| g.input(name, dims));
    let large = g.scale(a, 3e5);
    let y = g.matmul(large, b);
    let [x, w] = [("x", [2, 3, 9, 9]), ("w", [4, 3, 3, 3])].map(|(name, dims)| g.input(name, dims));
    let bright = g.scale(x, 1e5);
    let c = g.conv2d(bright, w, Window2d::strided(1).padded(1));
    // Gradients are around 1e-12 and smaller where they enter.
    differentiated(&mut g, &[y, c], 1e-12);
    check_filled("range", &g);
}

/// Kernels kept under a name that says too little: the same operation on the same shapes with another attribute.
#[test]
fn device_operations_that_differ_in_one_attribute_stay_apart() {
    let mut g = Graph::new();
    let (x, image) = (g.input("x", [6, 6]), g.input("image", [1, 2, 8, 8]));
    let (gamma, beta) = (g.input("gamma", [6]), g.input("beta", [6]));
    let kernel = g.input("kernel", [2, 2, 3, 3]);
    let qkv = g.input("qkv", [1, 6, 2, 8]);
    let mut results = Vec::new();
    for eps in [1e-5, 0.5] {
        results.push(g.layer_norm(x, gamma, beta, eps));
        results.push(g.rms_norm(x, gamma, eps));
    }
    for axis in [0, 1] {
        results.push(g.softmax(x, axis));
        results.push(g.cumsum_with(x, axis, false, axis == 0));
    }
    for (low, slope) in [(-0.5, 0.1), (-0.25, 0.3)] {
        results.push(g.clamp(x, Some(low), None));
        results.push(g.leaky_relu(x, slope));
    }
    let plain = Window2d::strided(1).padded(2);
    for window in [plain, plain.dilated(2), Window2d { padding: [[4, 0], [0, 4]], ..plain }] {
        results.push(g.conv2d(image, kernel, window));
    }
    for (kernel, count_padding) in [(2, true), (3, true), (3, false)] {
        let window = Window2d::strided(2).padded(1);
        results.push(g.avg_pool2d(image, [kernel; 2], window, count_padding));
        results.push(g.max_pool2d(image, [kernel; 2], window));
    }
    for scale in [None, Some(2.0)] {
        let options = AttentionOptions { scale, ..AttentionOptions::causal() };
        results.push(g.scaled_dot_product_attention(qkv, qkv, qkv, &options));
    }
    for groups in [1, 2] {
        let weights = [g.splat(1.0, [2]), g.splat(0.0, [2])];
        results.push(g.group_norm(image, groups, weights, 1e-3));
    }
    differentiated(&mut g, &results, -2.5);
    check_filled("attributes", &g);
}

/// Results that are dropped because something was fused into them, or that are given under several names.
#[test]
fn device_outputs_may_be_any_value() {
    let mut g = Graph::new();
    let x = g.input("x", [7, 33]);
    let w = g.input("w", [33, 5]);
    let constant = g.constant(&[3.0, -1.0, 0.5], [3]);
    let product = g.matmul(x, w);
    let active = g.relu(product);
    let mean = g.mean_keep(active, &[1]);
    let centred = g.sub(active, mean);
    let turned = g.transpose(centred);
    for (name, v) in [
        ("turned", turned),
        ("active", active),
        ("product", product),
        ("mean", mean),
        ("x", x),
        ("again", active),
        ("constant", constant),
        ("centred", centred),
    ] {
        g.output(&format!("the {name}").replace(' ', "_"), v);
    }
    check_filled("outputs", &g);
}

/// Sums by id that overwrite, or race where many rows have one id.
#[test]
fn device_sums_the_gradients_of_many_equal_ids() {
    let mut g = Graph::new();
    let table = g.input("table", [4, 37]);
    let ids = g.input_ids("ids", [700]);
    let rows = g.embedding(table, ids);
    let (x, at) = (g.input("x", [5, 9]), g.input_ids("at", [5, 200]));
    let picked = g.gather(x, 1, at);
    differentiated(&mut g, &[rows, picked], -2.5);
    let of = |name: &str, data: Vec<f64>| {
        let ty = g.ty(g.leaf(name).expect("a leaf")).expect("typed").clone();
        (name.to_string(), Array { ty, data })
    };
    // One id for most rows, one for none.
    let most = (0..700).map(|i| if i % 9 == 0 { f64::from(i / 9 % 2) } else { 3.0 }).collect();
    let all = (0..1000).map(|i| f64::from(i * 7 % 1000 / 112)).collect();
    check("ids", &g, &filled(&g, Feeds::from([of("ids", most), of("at", all)])));
}

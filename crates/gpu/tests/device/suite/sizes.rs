//! Sizes larger than any tile, row or workgroup, through the compiler: what samples are too small to reach.

use super::{Feeds, run_graph, with_device};
use griffinfly_gpu::Device;
use griffinfly_ir::array::Array;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::{AttentionOptions, Interpolation, RotaryStyle, SampleInput, Window2d};
use griffinfly_ir::types::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// Runs a graph over seeded inputs and compares its outputs with the oracle, relative to the largest expected value.
fn check(what: &str, make: impl FnOnce(&mut Graph) -> Vec<Value>) {
    with_device(|device| check_on(device, what, make));
}

fn check_on(device: &Arc<dyn Device>, what: &str, make: impl FnOnce(&mut Graph) -> Vec<Value>) {
    let mut g = Graph::new();
    let outputs = make(&mut g);
    for (i, v) in outputs.into_iter().enumerate() {
        g.output(&format!("y{i}"), v);
    }
    g.finish().unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut feeds = Feeds::new();
    for (k, (_, leaf)) in g.leaves().filter(|(_, l)| !l.name.is_empty()).enumerate() {
        let sample = SampleInput::f32(&leaf.ty.dims);
        let data = sample.values(k as u64 + 5);
        feeds.insert(leaf.name.clone(), Array { ty: TensorType::f32(leaf.ty.dims.clone()), data });
    }
    let oracle = eval::<f64>(&g, &feeds).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = run_graph(device, &g, &feeds);
    for o in g.outputs() {
        let expected = oracle.get(o.value);
        let scale = expected.data.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let got: Array<f64> = Array::from_words(&expected.ty, &found[&o.name]);
        for (i, (x, y)) in got.data.iter().zip(&expected.data).enumerate() {
            assert!(
                (x - y).abs() <= 1e-5 * (scale + y.abs()),
                "{what} '{}' [{i}]: {x}, expected {y}",
                o.name
            );
        }
    }
}

#[test]
fn device_reduces_long_rows_and_columns() {
    check("rows", |g| {
        let x = g.input("x", [3, 70_001]);
        vec![g.sum(x, &[1]), g.max(x, &[1])]
    });
    check("columns", |g| {
        let x = g.input("x", [20_011, 7]);
        vec![g.sum(x, &[0]), g.mean(x, &[0, 1])]
    });
}

#[test]
fn device_multiplies_sizes_around_its_tiles() {
    for (m, n, k) in [(1, 129, 257), (127, 1, 64), (128, 128, 128), (131, 67, 263), (16, 260, 1031)] {
        check(&format!("{m}x{n}x{k}"), |g| {
            let (a, b) = (g.input("a", [m, k]), g.input("b", [k, n]));
            vec![g.matmul(a, b)]
        });
    }
}

#[test]
fn device_maps_more_workgroups_than_one_dimension_holds() {
    check("map", |g| {
        let x = g.input("x", [4, 1_100_003]);
        let b = g.input("b", [1_100_003]);
        let y = g.mul(x, b);
        vec![g.relu(y)]
    });
}

#[test]
fn device_normalises_a_row_longer_than_any_workgroup_memory() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 70_001]);
    let y = g.softmax(x, 1);
    g.output("y", y);
    let sample = SampleInput::f32(&[2, 70_001]);
    let data = sample.values(9);
    let feeds =
        Feeds::from([("x".to_string(), Array { ty: TensorType::f32([2, 70_001]), data: data.clone() })]);
    let mut found = HashMap::new();
    with_device(|device| found = run_graph(device, &g, &feeds));
    for (row, words) in data.chunks(70_001).zip(found["y"].chunks(70_001)) {
        let sum: f64 = row.iter().map(|v| v.exp()).sum();
        for (i, (v, w)) in row.iter().zip(words).enumerate() {
            let (got, expected) = (f64::from(f32::from_bits(*w)), v.exp() / sum);
            assert!((got - expected).abs() <= 1e-5 * expected, "[{i}]: {got}, expected {expected}");
        }
    }
}

#[test]
fn device_normalises_channels_longer_than_a_workgroup() {
    check("channels", |g| {
        let x = g.input("x", [3, 4, 97, 101]);
        let [gamma, beta] = ["gamma", "beta"].map(|name| g.input(name, [4]));
        let [y, _, variance] = g.batch_norm(x, [gamma, beta], 1e-5);
        vec![y, variance, g.group_norm(x, 2, [gamma, beta], 1e-5)]
    });
}

#[test]
fn device_convolves_groups_and_interpolates_images() {
    check("images", |g| {
        let x = g.input("x", [2, 24, 33, 37]);
        let (depthwise, grouped) = (g.input("d", [24, 1, 3, 3]), g.input("g", [36, 8, 3, 3]));
        let window = Window2d::strided(1).padded(2).dilated(2);
        let y = g.conv2d_grouped(x, depthwise, window, 24);
        let z = g.conv2d_grouped(y, grouped, Window2d::strided(2).padded(1), 3);
        let t = g.conv_transpose2d([z, grouped], Window2d::strided(2).padded(1), [0, 0], 3);
        let up = g.upsample2d(z, [2, 3], Interpolation::Nearest);
        let smooth = g.resize2d(up, [51, 40], Interpolation::Linear { align_corners: false });
        vec![y, z, t, up, smooth]
    });
}

/// A tensor that one kernel reads element by element in its windows and four at a time in its epilogue.
#[test]
fn device_adds_a_residual_around_a_convolution() {
    check("residual", |g| {
        let (x, w) = (g.input("x", [2, 8, 16, 16]), g.input("w", [8, 8, 3, 3]));
        let window = Window2d::strided(1).padded(1);
        let mut h = g.conv2d(x, w, window);
        for _ in 0..2 {
            let y = g.conv2d(h, w, window);
            let y = g.scale(y, 0.25);
            h = g.add(h, y);
        }
        vec![h]
    });
}

/// Packed projections, rotary embedding, grouped heads and their gradients, all joined by fusion: no view is copied.
#[test]
fn device_attends_over_packed_projections() {
    let (b, s, hq, hkv, d) = (2, 40, 6, 2, 16);
    check("attention", |g| {
        let (x, w) = (g.input("x", [b * s, 24]), g.input("w", [(hq + 2 * hkv) * d, 24]));
        let qkv = g.matmul_with(x, w, [false, true]);
        let qkv = g.split_axis(qkv, 0, &[b, s]);
        let heads = g.split_axis(qkv, 2, &[hq + 2 * hkv, d]);
        let part =
            |g: &mut Graph, from: usize, to: usize| g.slice(heads, 2, from as isize, Some(to as isize));
        let (q, k) = (part(g, 0, hq), part(g, hq, hq + hkv));
        let v = part(g, hq + hkv, hq + 2 * hkv);
        let table = g.rotary_constants(s, d, 10_000.0);
        let [q, k] = [q, k].map(|x| g.rotary_embedding(x, table, RotaryStyle::HalfSplit));
        let y = g.scaled_dot_product_attention(q, k, v, &AttentionOptions::causal());
        let y = g.merge_axes(y, 2, 2);
        let out = g.input("out", [24, hq * d]);
        let y = g.matmul_with(y, out, [false, true]);
        let square = g.mul(y, y);
        let loss = g.mean_all(square);
        let mut results = griffinfly_ir::autodiff::gradients(g, loss, &[x, w, out]).expect("differentiable");
        results.push(y);
        results
    });
}

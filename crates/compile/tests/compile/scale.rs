//! Contractions that scale their results instead of waiting for the rows of their left factor to be scaled.

use crate::programs::Feeds;
use crate::terms::{compared, run};
use griffinfly_compile::lower::LoopGraph;
use griffinfly_compile::{Options, loops};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::loops::{Contract, LoopKind};
use griffinfly_ir::target::{Contract as Precision, HalfFormat, NumericClass, Target};
use griffinfly_ir::types::TensorType;

fn contractions(made: &LoopGraph) -> Vec<&Contract> {
    let kinds = made.loops.iter().map(|node| &node.l.kind);
    kinds.filter_map(|kind| if let LoopKind::Contract(c) = kind { Some(c) } else { None }).collect()
}

fn rows(made: &LoopGraph) -> usize {
    made.loops.iter().filter(|node| matches!(node.l.kind, LoopKind::Row(_))).count()
}

/// `x gamma` over its root mean square, times the transpose of each weight.
fn normed(g: &mut Graph, dims: &[usize], widths: &[usize]) -> Vec<Value> {
    let wide = dims[dims.len() - 1];
    let (x, gamma) = (g.input("x", dims.to_vec()), g.input("gamma", [wide]));
    let y = g.rms_norm(x, gamma, 1e-5);
    let weight = |(i, n): (usize, &usize)| {
        let w = g.input(&format!("w{i}"), [*n, wide]);
        g.matmul_with(y, w, [false, true])
    };
    widths.iter().enumerate().map(weight).collect()
}

#[test]
fn products_of_a_norm_do_without_it() {
    for dims in [vec![7, 12], vec![2, 5, 9], vec![1, 1, 1], vec![1, 33]] {
        let mut g = Graph::new();
        for (i, y) in normed(&mut g, &dims, &[5, 1, 8]).into_iter().enumerate() {
            g.output(&format!("y{i}"), y);
        }
        let made = compared(&g);
        let all = contractions(&made);
        assert_eq!((rows(&made), all.len()), (0, 3), "{made}");
        assert!(all.iter().all(|c| c.has_row_sum() && c.carries() == 2));
    }
}

#[test]
fn both_products_of_a_gate_are_scaled() {
    let mut g = Graph::new();
    let ys = normed(&mut g, &[5, 12], &[9, 9]);
    let gate = ys[0].silu(&mut g);
    let y = g.mul(gate, ys[1]);
    let residual = g.input("residual", [5, 9]);
    let y = g.add(y, residual);
    g.output("y", y);
    let made = compared(&g);
    let all = contractions(&made);
    assert_eq!((rows(&made), all.len()), (0, 1), "{made}");
    assert_eq!((all[0].sums(), all[0].carries()), (2, 3));
    assert_eq!(all[0].a, all[0].more[0].a, "one left factor");
}

#[test]
fn the_backward_pass_keeps_what_it_needs() {
    let mut g = Graph::new();
    let (x, gamma) = (g.input("x", [6, 12]), g.input("gamma", [12]));
    let weights = [("v", 9), ("w", 4)].map(|(name, n)| g.input(name, [n, 12]));
    let normal = g.rms_norm(x, gamma, 1e-5);
    let ys = weights.map(|w| g.matmul_with(normal, w, [false, true]));
    let (a, b) = (g.mul(ys[0], ys[0]), g.mul(ys[1], ys[1]));
    let (a, b) = (g.mean_all(a), g.mean_all(b));
    let loss = g.add(a, b);
    g.output("loss", loss);
    for (i, d) in gradients(&mut g, loss, &[x, gamma, weights[0], weights[1]])
        .expect("differentiable")
        .into_iter()
        .enumerate()
    {
        g.output(&format!("d{i}"), d);
    }
    let made = compared(&g);
    assert_eq!(contractions(&made).iter().filter(|c| c.has_row_sum()).count(), 2, "{made}");
}

/// A mean that is subtracted, a norm that is a right factor, products along another axis, and a norm that is added too.
#[test]
fn what_is_not_scaled_stays() {
    let refused = |build: &dyn Fn(&mut Graph) -> Value| {
        let mut g = Graph::new();
        let y = build(&mut g);
        g.output("y", y);
        let made = compared(&g);
        assert!(rows(&made) == 1 && contractions(&made).iter().all(|c| !c.has_row_sum()), "{made}");
    };
    refused(&|g| {
        let (x, w) = (g.input("x", [5, 8]), g.input("w", [8, 3]));
        let (gamma, beta) = (g.input("gamma", [8]), g.input("beta", [8]));
        let y = g.layer_norm(x, gamma, beta, 1e-5);
        g.matmul(y, w)
    });
    let norm = |g: &mut Graph, dims: [usize; 2]| {
        let (x, gamma) = (g.input("x", dims), g.input("gamma", [dims[1]]));
        g.rms_norm(x, gamma, 1e-5)
    };
    refused(&|g| {
        let (y, w) = (norm(g, [8, 5]), g.input("w", [3, 8]));
        g.matmul(w, y)
    });
    refused(&|g| {
        let (y, w) = (norm(g, [8, 5]), g.input("w", [8, 3]));
        g.matmul_with(y, w, [true, false])
    });
    refused(&|g| {
        let (y, w) = (norm(g, [8, 8]), g.input("w", [8, 8]));
        let z = g.matmul(y, w);
        g.add(z, y)
    });
}

/// Rows of zeros, with NaN, with an infinity, with squares that overflow and that vanish: as without the move.
#[test]
fn rows_of_any_size_are_as_before() {
    let (m, k, n) = (7, 24, 5);
    let mut g = Graph::new();
    let y = normed(&mut g, &[m, k], &[n]).remove(0);
    g.output("y", y);
    g.finish().expect("builds");
    let mut feeds: Feeds = crate::programs::feeds(&g);
    let mut x: Vec<f64> = (0..m * k).map(|i| ((i * 37 % 101) as f64 - 50.0) / 50.0).collect();
    x[k..2 * k].fill(0.0);
    x[2 * k + 3] = f64::NAN;
    x[3 * k + 5] = f64::NEG_INFINITY;
    x[4 * k..5 * k].iter_mut().for_each(|x| *x *= 1e24);
    x[5 * k..6 * k].iter_mut().for_each(|x| *x *= 1e-24);
    feeds.insert("x".into(), Array { ty: TensorType::f32([m, k]), data: x });
    let target = Target { max_bindings: 16, ..Target::minimal_vulkan() };
    let [scaled, plain] = [target, Target::host()].map(|target| {
        let made = loops(&g, &target, &Options::default()).expect("compiles");
        let words = run(&made, &feeds).remove("y").expect("is an output");
        (rows(&made), words.into_iter().map(f32::from_bits).collect::<Vec<f32>>())
    });
    assert_eq!((scaled.0, plain.0), (0, 1));
    for (i, (x, y)) in scaled.1.iter().zip(&plain.1).enumerate() {
        assert!(
            x.to_bits() == y.to_bits()
                || x.is_nan() && y.is_nan()
                || (x - y).abs() <= 2e-5 * y.abs().max(1e-6),
            "[{i}]: {x}, {y}"
        );
    }
    assert!(plain.1[n..2 * n].iter().chain(&plain.1[4 * n..5 * n]).all(|y| *y == 0.0));
    assert!(plain.1[2 * n..4 * n].iter().all(|y| y.is_nan()));
}

/// Kernels for matrix units sum rows too: the contract does not matter.
#[test]
fn matrix_units_do_without_norms_too() {
    let target = Target {
        max_bindings: 16,
        is_hardware: true,
        compute_units: 132,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        numeric_classes: vec![NumericClass::F32, NumericClass::Bf16x3, NumericClass::Bf16x2],
        matrix_formats: vec![HalfFormat::Bf16],
        ..Target::minimal_vulkan()
    };
    let of = |contract, width: usize| {
        let mut g = Graph::new();
        let y = normed(&mut g, &[width, width], &[width]).remove(0);
        g.output("y", y);
        rows(&loops(&g, &target, &Options { contract, ..Options::default() }).expect("compiles"))
    };
    let (strict, fast) = (Precision::Strict, Precision::Fast);
    assert_eq!([of(strict, 2048), of(fast, 2048), of(fast, 64)], [0, 0, 0]);
}

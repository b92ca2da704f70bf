//! Rebinding: the same definition at other shapes.

use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::ops::{Interpolation, Window2d};

fn model(batch: usize) -> Graph {
    let mut g = Graph::new();
    let tokens = g.input_ids("tokens", [batch, 5]);
    let labels = g.input_ids("labels", [batch]);
    let table = g.parameter("table", [11, 8], Init::Normal(0.02.into()));
    let [gamma, beta] = [("gamma", Init::ONES), ("beta", Init::ZEROS)].map(|(n, i)| g.parameter(n, [8], i));
    let w = g.parameter("w", [3, 40], Init::Normal(0.02.into()));
    let x = g.embedding(table, tokens);
    let x = g.layer_norm(x, gamma, beta, 1e-5);
    let scores = g.matmul_with(x, x, [false, true]);
    let attention = g.softmax(scores, -1);
    let x = g.matmul(attention, x);
    let x = g.rms_norm(x, gamma, 1e-6).gelu(&mut g).flatten(&mut g, 1);
    let logits = g.matmul_with(x, w, [false, true]);
    let loss = g.cross_entropy(logits, labels);
    let (ignoring, count) = g.cross_entropy_ignoring(logits, labels, -1);
    let best = g.argmax(logits, 1);
    for (name, v) in [("loss", loss), ("ignoring", ignoring), ("count", count), ("best", best)] {
        g.output(name, v);
    }
    g
}

#[test]
fn another_batch_equals_a_fresh_build() {
    let small = model(4);
    small.finish().unwrap();
    let rebound = small.rebind(&[("tokens", &[9, 5]), ("labels", &[9])]).unwrap();
    assert_eq!(rebound.verify(), vec![]);
    assert_eq!(rebound.to_string(), model(9).to_string());
    assert_eq!(
        rebound.rebind(&[("tokens", &[4, 5]), ("labels", &[4])]).unwrap().to_string(),
        small.to_string()
    );
}

/// Counts of elements and sizes of images follow the input.
#[test]
fn image_models_follow_the_input() {
    let model = |dims: [usize; 4]| {
        let mut g = Graph::new();
        let x = g.input("x", dims);
        let [gamma, beta] =
            [("gamma", Init::ONES), ("beta", Init::ZEROS)].map(|(n, i)| g.parameter(n, [4], i));
        let k = g.parameter("k", [4, 2, 3, 3], Init::Normal(0.02.into()));
        let running = g.state("running", [4], 1.0);
        let [y, _, variance] = g.batch_norm(x, [gamma, beta], 1e-5);
        g.update_running(running, variance, 0.1);
        let y = g.group_norm(y, 2, [gamma, beta], 1e-5);
        let y = g.avg_pool2d(y, [2, 2], Window2d::strided(2).ceil(), true);
        let y = g.conv2d_grouped(y, k, Window2d::strided(1).padded(2).dilated(2), 2);
        let y = g.conv_transpose2d([y, k], Window2d::strided(2).padded(1), [1, 1], 2);
        let y = g.upsample2d(y, [2, 2], Interpolation::Linear { align_corners: false });
        let y = g.global_max_pool2d(y);
        g.output("y", y);
        g
    };
    let small = model([2, 4, 5, 6]);
    small.finish().unwrap();
    let rebound = small.rebind(&[("x", &[3, 4, 8, 7])]).unwrap();
    assert_eq!(rebound.to_string(), model([3, 4, 8, 7]).to_string());
}

#[test]
fn what_does_not_fit_is_refused_with_everything_that_is_wrong() {
    let g = model(4);
    let unknown = g.rebind(&[("token", &[9, 5])]).unwrap_err();
    assert!(unknown.to_string().contains("'token'"), "{unknown}");
    let parameter = g.rebind(&[("table", &[9, 5])]).unwrap_err();
    assert!(parameter.to_string().contains("'table'"), "{parameter}");
    let half = g.rebind(&[("tokens", &[9, 5])]).unwrap_err();
    assert!(half.0.iter().any(|e| e.op == "cross_entropy"), "{half}");
    let empty = g.rebind(&[("tokens", &[0, 5]), ("labels", &[0])]).unwrap_err();
    assert!(empty.to_string().contains("is 0"), "{empty}");
    let huge = g.rebind(&[("tokens", &[usize::MAX, 5]), ("labels", &[usize::MAX])]).unwrap_err();
    assert!(huge.to_string().contains("elements"), "{huge}");
}

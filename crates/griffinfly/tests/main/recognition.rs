//! A model written out in small operations is trained as the same composites as one that names them.

use crate::fixtures::{NUMBERS, ROWS};
use griffinfly::inspect::with_updates;
use griffinfly::{Device, Graph, GraphExt, Init, Input, Optimizer, Trainer, TrainingGraph, Value, nn};

const WIDTH: usize = 8;

/// Layer norm over the last axis.
fn layer_norm(g: &mut Graph, [x, gamma, beta]: [Value; 3], written_out: bool) -> Value {
    if !written_out {
        return g.layer_norm(x, gamma, beta, 1e-5);
    }
    let mean = g.mean_keep(x, &[-1]);
    let centred = g.sub(x, mean);
    let square = g.mul(centred, centred);
    let variance = g.mean_keep(square, &[-1]);
    let eps = g.scalar(1e-5);
    let shifted = g.add(variance, eps);
    let root = g.sqrt(shifted);
    let normal = g.div(centred, root);
    let scaled = g.mul(normal, gamma);
    g.add(scaled, beta)
}

/// GELU with the exact error function.
fn gelu(g: &mut Graph, x: Value, written_out: bool) -> Value {
    if !written_out {
        return g.gelu(x);
    }
    let (root, one) = (g.scalar(std::f32::consts::SQRT_2), g.scalar(1.0));
    let z = g.div(x, root);
    let e = g.erf(z);
    let e = g.add(e, one);
    let y = g.mul(x, e);
    g.scale(y, 0.5)
}

/// Softmax over the last axis.
fn softmax(g: &mut Graph, x: Value, written_out: bool) -> Value {
    if !written_out {
        return g.softmax(x, -1);
    }
    let max = g.max(x, &[-1]);
    let max = g.insert_axes(max, &[1]);
    let shifted = g.sub(x, max);
    let e = g.exp(shifted);
    let sum = g.sum_keep(e, &[-1]);
    g.div(e, sum)
}

fn model(written_out: bool) -> TrainingGraph {
    let mut g = Graph::new();
    let (x, target) = (g.input("x", [ROWS, 3]), g.input("target", [ROWS, 3]));
    let (gamma, beta) =
        (g.parameter("gamma", [WIDTH], Init::ONES), g.parameter("beta", [WIDTH], Init::ZEROS));
    let h = nn::Linear::new("hidden", 3, WIDTH).apply(&mut g, x);
    let h = layer_norm(&mut g, [h, gamma, beta], written_out);
    let h = gelu(&mut g, h, written_out);
    let h = nn::Linear::new("head", WIDTH, 3).apply(&mut g, h);
    let y = softmax(&mut g, h, written_out);
    let loss = g.mse(y, target);
    g.training(loss).unwrap()
}

/// How often an operation stands in the graph that is trained.
fn count(graph: &TrainingGraph, operation: &str) -> usize {
    let text = with_updates(graph, &Optimizer::adam(0.01)).unwrap().to_string();
    text.lines().filter(|line| line.contains(&format!(" = {operation} "))).count()
}

#[test]
fn written_out_composites_are_trained_as_composites() {
    let (written, named) = (model(true), model(false));
    let in_written = written.graph().to_string();
    for composite in ["layer_norm", "gelu", "softmax"] {
        assert!(!in_written.contains(&format!(" = {composite} ")), "{composite} is not written out");
    }
    for operation in ["layer_norm", "layer_norm_grad", "gelu", "softmax", "softmax_grad"] {
        assert_eq!((count(&written, operation), count(&named, operation)), (1, 1), "{operation}");
    }
    let rebound = written.rebind(&[("x", &[9, 3]), ("target", &[9, 3])]).unwrap();
    assert_eq!(count(&rebound, "layer_norm_grad"), 1);
}

#[test]
fn they_give_the_same_training() {
    let trainer = |graph| Trainer::new(&Device::host(), graph, Optimizer::adam(0.02)).unwrap();
    let (mut written, mut named) = (trainer(model(true)), trainer(model(false)));
    assert_eq!(written.program().loops, named.program().loops);
    let target: Vec<f32> = NUMBERS.iter().map(|x| 0.1 * x).collect();
    let inputs = [("x", Input::f32(&NUMBERS)), ("target", Input::f32(&target))];
    let losses: Vec<[f32; 2]> =
        (0..8).map(|_| [written.step(&inputs).unwrap(), named.step(&inputs).unwrap()]).collect();
    for [a, b] in &losses {
        assert!((a - b).abs() <= 1e-6 * b.abs(), "{losses:?}");
    }
    assert!(losses[7][1] < losses[0][1], "{losses:?}");
    for name in named.weights().names() {
        let (a, b) = (written.weights().get(name).unwrap(), named.weights().get(name).unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-6), "{name}: {a:?} {b:?}");
    }
}

//! The shapes of `bench/shapes.json` from the graphs of the workloads, and two square products.
//!
//! Per workload and kind: the distinct operations of the training graph's forward pass that cost most, counting how often each
//! is used.

use super::shape::{Case, Pass, Shape};
use crate::workload::{Name, Shape as Inputs, Size};
use griffinfly::Graph;
use std::path::Path;

/// How many of a kind are taken per workload.
const GEMMS: usize = 3;
const CONVS: usize = 4;
const ATTENTIONS: usize = 2;

/// The operation of a node, if it is one that is measured.
fn shape(graph: &Graph, node: &griffinfly::ir::graph::Node) -> Option<Shape> {
    let dims = |i: usize| graph.dims(node.inputs()[i]).to_vec();
    let four = |i: usize| <[usize; 4]>::try_from(dims(i)).ok();
    let op = serde_json::to_value(node.op()).unwrap();
    let (name, payload) = op.as_object()?.iter().next()?;
    match name.as_str() {
        "matmul" => {
            let (x, w, y) = (dims(0), dims(1), node.types()[0].dims.clone());
            let is_linear = w.len() == 2 && payload["transpose_b"] == true && payload["transpose_a"] == false;
            let n = *y.last()?;
            is_linear.then(|| Shape::Gemm { m: y.iter().product::<usize>() / n, n, k: x[x.len() - 1] })
        }
        "conv2d" => {
            let stride = serde_json::from_value(payload["stride"].clone()).unwrap();
            let padding = serde_json::from_value(payload["padding"].clone()).unwrap();
            let groups = serde_json::from_value(payload["groups"].clone()).unwrap_or(1);
            payload["dilation"].is_null().then_some(())?;
            Some(Shape::Conv { x: four(0)?, w: four(1)?, stride, padding, groups })
        }
        "attention" => {
            let causal = payload["mask"]["causal"] == true;
            (payload["mask"]["window"].is_null() && payload["bias"] == false).then_some(())?;
            Some(Shape::Attention { q: four(0)?, k: four(1)?, causal })
        }
        _ => None,
    }
}

/// The shapes of one workload: the most expensive first, by kind.
fn of(name: Name) -> Vec<Shape> {
    let model = name.at(Size::Full).model(Inputs::Full).unwrap();
    let mut found: Vec<(Shape, u64)> = Vec::new();
    for shape in model.graph.nodes().iter().filter_map(|node| shape(&model.graph, node)) {
        let cost = shape.operations(Pass::Forward);
        match found.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, sum)) => *sum += cost,
            None => found.push((shape, cost)),
        }
    }
    // Stable: equal costs stay in the order of the graph.
    found.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    let of_kind = |kind: &str, most: usize| {
        let own = found.iter().map(|(shape, _)| shape).filter(|shape| shape.kind().text() == kind);
        own.take(most).cloned().collect::<Vec<_>>()
    };
    [of_kind("gemm", GEMMS), of_kind("conv", CONVS), of_kind("attention", ATTENTIONS)].concat()
}

#[test]
fn golden_shapes() {
    // The same whatever device is tested.
    if std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_some() {
        return;
    }
    let mut cases: Vec<Case> = Vec::new();
    let squares = [1024, 4096].map(|side| ("square", Shape::Gemm { m: side, n: side, k: side }));
    let names = [Name::SmolLm2, Name::SmolVla, Name::UNet, Name::ResNet50, Name::Whisper];
    let taken =
        names.into_iter().flat_map(|name| of(name).into_iter().map(move |shape| (name.text(), shape)));
    for (of, shape) in squares.into_iter().chain(taken) {
        if !cases.iter().any(|case| case.shape == shape) {
            cases.push(Case { name: shape.name(), of: of.into(), shape });
        }
    }
    let lines: Vec<String> = cases.iter().map(|case| serde_json::to_string(case).unwrap()).collect();
    let text = format!("[\n  {}\n]\n", lines.join(",\n  "));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("shapes.json");
    if std::env::var_os("GRIFFINFLY_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "if this is meant: cargo xtask bless");
}

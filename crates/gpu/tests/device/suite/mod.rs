//! The op suite on a device: every sample of every operation and its gradient, through the compiler, against the oracle.
//!
//! The device is the host, or with `GRIFFINFLY_TEST_DEVICE=vulkan` the Vulkan driver the loader finds. Many samples share one
//! graph, so one program and one submission cover them; outputs lie in memory that held NaN patterns before.

#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr, reason = "tests")]

mod attention;
mod convolutions;
mod faults;
mod run;
mod semantics;
mod sizes;

use griffinfly_gpu::Device;
use griffinfly_ir::array::Array;
use griffinfly_ir::eval::eval;
use griffinfly_ir::graph::{Graph, LeafKind, Value};
use griffinfly_ir::ops::{Fragment, Sample, samples};
use std::sync::Arc;

pub(crate) use run::{Feeds, run_graph, with_device};

/// Joins one-sample graphs into one graph; leaf and output names get the sample's number in front.
fn join(graphs: &[(usize, Graph)]) -> Graph {
    let mut all = Graph::new();
    for (n, g) in graphs {
        let inputs: Vec<Value> = g
            .leaves()
            .filter(|(_, l)| l.kind == LeafKind::Input)
            .filter_map(|(_, l)| g.leaf(&l.name))
            .collect();
        let outer: Vec<Value> = g
            .leaves()
            .filter(|(_, l)| l.kind == LeafKind::Input)
            .map(|(_, l)| all.add_leaf(&format!("s{n}.{}", l.name), LeafKind::Input, l.ty.clone()))
            .collect();
        let outputs = g.outputs().iter().map(|o| o.value).collect();
        let made = all.inline(&Fragment { graph: g.clone(), inputs, outputs }, &outer);
        for (o, v) in g.outputs().iter().zip(made) {
            all.output(&format!("s{n}.{}", o.name), v);
        }
    }
    all
}

fn feeds_of(samples: &[(usize, Sample)]) -> Feeds {
    let mut feeds = Feeds::new();
    for (n, s) in samples {
        for (i, input) in s.inputs.iter().enumerate() {
            let data = input.values(i as u64 + 11 * *n as u64 + 1);
            feeds.insert(format!("s{n}.{i}"), Array { ty: input.ty.clone(), data });
        }
    }
    feeds
}

/// Runs graphs made of samples together and compares every output with the oracle.
fn check(device: &Arc<dyn Device>, samples: &[(usize, Sample)], make: impl Fn(&Sample) -> Option<Graph>) {
    let graphs: Vec<(usize, Graph)> = samples.iter().filter_map(|(n, s)| Some((*n, make(s)?))).collect();
    let g = join(&graphs);
    g.finish().unwrap_or_else(|e| panic!("{e}"));
    let feeds = feeds_of(samples);
    let oracle = eval::<f64>(&g, &feeds).unwrap_or_else(|e| panic!("{e}"));
    let found = run_graph(device, &g, &feeds);
    for o in g.outputs() {
        let n: usize = o.name[1..o.name.find('.').unwrap_or(1)].parse().unwrap_or(0);
        let sample = &samples.iter().find(|s| s.0 == n).map(|s| s.1.describe());
        let expected = oracle.get(o.value);
        let got: Array<f64> = Array::from_words(&expected.ty, &found[&o.name]);
        for (i, (x, y)) in got.data.iter().zip(&expected.data).enumerate() {
            let close = (x - y).abs() <= 2e-5 * (1.0 + y.abs());
            assert!(
                close || (x.is_nan() && y.is_nan()) || x == y,
                "{sample:?} '{}' [{i}]: {x}, expected {y}",
                o.name
            );
        }
    }
}

/// Samples in groups that keep one program small enough to read.
fn groups() -> Vec<Vec<(usize, Sample)>> {
    let all: Vec<(usize, Sample)> = samples().into_iter().enumerate().collect();
    all.chunks(24).map(<[_]>::to_vec).collect()
}

#[test]
fn device_runs_every_sample_as_the_oracle_says() {
    with_device(|device| groups().iter().for_each(|group| check(device, group, |s| Some(s.graph()))));
}

#[test]
fn device_runs_the_gradient_of_every_sample_as_the_oracle_says() {
    let gradient = |s: &Sample| {
        (!s.is_without_gradient())
            .then(|| s.gradient_graph().unwrap_or_else(|e| panic!("{}: {e}", s.describe())))
    };
    with_device(|device| groups().iter().for_each(|group| check(device, group, gradient)));
}

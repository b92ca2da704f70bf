//! What a device reaches at most: arithmetic and memory, measured by three programs.
//!
//! The first moves a large tensor and does one operation per element; the second does a long chain of multiply-adds per
//! element, on enough elements to hide its latency; the third multiplies two square matrices, which is faster where the
//! compiler keeps more in registers than a pointwise program can. The faster of the two counts. The roofline model (S. Williams, A. Waterman, D. Patterson, "Roofline: an
//! insightful visual performance model for multicore architectures", 2009) bounds a dispatch by the longer of both times.

use crate::definition::{GraphExt, InferenceGraph};
use crate::device::Device;
use crate::error::Error;
use crate::inputs::Input;
use crate::session::Session;
use griffinfly_ir::graph::Graph;
use serde::Serialize;

/// Multiply-adds of the chain.
const CHAIN: usize = 512;
/// Steps of each program whose median is taken.
const ROUNDS: usize = 9;

/// The most a device does in a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Roof {
    /// Operations on `f32` values, a multiply-add counting as two.
    pub operations_per_second: f64,
    /// Bytes read and written.
    pub bytes_per_second: f64,
}

impl Roof {
    /// Measures a device, in two seconds on hardware.
    ///
    /// # Errors
    /// A device without timestamps; out of memory; device lost.
    pub fn measure(device: &Device) -> Result<Roof, Error> {
        let (moved, worked) =
            if device.target().is_hardware { (1 << 26, 1 << 23) } else { (1 << 20, 1 << 12) };
        let side: usize = if device.target().is_hardware { 4096 } else { 512 };
        let bytes = pointwise(device, moved, 1)?;
        let chain = (2 * CHAIN * worked) as f64 / pointwise(device, worked, CHAIN)?;
        let product = (2 * side.pow(3)) as f64 / product(device, side)?;
        Ok(Roof { operations_per_second: chain.max(product), bytes_per_second: (8 * moved) as f64 / bytes })
    }

    /// The nanoseconds that work takes at least.
    #[must_use]
    pub fn least_ns(&self, operations: u64, bytes: u64) -> f64 {
        1e9 * (operations as f64 / self.operations_per_second).max(bytes as f64 / self.bytes_per_second)
    }
}

/// Seconds of `x -> x a + b`, `chain` times over, on so many elements.
fn pointwise(device: &Device, elements: usize, chain: usize) -> Result<f64, Error> {
    let mut g = Graph::new();
    let x = g.input("x", [elements]);
    let [a, b] = ["a", "b"].map(|name| g.input(name, []));
    let mut y = x;
    for _ in 0..chain {
        y = g.mul(y, a);
        y = g.add(y, b);
    }
    let graph = g.inference([("y", y)])?;
    let x = vec![0.5; elements];
    let (a, b) = (Input::f32(&[0.999]), Input::f32(&[1e-4]));
    seconds(device, graph, &[("x", Input::f32(&x)), ("a", a), ("b", b)])
}

/// Seconds of the product of two square matrices.
fn product(device: &Device, side: usize) -> Result<f64, Error> {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| g.input(name, [side, side]));
    let y = g.matmul(a, b);
    let graph = g.inference([("y", y)])?;
    let values = vec![0.5; side * side];
    seconds(device, graph, &["a", "b"].map(|name| (name, Input::f32(&values))))
}

/// Seconds of a step of a graph.
fn seconds(device: &Device, graph: InferenceGraph, inputs: &[(&str, Input<'_>)]) -> Result<f64, Error> {
    let mut session = Session::new(device, graph)?;
    session.run(inputs)?;
    Ok(session.profile(ROUNDS)?.step_ns / 1e9)
}

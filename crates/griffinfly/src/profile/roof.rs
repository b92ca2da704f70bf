//! What a device reaches at most: arithmetic and memory, measured by two pointwise programs.
//!
//! The first moves a large tensor and does one operation per element; the second does a long chain of multiply-adds per
//! element, on enough elements to hide its latency. The roofline model (S. Williams, A. Waterman, D. Patterson, "Roofline: an
//! insightful visual performance model for multicore architectures", 2009) bounds a dispatch by the longer of both times.

use super::{Profile, median};
use crate::definition::GraphExt;
use crate::device::Device;
use crate::error::Error;
use crate::inputs::Input;
use crate::session::Session;
use griffinfly_ir::graph::Graph;
use serde::Serialize;

/// Multiply-adds of the chain.
const CHAIN: usize = 512;
/// Times each program is measured after it has run as often to warm up.
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
    /// Measures a device, in less than a second on hardware.
    ///
    /// # Errors
    /// A device without timestamps; out of memory; device lost.
    pub fn measure(device: &Device) -> Result<Roof, Error> {
        let (moved, worked) =
            if device.target().is_hardware { (1 << 26, 1 << 23) } else { (1 << 20, 1 << 12) };
        let bytes = best(device, moved, 1)?;
        let operations = best(device, worked, CHAIN)?;
        Ok(Roof {
            operations_per_second: (2 * CHAIN * worked) as f64 / operations,
            bytes_per_second: (8 * moved) as f64 / bytes,
        })
    }

    /// The nanoseconds that work takes at least.
    #[must_use]
    pub fn least_ns(&self, operations: u64, bytes: u64) -> f64 {
        1e9 * (operations as f64 / self.operations_per_second).max(bytes as f64 / self.bytes_per_second)
    }
}

/// Seconds of `x -> x a + b`, `chain` times over, on so many elements.
fn best(device: &Device, elements: usize, chain: usize) -> Result<f64, Error> {
    let mut g = Graph::new();
    let x = g.input("x", [elements]);
    let [a, b] = ["a", "b"].map(|name| g.input(name, []));
    let mut y = x;
    for _ in 0..chain {
        y = g.mul(y, a);
        y = g.add(y, b);
    }
    let graph = g.inference([("y", y)])?;
    let mut session = Session::new(device, graph)?;
    session.run(&[
        ("x", Input::f32(&vec![0.5; elements])),
        ("a", Input::f32(&[0.999])),
        ("b", Input::f32(&[1e-4])),
    ])?;
    session.profile(ROUNDS)?;
    let profile: Profile = session.profile(ROUNDS)?;
    let longest = profile.rows.iter().map(|row| row.nanoseconds).collect();
    Ok(median(longest).unwrap_or(f64::INFINITY) / 1e9)
}

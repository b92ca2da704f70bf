//! What lies between tensors stays there: no step reads it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use super::Trainer;
use crate::definition::GraphExt;
use crate::device::Device;
use crate::inputs::Input;
use crate::nn;
use crate::tensors::{Tensors, replace};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::optimizer::Optimizer;

/// Fills everything that belongs to no tensor with NaN; gives how many words that were.
fn poison(tensors: &Tensors) -> usize {
    let before = tensors.images().unwrap();
    let mut images = before.clone();
    let words = images.iter().map(Vec::len).sum::<usize>() / 4;
    images.iter_mut().flat_map(|image| image.chunks_exact_mut(4)).for_each(|word| {
        word.copy_from_slice(&f32::NAN.to_ne_bytes());
    });
    for entry in tensors.entries() {
        tensors.slice_mut(&mut images, entry).copy_from_slice(tensors.slice(&before, entry));
    }
    replace(&[(tensors, &images)]).unwrap();
    words - tensors.entries().iter().map(|entry| entry.ty.elements()).sum::<usize>()
}

fn trainer() -> Trainer {
    let mut g = Graph::new();
    let x = g.input("x", [3, 5]);
    let h = nn::Linear::new("first", 5, 7).apply(&mut g, x);
    let h = nn::LayerNorm::new("norm", 7).apply(&mut g, h);
    let y = nn::Linear::new("last", 7, 1).apply(&mut g, h);
    let squares = g.mul(y, y);
    let loss = g.mean_all(squares);
    Trainer::new(&Device::host(), g.training(loss).unwrap(), Optimizer::adamw(0.01)).unwrap()
}

#[test]
fn padding_between_parameters_and_moments_is_never_read() {
    let (mut clean, mut poisoned) = (trainer(), trainer());
    assert!(poison(poisoned.weights().tensors()) > 100);
    assert!(poison(poisoned.runner.state()) > 100);
    let x: Vec<f32> = (0..15).map(|i| i as f32 / 8.0 - 1.0).collect();
    for _ in 0..3 {
        let loss = clean.step(&[("x", Input::f32(&x))]).unwrap();
        assert!(loss.is_finite());
        assert_eq!(poisoned.step(&[("x", Input::f32(&x))]).unwrap(), loss);
    }
    for name in clean.weights().names() {
        assert_eq!(clean.weights().get(name).unwrap(), poisoned.weights().get(name).unwrap(), "{name}");
    }
}

//! WebGPU beside the other devices: the same losses step by step, the same files, and what remains when it is lost.

#![allow(clippy::print_stdout, reason = "tests")]

use super::{is_tested, tested};
use crate::fixtures::{Scratch, batch, bits, trainer};
use griffinfly::gpu::{Selector, webgpu};
use griffinfly::{Device, Feed, GraphExt, Input, Optimizer, Session, Trainer, Weights, data, models};

/// Losses of the demo's training on a device, and its weights.
fn trained(device: &Device, steps: usize) -> (Vec<f32>, Weights) {
    with(device, models::DigitsModel::optimizer(), steps)
}

/// The same with another optimizer.
fn with(device: &Device, optimizer: Optimizer, steps: usize) -> (Vec<f32>, Weights) {
    let (digits, model) = (data::digits(), models::digits(64));
    let graph = model.training().unwrap();
    let mut trainer = Trainer::new(device, graph, optimizer).unwrap();
    let batches = digits.train.batches(64, 0).unwrap();
    let losses = batches.take(steps).map(|batch| trainer.step(&batch.inputs()).unwrap()).collect();
    (losses, trainer.weights().clone())
}

/// By plain descent: Adam divides a gradient by its own size, which turns rounding of gradients near zero into whole steps. On
/// software drivers both devices run the same kernels; on hardware they differ in tilings and orders of summation, as Vulkan and the
/// host do, and training drives what rounding began apart.
#[test]
fn losses_on_the_device_are_those_of_vulkan_step_by_step() {
    if !is_tested("webgpu") {
        return;
    }
    let tested = tested();
    let losses = |device: &Device| with(device, Optimizer::sgd(0.5), 60).0;
    let (webgpu, vulkan) = (losses(&tested.device), losses(&Device::vulkan().unwrap()));
    assert!(vulkan[59] < 0.6 * vulkan[0], "{vulkan:?}");
    let apart = |others: &[f32]| {
        let relative = |(a, b): (&f32, &f32)| (a - b).abs() / (1.0 + b);
        others.iter().zip(&vulkan).map(relative).fold(0.0, f32::max)
    };
    let of_host = apart(&losses(&Device::host()));
    println!("at most {} apart, Vulkan and the host {of_host}", apart(&webgpu));
    let bound = if tested.device.target().is_hardware { 2.0 * of_host } else { 1e-6 };
    for (step, (own, other)) in webgpu.iter().zip(&vulkan).enumerate() {
        assert!((own - other).abs() <= bound * (1.0 + other), "step {step}: {own} and {other}");
    }
}

/// With Adam: its update reads and writes most at once.
#[test]
fn training_on_the_device_keeps_within_what_every_browser_grants() {
    if !is_tested("webgpu") {
        return;
    }
    let options = webgpu::OpenOptions { default_limits: true, ..webgpu::OpenOptions::default() };
    let least = webgpu::open_with(&Selector::Best, &options).unwrap();
    let least = Device::from_backend(least);
    let target = least.target();
    assert_eq!((target.max_bindings, target.max_workgroup_bytes, target.max_invocations), (8, 16 << 10, 256));
    let (losses, _) = trained(&least, 40);
    let (expected, _) = trained(&tested().device, 40);
    assert!(expected[39] < 0.5 * expected[0], "{expected:?}");
    for (step, (own, other)) in losses.iter().zip(&expected).enumerate().take(10) {
        assert!((own - other).abs() <= 1e-3 * (1.0 + other), "step {step}: {own} and {other}");
    }
    assert!(losses[39] < 0.5 * losses[0], "{losses:?}");
}

/// Predictions of a digits model with the weights of a file.
fn predictions(device: &Device, file: &std::path::Path) -> Vec<i32> {
    let (digits, model) = (data::digits(), models::digits(64));
    let images = [digits.test.len(), 1, 8, 8];
    let mut g = model.graph.clone();
    let best = g.argmax(model.logits, 1);
    let graph = g.inference([("best", best)]).unwrap().rebind(&[("image", &images)]).unwrap();
    let mut session = Session::new(device, graph).unwrap();
    session.load(file).unwrap();
    let out = session.run(&[("image", Input::f32(&digits.test.images))]).unwrap();
    out.i32("best").unwrap().to_vec()
}

#[test]
fn files_of_every_device_give_the_same_predictions_on_every_device() {
    if !is_tested("webgpu") {
        return;
    }
    let devices = [tested().device.clone(), Device::vulkan().unwrap(), Device::host()];
    let scratch = Scratch::new("device-files");
    for (number, from) in devices.iter().enumerate() {
        let file = scratch.file(&format!("{number}.safetensors"));
        trained(from, 40).1.save(&file).unwrap();
        let found: Vec<_> = devices.iter().map(|to| predictions(to, &file)).collect();
        assert_eq!(found[0], found[1], "trained on {from:?}");
        assert_eq!(found[0], found[2], "trained on {from:?}");
        let kinds: std::collections::BTreeSet<_> = found[0].iter().collect();
        assert!(kinds.len() > 5, "{kinds:?}");
    }
}

#[test]
fn a_lost_device_is_replaced() {
    if !is_tested("webgpu") {
        return;
    }
    let (tested, scratch) = (tested(), Scratch::new("device-lost-webgpu"));
    let mut straight = trainer(&tested.device, Optimizer::adam(0.01));
    let expected: Vec<f32> = (0..6).map(|_| straight.step(&batch()).unwrap()).collect();
    let backend = webgpu::open_with(&Selector::Best, &webgpu::OpenOptions::default()).unwrap();
    let mut first = trainer(&Device::from_backend(backend.clone()), Optimizer::adam(0.01));
    let mut losses: Vec<f32> = (0..3).map(|_| first.step(&batch()).unwrap()).collect();
    first.save(scratch.file("c")).unwrap();
    backend.below().0.destroy();
    assert!(first.step(&batch()).unwrap_err().is_device_lost());
    let old = std::fs::read(scratch.file("c")).unwrap();
    assert!(first.save(scratch.file("c")).unwrap_err().is_device_lost());
    assert_eq!(std::fs::read(scratch.file("c")).unwrap(), old);
    let mut second = trainer(&tested.device, Optimizer::adam(0.01));
    second.load(scratch.file("c")).unwrap();
    losses.extend((0..3).map(|_| second.step(&batch()).unwrap()));
    assert_eq!(losses, expected);
    assert_eq!(bits(second.weights()), bits(straight.weights()));
}

#[test]
fn steps_in_parts_on_the_device_give_the_same_bits() {
    if !is_tested("webgpu") {
        return;
    }
    let options = webgpu::OpenOptions { parts: true, ..Default::default() };
    let parts = Device::from_backend(webgpu::open_with(&Selector::Best, &options).unwrap());
    let (whole, cut) = (trained(&tested().device, 12), trained(&parts, 12));
    assert_eq!(whole.0, cut.0);
    assert_eq!(bits(&whole.1), bits(&cut.1));
}

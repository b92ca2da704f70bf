//! The small workloads from end to end on the device under test (the host, or with `GRIFFINFLY_TEST_DEVICE` `vulkan` or `webgpu`
//! the driver the loader finds), against results that PyTorch computed in `f64`.
//!
//! The fixtures are the dumps of `pytorch/run.py --precision f64 --size small --dump-f32` over the files of `write`.

use crate::bundle;
use crate::compare::judge::{Verdict, judge};
use crate::gate::Limits;
use crate::measure::{self, Arguments};
use crate::record::{Precision, Run};
use crate::workload::{Name, Size};
use griffinfly::import::safetensors;
use griffinfly::models::{LlamaConfig, Model};
use griffinfly::{Device, DeviceChoice, Input, Session, Weights};
use std::path::{Path, PathBuf};

fn fixture(name: &str, phase: &str) -> safetensors::File {
    let file = format!("fixtures/pytorch.f64.eager.{name}.small.{phase}.safetensors");
    safetensors::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("griffinfly-bench-{name}-{}", std::process::id()))
}

fn device() -> DeviceChoice {
    let wanted = std::env::var("GRIFFINFLY_TEST_DEVICE");
    wanted.map_or(DeviceChoice::Host, |name| name.parse().unwrap())
}

/// Writes, runs and judges all phases of a workload.
fn check(name: Name) {
    let folder = scratch(name.text());
    bundle::write(name, Size::Small, &folder, None).unwrap();
    let out = folder.join("record.json");
    measure::run(&Arguments {
        files: folder.clone(),
        workload: name.text().into(),
        phase: Vec::new(),
        size: Size::Small,
        precision: Precision::Strict,
        device: device(),
        samples: 0,
        revision: None,
        out: out.clone(),
        dump: Some(folder.join("dumps")),
    })
    .unwrap();
    let run = Run::read(&out).unwrap();
    assert_eq!(run.cells.len(), 3);
    for cell in &run.cells {
        assert_eq!(cell.error, None, "{name:?} {:?}", cell.phase);
        let found = safetensors::read(&folder.join(cell.dump.as_ref().unwrap())).unwrap();
        let verdict = judge(&found, &fixture(name.text(), cell.phase.text()), Limits::of(Precision::Strict));
        let worst: Vec<_> = verdict.disagreements().map(|c| (&c.name, c.difference.relative())).collect();
        assert!(verdict.passes(), "{name:?} {:?}: {:?} {worst:?}", cell.phase, verdict.faults);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn smollm2_on_the_device_agrees_with_pytorch() {
    check(Name::SmolLm2);
}

#[test]
fn smolvla_on_the_device_agrees_with_pytorch() {
    check(Name::SmolVla);
}

#[test]
fn unet_on_the_device_agrees_with_pytorch() {
    check(Name::UNet);
}

#[test]
fn resnet50_on_the_device_agrees_with_pytorch() {
    check(Name::ResNet50);
}

#[test]
fn whisper_on_the_device_agrees_with_pytorch() {
    check(Name::Whisper);
}

/// The verdict on the small language model with another configuration over the same weights and inputs.
fn changed(change: impl FnOnce(&mut LlamaConfig)) -> Verdict {
    let config = Name::SmolLm2.at(Size::Small).config().unwrap();
    let mut config: LlamaConfig = serde_json::from_value(config).unwrap();
    change(&mut config);
    let Model { graph, loss, .. } = config.build().unwrap();
    let folder = scratch("changed");
    bundle::write(Name::SmolLm2, Size::Small, &folder, None).unwrap();
    let bundle = bundle::Bundle::read(&folder, Name::SmolLm2, Size::Small).unwrap();
    let weights = Weights::empty(&Device::host(), &graph).unwrap();
    bundle.load(&weights).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    let training = griffinfly::GraphExt::training(&graph, loss).unwrap();
    let mut session = Session::with_weights(training.gradients().unwrap(), &weights).unwrap();
    let inputs = bundle.inputs(crate::workload::Shape::Full);
    let given: Vec<(&str, Input<'_>)> = inputs.iter().map(|i| (i.name.as_str(), measure::input(i))).collect();
    let outputs = session.run(&given).unwrap();
    let dump = safetensors::parse(measure::encoded(&outputs).unwrap()).unwrap();
    judge(&dump, &fixture("smollm2", "train"), Limits::of(Precision::Strict))
}

#[test]
fn models_that_differ_a_little_do_not_pass() {
    assert!(changed(|_| {}).passes());
    let rotary = changed(|c| c.rope_base = 99_000.0);
    assert!(!rotary.passes() && rotary.faults.is_empty());
    assert!(rotary.paper.iter().all(|(_, gate)| gate.passes()), "norms and samples cannot see it");
    assert!(!changed(|c| c.eps = 1.1e-5).passes());
}

//! Training on whatever device the tests run on: the host, or with `GRIFFINFLY_TEST_DEVICE=vulkan` the Vulkan driver
//! the loader finds (choose one with `VK_DRIVER_FILES`), or with `webgpu` the same below WebGPU.

mod agreement;
mod architectures;
mod awaiting;
mod curves;
mod fast;
mod faults;
mod fresh_process;
mod ids;
mod memory;
mod overfit;
mod random;
mod resume;
#[cfg(feature = "webgpu")]
mod webgpu;

use griffinfly::gpu::vulkan::{self, OpenOptions, Selector, ValidationLog};
use griffinfly::{Device, DeviceChoice, Feed, GraphExt, Input, Session, Trainer, data, models};

/// The device under test; dropping it fails the test if the validation layer complained.
struct Tested {
    device: Device,
    log: Option<ValidationLog>,
}

/// As the environment says, without a cache outside the test's own directories.
fn options() -> OpenOptions {
    OpenOptions { cache_dir: None, ..OpenOptions::from_env() }
}

/// Whether the device under test is the one of this name.
fn is_tested(name: &str) -> bool {
    std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_some_and(|value| value == name)
}

fn tested() -> Tested {
    if is_tested("webgpu") {
        return Tested { device: Device::webgpu().unwrap(), log: None };
    }
    if !is_tested("vulkan") {
        return Tested { device: Device::host(), log: None };
    }
    let vulkan = vulkan::open_with(&Selector::Best, &options()).unwrap();
    let log = Some(vulkan.validation_log());
    Tested { device: Device::from_backend(vulkan), log }
}

impl Drop for Tested {
    fn drop(&mut self) {
        let messages = self.log.as_ref().map(ValidationLog::messages).unwrap_or_default();
        if !std::thread::panicking() {
            assert!(messages.is_empty(), "{messages:#?}");
        }
    }
}

/// The demo's training, as long as the demo trains.
#[test]
fn the_demo_reaches_its_accuracy() {
    let tested = tested();
    let (digits, model) = (data::digits(), models::digits(64));
    let graph = model.training().unwrap();
    let mut trainer = Trainer::new(&tested.device, graph, models::DigitsModel::optimizer()).unwrap();
    for (i, batch) in (0..440).zip(digits.train.batches(64, 0).unwrap()) {
        trainer.set_learning_rate(models::DigitsModel::learning_rate(i, 440)).unwrap();
        trainer.submit(&batch.inputs()).unwrap();
    }
    let images = [359, 1, 8, 8];
    let mut g = model.graph.clone();
    let best = g.argmax(model.logits, 1);
    let graph = g.inference([("best", best)]).unwrap().rebind(&[("image", &images)]).unwrap();
    let mut session = Session::with_weights(graph, trainer.weights()).unwrap();
    let out = session.run(&[("image", Input::f32(&digits.test.images))]).unwrap();
    let right = out.i32("best").unwrap().iter().zip(&digits.test.labels).filter(|(a, b)| a == b).count();
    assert!(right * 1000 >= 975 * digits.test.len(), "{right} of {}", digits.test.len());
}

#[test]
fn from_training_to_deployment() {
    let tested = tested();
    let [first, last] = crate::example::separable::run(&tested.device).unwrap();
    assert!((first - std::f32::consts::LN_2).abs() < 1e-6 && last < 0.03, "{first} to {last}");
}

#[test]
fn the_best_device_is_a_gpu_or_the_host() {
    let best = Device::best().unwrap();
    assert!(best.info().is_hardware_gpu || best.info().backend == "host");
    assert_eq!(Device::open(DeviceChoice::Host).unwrap().info().backend, "host");
    assert!(Device::list().iter().any(|d| d.backend == "host" && d.unusable.is_none()));
}

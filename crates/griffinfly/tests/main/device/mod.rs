//! Training on whatever device the tests run on: the host, or with `GRIFFINFLY_TEST_DEVICE=vulkan` the Vulkan driver
//! the loader finds (choose one with `VK_DRIVER_FILES`).

mod agreement;
mod fresh_process;
mod ids;
mod memory;
mod resume;

use griffinfly::gpu::vulkan::{self, OpenOptions, Selector, ValidationLog};
use griffinfly::{Device, DeviceChoice};

/// The device under test; dropping it fails the test if the validation layer complained.
struct Tested {
    device: Device,
    log: Option<ValidationLog>,
}

fn tested() -> Tested {
    if std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_none_or(|value| value != "vulkan") {
        return Tested { device: Device::host(), log: None };
    }
    let vulkan = vulkan::open_with(&Selector::Best, &OpenOptions::from_env()).unwrap();
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

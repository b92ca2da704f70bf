//! The device under test: the host, or what `GRIFFINFLY_TEST_DEVICE` says: `vulkan` is the driver the loader finds (choose one with
//! `VK_DRIVER_FILES`), `webgpu` the same below WebGPU.

use griffinfly_gpu::{Device, vulkan};
use std::sync::Arc;

/// What a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Host,
    Vulkan,
    WebGpu,
}

pub(crate) fn wanted() -> Wanted {
    match std::env::var("GRIFFINFLY_TEST_DEVICE").as_deref() {
        Ok("vulkan") => Wanted::Vulkan,
        Ok("webgpu") => Wanted::WebGpu,
        Ok("host") | Err(_) => Wanted::Host,
        Ok(other) => panic!("GRIFFINFLY_TEST_DEVICE is {other}: choose host, vulkan or webgpu"),
    }
}

/// Whether to run every combination: software drivers compile slowly, so the ordinary run rotates through some.
pub(crate) fn is_full() -> bool {
    std::env::var_os("GRIFFINFLY_TEST_FULL").is_some_and(|value| value == "1")
}

/// Runs a test on the device that runs kernels, if that is what is tested. Memory of programs begins with `fill`. Fails if the
/// validation layer had anything to say.
pub(crate) fn with_kernels(fill: u32, test: impl FnOnce(&Arc<dyn Device>)) {
    with_slots((fill, 3), test);
}

/// As [`with_kernels`], with so many steps in flight.
pub(crate) fn with_slots((fill, slots): (u32, usize), test: impl FnOnce(&Arc<dyn Device>)) {
    match wanted() {
        Wanted::Host => println!("skipped: GRIFFINFLY_TEST_DEVICE names no device with kernels"),
        Wanted::Vulkan => {
            let options =
                vulkan::OpenOptions { fill, slots, cache_dir: None, ..vulkan::OpenOptions::from_env() };
            let device = vulkan::open_with(&vulkan::Selector::Best, &options).unwrap();
            let log = device.validation_log();
            let device: Arc<dyn Device> = device;
            test(&device);
            drop(device);
            assert_eq!(log.messages(), Vec::<String>::new());
        }
        Wanted::WebGpu => webgpu((fill, slots), test),
    }
}

#[cfg(feature = "webgpu")]
fn webgpu((fill, slots): (u32, usize), test: impl FnOnce(&Arc<dyn Device>)) {
    use griffinfly_gpu::webgpu::{OpenOptions, open_with};
    let options = OpenOptions { fill, slots, ..OpenOptions::default() };
    let device: Arc<dyn Device> = open_with(&griffinfly_gpu::Selector::Best, &options).unwrap();
    test(&device);
}

#[cfg(not(feature = "webgpu"))]
fn webgpu(_: (u32, usize), _: impl FnOnce(&Arc<dyn Device>)) {
    panic!("GRIFFINFLY_TEST_DEVICE is webgpu, but the tests are built without that feature");
}

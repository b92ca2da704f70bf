//! What only the Vulkan device has: drivers to choose from, a cache on disk, failures to inject, validation.
//!
//! Runs on the driver the loader finds (choose one with `VK_DRIVER_FILES`) and only with `GRIFFINFLY_TEST_DEVICE=vulkan`;
//! with `GRIFFINFLY_VALIDATION=1` every test also asserts that the validation layer had nothing to say, from opening to the
//! destruction of the device.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

mod cache;
mod faults;
mod lifetime;
mod opening;

use griffinfly_gpu::vulkan::{OpenOptions, Selector, VulkanDevice, open_with};
use std::sync::Arc;

/// Whether the tests of this module run; says so if not.
fn enabled() -> bool {
    let enabled = std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_some_and(|value| value == "vulkan");
    if !enabled {
        println!("skipped: GRIFFINFLY_TEST_DEVICE is not vulkan");
    }
    enabled
}

/// The options of all tests: validation from the environment, nothing on disk.
fn options() -> OpenOptions {
    OpenOptions { cache_dir: None, ..OpenOptions::from_env() }
}

/// Opens a device, runs a test on it, drops it and asserts that validation stayed silent.
fn with_device(test: impl FnOnce(&Arc<VulkanDevice>, &OpenOptions)) {
    if !enabled() {
        return;
    }
    let options = options();
    let device = open_with(&Selector::Best, &options).unwrap();
    let log = device.validation_log();
    test(&device, &options);
    assert_eq!(Arc::strong_count(&device), 1, "the test kept the device");
    drop(device);
    assert_eq!(log.messages(), Vec::<String>::new());
}

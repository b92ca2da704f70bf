//! The Vulkan device, on hand-built programs with hand-written kernels.
//!
//! Runs on the driver the loader finds (choose one with `VK_DRIVER_FILES`) and only with `GRIFFINFLY_TEST_DEVICE=vulkan`;
//! with `GRIFFINFLY_VALIDATION=1` every test also asserts that the validation layer had nothing to say, from opening to the
//! destruction of the device.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

mod cache;
mod faults;
mod lifetime;
mod opening;
mod programs;
mod refusals;
mod ring;
mod running;

use griffinfly_compile::program::ArenaId;
use griffinfly_gpu::vulkan::{OpenOptions, Selector, VulkanDevice, open_with};
use griffinfly_gpu::{Buffer, Device};
use std::sync::Arc;
use std::time::Duration;

/// Longer than any step here takes.
const LONG: Duration = Duration::from_secs(120);

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

/// A buffer for each arena that must be bound.
fn bind(device: &VulkanDevice, arenas: &[(ArenaId, u64)]) -> Vec<(ArenaId, Arc<dyn Buffer>)> {
    arenas.iter().map(|(id, bytes)| (*id, device.buffer(*bytes).unwrap())).collect()
}

fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn to_floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect()
}

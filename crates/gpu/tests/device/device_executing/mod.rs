//! What every device with kernels does, on hand-built programs with hand-written kernels.

mod awaiting;
mod programs;
mod refusals;
mod ring;
mod running;

#[cfg(feature = "webgpu")]
pub(crate) use awaiting::awaited;
pub(crate) use programs::{Adding, accumulating, adding};

use crate::under_test::with_kernels;
use griffinfly_compile::program::ArenaId;
use griffinfly_gpu::{Buffer, Device};
use std::sync::Arc;
use std::time::Duration;

/// Longer than any step here takes.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Runs a test on the device with kernels.
fn with_device(test: impl FnOnce(&dyn Device)) {
    with_kernels(0, |device| {
        test(device.as_ref());
        assert_eq!(Arc::strong_count(device), 1, "the test kept the device");
    });
}

/// A buffer for each arena that must be bound.
pub(crate) fn bind(device: &dyn Device, arenas: &[(ArenaId, u64)]) -> Vec<(ArenaId, Arc<dyn Buffer>)> {
    arenas.iter().map(|(id, bytes)| (*id, device.buffer(*bytes).unwrap())).collect()
}

pub(crate) fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

pub(crate) fn to_floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect()
}

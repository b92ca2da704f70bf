//! What the caller may choose when opening a device.

use super::faults::FaultPlan;
use std::path::PathBuf;

/// How to open a device.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Turn on the Khronos validation layer and collect its messages; an error if it is not installed. Open and drop such devices from one
    /// thread at a time, while no other thread uses one: the layer changes its table of devices without a lock
    /// (KhronosGroup/Vulkan-ValidationLayers issue 4391), and a process that meets this ends with a segmentation fault.
    pub validation: bool,
    /// Directory of the driver's pipeline cache; `None` keeps nothing on disk.
    pub cache_dir: Option<PathBuf>,
    /// Failures to inject, for tests.
    pub faults: FaultPlan,
    /// Steps an executor may have in flight, 2 to 4.
    pub slots: usize,
    /// The word that memory of a program begins with, apart from what its owner binds. Tests take a NaN pattern: it shows what
    /// is never written and what is read beyond a tensor.
    pub fill: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { validation: false, cache_dir: None, faults: FaultPlan::default(), slots: 3, fill: 0 }
    }
}

impl OpenOptions {
    /// Reads the environment:
    ///
    /// * `GRIFFINFLY_VALIDATION=1` turns on validation;
    /// * for the cache directory see [`cache_dir`](crate::cache_dir).
    #[must_use]
    pub fn from_env() -> Self {
        let validation = std::env::var_os("GRIFFINFLY_VALIDATION").is_some_and(|value| value == "1");
        OpenOptions { validation, cache_dir: crate::cache_dir(), ..Self::default() }
    }
}

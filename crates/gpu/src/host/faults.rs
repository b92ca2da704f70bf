//! Failures injected on purpose, so that tests can prove what a failing device does to its users.
//!
//! A plan is shared by all its clones: a test keeps one, the device another. Counts start when a failure is armed; the
//! first call after arming is number 1. Each armed failure happens once.

use std::sync::{Arc, Mutex, PoisonError};

/// Failures to inject.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(Arc<Mutex<Armed>>);

#[derive(Debug, Default)]
struct Armed {
    allocation: Option<u64>,
    submit: Option<u64>,
}

impl FaultPlan {
    /// Lets the `nth` memory allocation from now run out of memory.
    pub fn fail_allocation(&self, nth: u64) {
        self.with(|armed| armed.allocation = Some(nth));
    }

    /// Lets the `nth` step from now fail before it does anything.
    pub fn fail_submit(&self, nth: u64) {
        self.with(|armed| armed.submit = Some(nth));
    }

    /// Disarms everything.
    pub fn clear(&self) {
        self.with(|armed| *armed = Armed::default());
    }

    /// Whether this allocation is the one to fail.
    pub(super) fn allocation_fails(&self) -> bool {
        self.with(|armed| due(&mut armed.allocation))
    }

    /// Whether this step is the one to fail.
    pub(super) fn submit_fails(&self) -> bool {
        self.with(|armed| due(&mut armed.submit))
    }

    fn with<T>(&self, action: impl FnOnce(&mut Armed) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts one call down; true when it is the one to fail.
fn due(left: &mut Option<u64>) -> bool {
    let fails = matches!(left, Some(0 | 1));
    *left = left.filter(|_| !fails).map(|n| n - 1);
    fails
}

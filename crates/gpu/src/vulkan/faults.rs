//! Failures injected on purpose, so that tests can prove what a failing driver does to us.
//!
//! A plan is shared by all its clones: a test keeps one, the device another. Counts start when a failure is armed; the first
//! call after arming is number 1. Each armed failure happens once.

use ash::vk;
use std::sync::{Arc, Mutex, PoisonError};

/// How a submission fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitFault {
    /// The device is lost from then on.
    DeviceLost,
    /// The driver had no host memory; nothing was submitted.
    OutOfHostMemory,
}

/// Failures to inject.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(Arc<Mutex<Armed>>);

#[derive(Debug, Default)]
struct Armed {
    allocation: Option<u64>,
    submit: Option<(u64, SubmitFault)>,
    pipeline: Option<u64>,
}

impl FaultPlan {
    /// Lets the `nth` memory allocation from now run out of device memory.
    pub fn fail_allocation(&self, nth: u64) {
        self.with(|armed| armed.allocation = Some(nth));
    }

    /// Lets the `nth` submission from now (steps, uploads and readbacks alike) fail.
    pub fn fail_submit(&self, nth: u64, fault: SubmitFault) {
        self.with(|armed| armed.submit = Some((nth, fault)));
    }

    /// Lets the `nth` pipeline creation from now run out of device memory.
    pub fn fail_pipeline(&self, nth: u64) {
        self.with(|armed| armed.pipeline = Some(nth));
    }

    /// Disarms everything.
    pub fn clear(&self) {
        self.with(|armed| *armed = Armed::default());
    }

    pub(super) fn allocation(&self) -> Result<(), vk::Result> {
        if self.with(|armed| due(&mut armed.allocation)) {
            return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        Ok(())
    }

    pub(super) fn pipeline(&self) -> Result<(), vk::Result> {
        if self.with(|armed| due(&mut armed.pipeline)) {
            return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        Ok(())
    }

    pub(super) fn submit(&self) -> Result<(), vk::Result> {
        let fault = self.with(|armed| {
            let (left, fault) = armed.submit.take()?;
            let mut left = Some(left);
            if due(&mut left) {
                return Some(fault);
            }
            armed.submit = left.map(|left| (left, fault));
            None
        });
        match fault {
            None => Ok(()),
            Some(SubmitFault::DeviceLost) => Err(vk::Result::ERROR_DEVICE_LOST),
            Some(SubmitFault::OutOfHostMemory) => Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY),
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut Armed) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts one call down; true when it is the one to fail.
fn due(left: &mut Option<u64>) -> bool {
    match left {
        None => false,
        Some(0 | 1) => {
            *left = None;
            true
        }
        Some(count) => {
            *count -= 1;
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_fails_once() {
        let plan = FaultPlan::default();
        let device = plan.clone();
        plan.fail_allocation(3);
        let outcomes: Vec<bool> = (0..5).map(|_| device.allocation().is_err()).collect();
        assert_eq!(outcomes, [false, false, true, false, false]);
    }

    #[test]
    fn a_submission_fails_as_asked() {
        let plan = FaultPlan::default();
        plan.fail_submit(2, SubmitFault::DeviceLost);
        assert_eq!(plan.submit(), Ok(()));
        assert_eq!(plan.submit(), Err(vk::Result::ERROR_DEVICE_LOST));
        assert_eq!(plan.submit(), Ok(()));
        plan.fail_submit(1, SubmitFault::OutOfHostMemory);
        plan.clear();
        assert_eq!(plan.submit(), Ok(()));
    }
}

//! What can go wrong on a device.

use thiserror::Error;

/// A failure of a device or of its use.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No Vulkan loader or driver, or none with the needed features.
    #[error("no usable {backend} device: {reason}")]
    NoDevice {
        /// The backend asked for.
        backend: &'static str,
        /// What was found instead.
        reason: String,
    },
    /// An allocation the device refused.
    #[error("out of device memory: {what} needs {bytes} bytes")]
    OutOfMemory {
        /// For what.
        what: String,
        /// How much.
        bytes: u64,
    },
    /// A size over a limit of the device.
    #[error("{what} is {value}, over the limit of {limit} of {device}")]
    Limit {
        /// What is too large.
        what: String,
        /// Its size.
        value: u64,
        /// The limit.
        limit: u64,
        /// The device.
        device: String,
    },
    /// The device stopped answering or was removed; make a new device and restore from a checkpoint.
    #[error(
        "the device {device} was lost during {during}; make a new device and restore the last checkpoint"
    )]
    DeviceLost {
        /// The device.
        device: String,
        /// What was being done.
        during: &'static str,
    },
    /// A step did not finish in time; it may still finish.
    #[error("step {ticket} did not finish within {milliseconds} ms")]
    Timeout {
        /// The step.
        ticket: u64,
        /// How long was waited.
        milliseconds: u64,
    },
    /// A call that would have to wait where nothing can be waited for, as in a browser: await its `_async` form.
    #[error("{what} would have to wait, which this device does not allow: await it")]
    WouldBlock {
        /// What is not done yet.
        what: &'static str,
    },
    /// A program compiled for something else.
    #[error("the program was compiled for {program}, this device is {device}")]
    WrongTarget {
        /// The program's target.
        program: String,
        /// The device.
        device: String,
    },
    /// A call that does not fit the program or buffer.
    #[error("{what}: {detail}")]
    Usage {
        /// Which call or thing.
        what: String,
        /// Why it does not fit, with the numbers.
        detail: String,
    },
    /// Any other failure the driver reported.
    #[error("the driver failed in {call}: {result}")]
    Driver {
        /// The call.
        call: &'static str,
        /// Its result.
        result: String,
    },
    /// The validation layers reported something.
    #[error("validation: {0}")]
    Validation(String),
}

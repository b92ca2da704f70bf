//! The one error type of this crate: a kernel that could not be built, verified or translated.
//!
//! Every variant names the kernel or entry point it is about, so that a message can be read without a backtrace.

use crate::verify::Fault;

/// Why a kernel could not be built, verified or translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The generator built an ill-typed or ill-scoped expression or statement: a bug in a kernel family.
    #[error("kernel `{kernel}`: {message} (at {location})")]
    Build {
        /// Name of the kernel under construction.
        kernel: String,
        /// What is wrong.
        message: String,
        /// Source file and line of the generator's call.
        location: String,
    },
    /// A family cannot realise a loop on this target.
    #[error("{family} kernels cannot do this: {message}")]
    Unsupported {
        /// The family.
        family: &'static str,
        /// What is outside of it, with the numbers.
        message: String,
    },
    /// The finished kernel breaks structural rules or the limits of the target.
    #[error("kernel `{kernel}` is not valid: {}", list(.faults))]
    Invalid {
        /// Name of the kernel.
        kernel: String,
        /// Everything the verifier found.
        faults: Vec<Fault>,
    },
    /// The printed text does not parse.
    #[error("kernel text does not parse: {message}")]
    Parse {
        /// The front end's message with the offending line underlined.
        message: String,
        /// One-based line of the fault, when known.
        line: Option<u32>,
        /// The text that was parsed.
        wgsl: String,
    },
    /// The parsed module does not validate.
    #[error("kernel text does not validate: {message}")]
    Validate {
        /// The validator's message with the offending line underlined.
        message: String,
        /// One-based line of the fault, when known.
        line: Option<u32>,
        /// The text that was validated.
        wgsl: String,
    },
    /// The SPIR-V writer refused the module.
    #[error("entry point `{entry}` cannot be written as SPIR-V: {message}")]
    Write {
        /// Entry point that was asked for.
        entry: String,
        /// The writer's message.
        message: String,
    },
}

fn list(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

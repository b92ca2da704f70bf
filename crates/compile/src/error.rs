//! What can go wrong in a compilation.

use griffinfly_ir::graph::BuildErrors;
use griffinfly_ir::layout::TooLarge;
use thiserror::Error;

/// A failed compilation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The graph has build errors.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// A verifier found broken invariants: a fault of this compiler, or of a graph made by hand.
    #[error("the {stage} breaks its invariants: {}", faults.join("; "))]
    Faults {
        /// Which form.
        stage: &'static str,
        /// All faults.
        faults: Vec<String>,
    },
    /// A parameter over the limits of the target.
    #[error(transparent)]
    Parameter(#[from] TooLarge),
    /// Another tensor over the limits of the target.
    #[error("{label}: a tensor of {bytes} bytes is over the limit of {limit} bytes per binding of {device}")]
    TensorTooLarge {
        /// Where it comes from.
        label: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// The target.
        device: String,
    },
    /// A byte budget below the smallest plan.
    #[error(
        "the program needs {needed} bytes, the budget is {budget}: {fixed} are parameters, state, inputs, outputs and constants, the others hold at the fullest moment {}",
        holders.iter().map(|(label, bytes)| format!("{label} ({bytes})")).collect::<Vec<_>>().join(", ")
    )]
    Budget {
        /// Bytes of the smallest plan found.
        needed: u64,
        /// The budget.
        budget: u64,
        /// Bytes that no plan can change.
        fixed: u64,
        /// The largest temporaries at the fullest moment of that plan: label and bytes.
        holders: Vec<(String, u64)>,
    },
    /// No kernel of the target can run a loop.
    #[error("no kernel for {archetype} ({label}): {source}")]
    Kernel {
        /// The kind of loop.
        archetype: String,
        /// Where it comes from.
        label: String,
        /// Why.
        #[source]
        source: griffinfly_kernel::KernelError,
    },
    /// The loops depend on each other in a circle: a fault of fusion.
    #[error("loops {0:?} depend on each other in a circle")]
    Cycle(Vec<usize>),
    /// A text or byte form that is no program.
    #[error("this is no program: {0}")]
    Malformed(String),
}

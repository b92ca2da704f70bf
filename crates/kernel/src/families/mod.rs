//! Kernel families: how each loop archetype becomes kernels.
//!
//! Input: a verified [`Loop`], the [`Target`], and where a family has alternatives the chosen one. Output: a
//! [`Realisation`]: dispatches in order (each may read what the ones before it wrote) and the scratch they need. An
//! [`Instance`] is one closed immutable value: code, bindings, geometry and parameters are made together and cannot
//! disagree.
//!
//! Invariants: every element of every result is written, whatever the sizes; no load or store outside a binding's range;
//! reductions have a fixed order; workgroup counts respect the target by folding over two dimensions.

pub mod attention;
pub mod contract;
mod emit;
mod map;
mod prefetch;
mod row;
mod scatter;
pub mod tuned;
mod update;

pub use emit::limits;
pub use map::realise_map;
pub use prefetch::{PREFETCH, prefetch};
pub use row::{RowRealisation, realise_row, realise_row_as};
pub use scatter::realise_scatter;
pub use update::realise_update;

use crate::KernelError;
use crate::kir::Kernel;
use griffinfly_ir::loops::{Loop, LoopKind};
use griffinfly_ir::target::{NumericClass, Target};

/// What a binding of an instance refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Operand number i of the loop.
    Operand(usize),
    /// Result number i of the loop.
    Result(usize),
    /// Scratch buffer number i of the realisation.
    Scratch(usize),
    /// The counters of the realisation.
    Counters,
}

/// One dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Readable choice: family, tiling, vector width, split; shown by inspection tools.
    pub name: String,
    /// Arithmetic of its products.
    pub numeric: NumericClass,
    /// The code.
    pub kernel: Kernel,
    /// What each binding of the kernel (in order) refers to.
    pub bindings: Vec<Slot>,
    /// Parameter words, in the kernel's order.
    pub parameters: Vec<u32>,
    /// Workgroups per dimension, within the target's limits.
    pub groups: [u32; 3],
}

/// The dispatches of one loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Realisation {
    /// In order; each sees what earlier ones wrote.
    pub dispatches: Vec<Instance>,
    /// Bytes of each scratch buffer.
    pub scratch: Vec<u64>,
    /// Bytes of counters: of its own, zero before its first run and left at zero by every run. None where 0.
    pub counters: u64,
}

/// Realises a loop as its kind, its sizes and the target suggest.
///
/// # Errors
/// A loop that needs more than the target allows, or that no family covers.
pub fn realise(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    match &l.kind {
        LoopKind::Map(_) => realise_map(l, target),
        LoopKind::Row(_) => realise_row(l, target),
        LoopKind::Scatter(_) => realise_scatter(l, target),
        LoopKind::Update(_) => realise_update(l, target),
        LoopKind::Contract(_) => contract::realise(l, target),
        LoopKind::Attention(_) => attention::realise(l, target),
    }
}

/// As [`realise`], with leave to round the operands of contractions to these numeric classes.
///
/// # Errors
/// As [`realise`].
pub fn realise_among(
    l: &Loop,
    target: &Target,
    classes: &[NumericClass],
) -> Result<Realisation, KernelError> {
    match &l.kind {
        LoopKind::Contract(_) => contract::realise_among(l, target, classes),
        LoopKind::Attention(_) => attention::realise_among(l, target, classes),
        _ => realise(l, target),
    }
}

//! Structural verifier: what neither the builder's type rules nor naga know. Returns all faults.
//!
//! Checked: workgroup size per dimension and in total, workgroup memory, number of bindings, parameter bytes; stores
//! only to read-write bindings, counters only by atomic additions, no loads from arrays in half precision; breaks only in loops;
//! and barriers and matrices only where all invocations arrive together:
//! * inside `if` only when the generator claimed it uniform ([`crate::kir::Builder::if_uniform`]) and the condition
//!   does not visibly depend on the invocation;
//!   (or uniform within subgroups, [`crate::kir::Builder::if_subgroup_uniform`], for matrices and barriers of subgroups: which invocations
//!   make a subgroup is not known here, so such a claim is taken as it is);
//! * inside `for` only when its bounds do not depend on the invocation;
//! * inside any loop only when nothing leaves that loop from a branch that is not claimed uniform.

mod iterations;

#[cfg(test)]
mod tests;

pub use iterations::most_iterations;

use crate::KernelError;
use crate::kir::{Access, BlockId, Claim, ExprKind, Kernel, Stmt, Uniformity};

/// What a target allows one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelLimits {
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Invocations per workgroup.
    pub max_invocations: u32,
    /// Invocations per workgroup and dimension.
    pub max_workgroup_size: [u32; 3],
    /// Storage bindings.
    pub max_bindings: u32,
    /// Bytes of the parameter block.
    pub max_parameter_bytes: u32,
}

/// One thing wrong with a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A dimension of the workgroup is zero or above the limit.
    #[error("workgroup size {size} in dimension {dimension} is outside 1..={limit}")]
    WorkgroupSize {
        /// Dimension, 0 to 2.
        dimension: usize,
        /// Its size.
        size: u32,
        /// Largest allowed size.
        limit: u32,
    },
    /// Too many invocations in a workgroup.
    #[error("{invocations} invocations per workgroup, {limit} allowed")]
    Invocations {
        /// Product of the workgroup size.
        invocations: u64,
        /// Largest allowed number.
        limit: u32,
    },
    /// Too much workgroup memory.
    #[error("{bytes} bytes of workgroup memory, {limit} allowed")]
    WorkgroupBytes {
        /// Sum over the arrays.
        bytes: u64,
        /// Largest allowed sum.
        limit: u32,
    },
    /// Too many storage bindings.
    #[error("{bindings} bindings, {limit} allowed")]
    Bindings {
        /// Number of bindings.
        bindings: usize,
        /// Largest allowed number.
        limit: u32,
    },
    /// Too many parameters.
    #[error("{bytes} bytes of parameters, {limit} allowed")]
    ParameterBytes {
        /// Bytes of the block.
        bytes: u64,
        /// Largest allowed number.
        limit: u32,
    },
    /// More loop iterations in one invocation than the target runs.
    #[error("up to {} loop iterations per invocation, {limit} allowed", .iterations.map_or("any number of".to_owned(), |n| n.to_string()))]
    Iterations {
        /// The bound; `None` when there is none.
        iterations: Option<u64>,
        /// Largest allowed number.
        limit: u32,
    },
    /// A store to a binding that is only read.
    #[error("store to the read-only binding `{binding}`")]
    ReadOnlyStore {
        /// Name of the binding.
        binding: String,
    },
    /// An atomic addition to a binding that is not one of counters.
    #[error("atomic addition to the binding `{binding}`, which has no counters")]
    NoCounters {
        /// Name of the binding.
        binding: String,
    },
    /// A plain load of a counter.
    #[error("load of a counter from `{binding}`")]
    CounterLoad {
        /// Name of the binding.
        binding: String,
    },
    /// A load from an array in half precision, which has matrices only.
    #[error("load from `{array}`, which is in half precision")]
    HalfLoad {
        /// Name of the array.
        array: String,
    },
    /// A break outside any loop.
    #[error("break outside a loop")]
    StrayBreak,
    /// A barrier that not all invocations may reach.
    #[error("barrier or matrix inside {}", .inside)]
    DivergentBarrier {
        /// What may split the workgroup around it.
        inside: Divergence,
    },
}

/// What splits a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Divergence {
    /// An `if` without the claim.
    #[error("an `if` that is not marked uniform")]
    UnmarkedIf,
    /// An `if` whose claim is visibly false.
    #[error("an `if` marked uniform whose condition depends on the invocation")]
    FalseClaim,
    /// An `if` that subgroups take as they like.
    #[error("an `if` that is marked uniform within subgroups only")]
    SubgroupIf,
    /// A `for` whose bounds differ.
    #[error("a `for` whose bounds depend on the invocation")]
    VaryingLoop,
    /// A loop that some invocations may leave early.
    #[error("a loop with a break in a branch that is not marked uniform")]
    VaryingBreak,
}

/// All faults of a kernel under the given limits; empty when it is valid.
pub fn faults(kernel: &Kernel, limits: &KernelLimits) -> Vec<Fault> {
    let mut faults = Vec::new();
    check_limits(kernel, limits, &mut faults);
    for node in &kernel.exprs {
        match &node.kind {
            ExprKind::LoadBinding(binding, _) => {
                let binding = &kernel.bindings[binding.index()];
                if binding.access == Access::Counters {
                    faults.push(Fault::CounterLoad { binding: binding.name.clone() });
                }
            }
            ExprKind::LoadShared(array, _) if kernel.shared[array.index()].half.is_some() => {
                faults.push(Fault::HalfLoad { array: kernel.shared[array.index()].name.clone() });
            }
            _ => {}
        }
    }
    Walk { kernel, faults: &mut faults }.block(Kernel::BODY, Context::default());
    faults
}

/// As [`faults`], as a result.
///
/// # Errors
/// [`KernelError::Invalid`] with all faults.
pub fn check(kernel: &Kernel, limits: &KernelLimits) -> Result<(), KernelError> {
    let faults = faults(kernel, limits);
    if faults.is_empty() { Ok(()) } else { Err(KernelError::Invalid { kernel: kernel.name.clone(), faults }) }
}

/// Whether each invocation of a dispatch stays within a number of loop iterations (`u32::MAX`: any).
///
/// # Errors
/// [`KernelError::Invalid`] with the bound.
pub fn check_iterations(
    kernel: &Kernel,
    parameters: &[u32],
    groups: [u32; 3],
    limit: u32,
) -> Result<(), KernelError> {
    if limit == u32::MAX {
        return Ok(());
    }
    match most_iterations(kernel, parameters, groups) {
        Some(most) if most <= u64::from(limit) => Ok(()),
        iterations => {
            let faults = vec![Fault::Iterations { iterations, limit }];
            Err(KernelError::Invalid { kernel: kernel.name.clone(), faults })
        }
    }
}

fn check_limits(kernel: &Kernel, limits: &KernelLimits, faults: &mut Vec<Fault>) {
    let sizes = kernel.workgroup_size.into_iter().zip(limits.max_workgroup_size).enumerate();
    for (dimension, (size, limit)) in sizes.filter(|(_, (size, limit))| *size == 0 || size > limit) {
        faults.push(Fault::WorkgroupSize { dimension, size, limit });
    }
    let invocations = kernel.invocations();
    if invocations > u64::from(limits.max_invocations) {
        faults.push(Fault::Invocations { invocations, limit: limits.max_invocations });
    }
    let bytes = kernel.workgroup_bytes();
    if bytes > u64::from(limits.max_workgroup_bytes) {
        faults.push(Fault::WorkgroupBytes { bytes, limit: limits.max_workgroup_bytes });
    }
    let bindings = kernel.bindings.len();
    if bindings as u64 > u64::from(limits.max_bindings) {
        faults.push(Fault::Bindings { bindings, limit: limits.max_bindings });
    }
    let bytes = kernel.parameter_bytes();
    if bytes > u64::from(limits.max_parameter_bytes) {
        faults.push(Fault::ParameterBytes { bytes, limit: limits.max_parameter_bytes });
    }
}

/// What surrounds a statement.
#[derive(Clone, Copy, Default)]
struct Context {
    in_loop: bool,
    /// Why not all invocations of the workgroup need to be here, of a subgroup.
    divergence: Option<Divergence>,
    in_subgroup: Option<Divergence>,
}

impl Context {
    fn under(self, divergence: Option<Divergence>) -> Self {
        let in_subgroup = self.in_subgroup.or(divergence);
        Self { divergence: self.divergence.or(divergence), in_subgroup, ..self }
    }

    /// In a branch that whole subgroups take.
    fn by_subgroup(self, divergence: Option<Divergence>) -> Self {
        Self { divergence: self.divergence.or(divergence), ..self }
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    faults: &'a mut Vec<Fault>,
}

impl Walk<'_> {
    fn block(&mut self, id: BlockId, context: Context) {
        for statement in &self.kernel.block(id).statements {
            self.statement(statement, context);
        }
    }

    fn statement(&mut self, statement: &Stmt, context: Context) {
        match *statement {
            Stmt::Bind(_) | Stmt::Declare(..) | Stmt::Assign(..) => {}
            Stmt::StoreShared(..) | Stmt::StoreLane(..) => {}
            Stmt::StoreBinding(binding, ..) => {
                let binding = &self.kernel.bindings[binding.index()];
                if matches!(binding.access, Access::Read | Access::Counters) {
                    self.faults.push(Fault::ReadOnlyStore { binding: binding.name.clone() });
                }
            }
            Stmt::AtomicAdd(_, binding, ..) => {
                let binding = &self.kernel.bindings[binding.index()];
                if binding.access != Access::Counters {
                    self.faults.push(Fault::NoCounters { binding: binding.name.clone() });
                }
            }
            Stmt::If { condition, uniform, accept, reject } => {
                let divergence = self.branch_divergence(condition.index(), uniform);
                let inner = match uniform {
                    Claim::Subgroup => context.by_subgroup(divergence),
                    Claim::Nobody | Claim::Workgroup => context.under(divergence),
                };
                self.block(accept, inner);
                if let Some(reject) = reject {
                    self.block(reject, inner);
                }
            }
            Stmt::For { counter, body, .. } => {
                let uniformity = self.kernel.counters[counter.index()].uniformity;
                let varying = (uniformity == Uniformity::Varying).then_some(Divergence::VaryingLoop);
                self.repeated(body, context.under(varying));
            }
            Stmt::Loop(body) => self.repeated(body, context),
            Stmt::Break if !context.in_loop => self.faults.push(Fault::StrayBreak),
            Stmt::Break => {}
            Stmt::DeclareMatrix(_) | Stmt::ClearMatrix(_) => {}
            Stmt::Barrier | Stmt::Fence => self.arrives(context.divergence),
            Stmt::SubgroupBarrier
            | Stmt::LoadMatrix(..)
            | Stmt::MultiplyAdd { .. }
            | Stmt::AddMatrix(..)
            | Stmt::StoreMatrix(..) => self.arrives(context.in_subgroup),
        }
    }

    fn arrives(&mut self, divergence: Option<Divergence>) {
        self.faults.extend(divergence.map(|inside| Fault::DivergentBarrier { inside }));
    }

    fn repeated(&mut self, body: BlockId, context: Context) {
        let varying = self.leaves_early(body, false).then_some(Divergence::VaryingBreak);
        self.block(body, Context { in_loop: true, ..context.under(varying) });
    }

    fn branch_divergence(&self, condition: usize, uniform: Claim) -> Option<Divergence> {
        let varying = self.kernel.exprs[condition].uniformity == Uniformity::Varying;
        match (uniform, varying) {
            (Claim::Workgroup, false) => None,
            (Claim::Workgroup, true) => Some(Divergence::FalseClaim),
            (Claim::Subgroup, _) => Some(Divergence::SubgroupIf),
            (Claim::Nobody, _) => Some(Divergence::UnmarkedIf),
        }
    }

    /// Whether some invocations only may break out of the loop around this block.
    fn leaves_early(&self, id: BlockId, divergent: bool) -> bool {
        self.kernel.block(id).statements.iter().any(|statement| match *statement {
            Stmt::Break => divergent,
            Stmt::If { condition, uniform, accept, reject } => {
                let divergent = divergent || self.branch_divergence(condition.index(), uniform).is_some();
                self.leaves_early(accept, divergent)
                    || reject.is_some_and(|reject| self.leaves_early(reject, divergent))
            }
            _ => false,
        })
    }
}

//! Bindings and the closing of an instance: what a kernel touches, and its geometry.

use super::{Env, unsupported};
use crate::KernelError;
use crate::families::{Instance, Slot};
use crate::kir::{Access, Buffer, Builder, Expr, Type};
use crate::verify::{self, KernelLimits};
use griffinfly_ir::loops::{Body, Loop};
use griffinfly_ir::target::{NumericClass, Target};
use griffinfly_ir::types::{DType, TensorType};

/// Element type of a buffer of this dtype.
pub(crate) fn element_type(dtype: DType) -> Type {
    match dtype {
        DType::F32 => Type::F32,
        DType::I32 => Type::I32,
        DType::U32 | DType::Bool => Type::U32,
    }
}

/// What a target allows one kernel.
#[must_use]
pub fn limits(target: &Target) -> KernelLimits {
    KernelLimits {
        max_workgroup_bytes: target.max_workgroup_bytes,
        max_invocations: target.max_invocations,
        max_workgroup_size: target.max_workgroup_size,
        max_bindings: target.max_bindings,
        max_parameter_bytes: target.max_parameter_bytes,
    }
}

/// Buffers of a kernel: the operands and results it uses, then scratch, in the order of declaration.
pub(crate) struct Bindings<'b> {
    b: &'b Builder,
    slots: Vec<Slot>,
    /// Buffer of each operand of the loop that the kernel binds.
    pub(crate) operands: Vec<Option<Buffer<'b>>>,
    /// Buffer of each result of the loop that the kernel binds.
    pub(crate) results: Vec<Option<Buffer<'b>>>,
}

impl<'b> Bindings<'b> {
    /// No bindings yet.
    pub(crate) fn new(b: &'b Builder, l: &Loop) -> Self {
        let (operands, results) = (vec![None; l.operands.len()], vec![None; l.results.len()]);
        Self { b, slots: Vec::new(), operands, results }
    }

    /// Binds the operands that these bodies read.
    pub(crate) fn bodies(mut self, types: &[TensorType], bodies: &[&Body]) -> Self {
        let mut used: Vec<usize> = bodies
            .iter()
            .flat_map(|body| super::needed(body).into_iter().map(|k| body.loads[k].operand))
            .collect();
        used.sort_unstable();
        used.dedup();
        for operand in used {
            if let Some(ty) = types.get(operand) {
                self.operand(operand, element_type(ty.dtype));
            }
        }
        self
    }

    /// Binds one operand with elements of a given type.
    pub(crate) fn operand(&mut self, operand: usize, element: Type) -> Buffer<'b> {
        let buffer = self.slot(Slot::Operand(operand), format!("x{operand}"), element, Access::Read);
        if let Some(slot) = self.operands.get_mut(operand) {
            *slot = Some(buffer);
        }
        buffer
    }

    /// Binds one result with elements of a given type.
    pub(crate) fn result(&mut self, result: usize, element: Type) -> Buffer<'b> {
        let buffer = self.slot(Slot::Result(result), format!("y{result}"), element, Access::ReadWrite);
        if let Some(slot) = self.results.get_mut(result) {
            *slot = Some(buffer);
        }
        buffer
    }

    /// Binds one scratch buffer.
    pub(crate) fn scratch(&mut self, scratch: usize, element: Type, access: Access) -> Buffer<'b> {
        self.slot(Slot::Scratch(scratch), format!("s{scratch}"), element, access)
    }

    /// Binds the counters.
    pub(crate) fn counters(&mut self) -> Buffer<'b> {
        self.slot(Slot::Counters, "counters".into(), Type::U32, Access::Counters)
    }

    fn slot(&mut self, slot: Slot, name: String, element: Type, access: Access) -> Buffer<'b> {
        self.slots.push(slot);
        self.b.buffer(name, element, access)
    }

    /// Environment of a body at a point, without carries.
    pub(crate) fn env<'a>(
        &'a self,
        types: &'a [TensorType],
        extents: &'a [usize],
        axes: &'a [Expr<'b>],
    ) -> Env<'a, 'b> {
        Env { types, buffers: &self.operands, axes, extents, linear: None, carries: &[] }
    }

    /// The bound buffer of a result.
    pub(crate) fn target(&self, result: usize) -> Result<Buffer<'b>, KernelError> {
        let buffer = self.results.get(result).copied().flatten();
        buffer.ok_or_else(|| unsupported("store", format!("result {result} is not bound")))
    }

    /// What each binding refers to.
    pub(crate) fn slots(self) -> Vec<Slot> {
        self.slots
    }
}

/// Workgroups folded over two dimensions; at most one row of them more than asked for.
pub(crate) fn fold_groups(count: u64, target: &Target) -> Result<[u32; 3], KernelError> {
    let [width, height] = [target.max_groups[0], target.max_groups[1]].map(|most| u64::from(most.max(1)));
    let rows = count.div_ceil(width).max(1);
    if rows > height {
        return Err(unsupported("geometry", format!("{count} workgroups, {width} x {height} allowed")));
    }
    Ok([count.max(1).div_ceil(rows) as u32, rows as u32, 1])
}

/// An instance before its kernel is finished and checked.
pub(crate) struct Draft {
    /// Readable choice.
    pub(crate) name: String,
    /// What each binding refers to.
    pub(crate) bindings: Vec<Slot>,
    /// Parameter words in order.
    pub(crate) parameters: Vec<u32>,
    /// Workgroups.
    pub(crate) groups: [u32; 3],
}

impl Draft {
    /// Finishes the kernel and checks it against the target.
    pub(crate) fn finish(self, b: Builder, target: &Target) -> Result<Instance, KernelError> {
        let kernel = b.finish()?;
        verify::check(&kernel, &limits(target))?;
        let Draft { name, bindings, parameters, groups } = self;
        verify::check_iterations(&kernel, &parameters, groups, target.max_iterations)?;
        Ok(Instance { name, numeric: NumericClass::F32, kernel, bindings, parameters, groups })
    }
}

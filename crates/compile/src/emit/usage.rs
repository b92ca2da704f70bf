//! Bindings for targets that track the use of whole buffers.
//!
//! WebGPU allows one dispatch either to read a buffer or to write it, whatever the ranges, and no two bindings of a dispatch that
//! overlap where one of them is writable (W3C WebGPU, sections 3.4.5 and 10.1.1). Input: a program whose memory is placed, and the
//! kernels of its dispatches. Output: the same with kernels for the uses that occur: operands that lie in an arena the dispatch
//! writes are declared writable, and an operand that lies where a result does becomes one binding with it.
//!
//! Invariants: a binding of a dispatch still says what the dispatch does with its range; that of the kernel says what is declared.

use crate::error::CompileError;
use crate::program::{Binding, BindingAccess, Kernel, KernelId, Program, Work};
use griffinfly_kernel::kir::{self, Rebinding};
use griffinfly_kernel::print::{self, ParameterBlock, PrintOptions};
use std::collections::HashMap;

/// Gives the program the kernels of its dispatches, each with the code it was printed from.
///
/// # Errors
/// A dispatch that writes what it binds elsewhere too.
pub(super) fn run(program: &mut Program, kernels: &[(Kernel, kir::Kernel)]) -> Result<(), CompileError> {
    let mut variants: HashMap<(usize, Vec<Rebinding>), KernelId> = HashMap::new();
    let mut faults = Vec::new();
    for (number, dispatch) in program.dispatches.iter_mut().enumerate() {
        let Work::Kernel { kernel, .. } = &mut dispatch.work else { continue };
        let base = kernel.index();
        let (described, source) = &kernels[base];
        let uses = uses(source, &dispatch.bindings);
        if let Some(other) = overlap(&dispatch.bindings, &uses) {
            faults
                .push(format!("dispatch {number} ({}): binding {other} overlaps another", dispatch.instance));
            continue;
        }
        let made = variants.get(&(base, uses.clone())).copied();
        let id = match made.or_else(|| variant(&mut program.kernels, (described, source), &uses)) {
            Some(id) => id,
            None => {
                faults.push(format!("dispatch {number} ({}): {uses:?}", dispatch.instance));
                continue;
            }
        };
        variants.insert((base, uses.clone()), id);
        *kernel = id;
        let mut uses = uses.iter();
        dispatch.bindings.retain(|_| !matches!(uses.next(), Some(Rebinding::SameAs(_))));
    }
    if faults.is_empty() { Ok(()) } else { Err(CompileError::Faults { stage: "bindings", faults }) }
}

/// What becomes of each binding.
fn uses(kernel: &kir::Kernel, bindings: &[Binding]) -> Vec<Rebinding> {
    let writes = || bindings.iter().enumerate().filter(|(_, other)| other.access == BindingAccess::Write);
    let rebinding = |(number, binding): (usize, &Binding)| {
        if binding.access == BindingAccess::Write {
            return Rebinding::Keep;
        }
        let element = |number: usize| kernel.bindings.get(number).map(|binding| binding.element);
        let same = |(other, result): &(usize, &Binding)| {
            (result.arena, result.offset, result.bytes) == (binding.arena, binding.offset, binding.bytes)
                && element(*other) == element(number)
        };
        let is_writable = || writes().any(|(_, other)| other.arena == binding.arena);
        match writes().find(same).or_else(|| bindings.iter().enumerate().take(number).find(same)) {
            Some((other, result)) if result.access == BindingAccess::Write || is_writable() => {
                Rebinding::SameAs(other)
            }
            _ if is_writable() => Rebinding::Writable,
            _ => Rebinding::Keep,
        }
    };
    bindings.iter().enumerate().map(rebinding).collect()
}

/// The number of a binding that overlaps another one where one of them is declared writable.
fn overlap(bindings: &[Binding], uses: &[Rebinding]) -> Option<usize> {
    let is_writable =
        |n: usize| bindings[n].access == BindingAccess::Write || matches!(uses[n], Rebinding::Writable);
    let stays = |n: &usize| !matches!(uses[*n], Rebinding::SameAs(_));
    let meet = |a: &Binding, b: &Binding| {
        a.arena == b.arena && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
    };
    let mut numbers = (0..bindings.len()).filter(stays);
    numbers.find(|&n| {
        let others = (0..n).filter(stays);
        others.into_iter().any(|o| (is_writable(o) || is_writable(n)) && meet(&bindings[o], &bindings[n]))
    })
}

/// A kernel for these uses, printed; `None` if it cannot have them.
fn variant(
    kernels: &mut Vec<Kernel>,
    (described, source): (&Kernel, &kir::Kernel),
    uses: &[Rebinding],
) -> Option<KernelId> {
    let kernel = source.rebound(uses)?;
    let parameters = ParameterBlock::Uniform { binding: kernel.bindings.len() as u32 };
    let wgsl = print::wgsl(&kernel, &PrintOptions { parameters });
    let access = |binding: &kir::Binding| match binding.access {
        kir::Access::Read => BindingAccess::Read,
        kir::Access::ReadWrite | kir::Access::Exchange | kir::Access::Counters => BindingAccess::Write,
    };
    let bindings = kernel.bindings.iter().map(access).collect();
    kernels.push(Kernel { wgsl, bindings, ..described.clone() });
    Some(KernelId(kernels.len() as u32 - 1))
}

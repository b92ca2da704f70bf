//! The same kernel with other bindings.
//!
//! Input: a kernel and what becomes of each of its bindings; output: a kernel that computes the same, given that bindings which
//! become one are the same memory. Reads of memory stay where the generator put them, so a binding that is read and written
//! afterwards behaves as the two it was made of.

use super::expr::ExprKind;
use super::kernel::{Access, BindingId, Kernel, Stmt};

/// What becomes of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rebinding {
    /// It stays.
    Keep,
    /// It stays, and may be written.
    Writable,
    /// It goes: the binding with this number, which is kept and has the same elements, is the same memory.
    SameAs(usize),
}

impl Kernel {
    /// This kernel with other bindings; the ones that stay keep their order. `None` if a binding is the same as one that goes or
    /// has other elements, or if there are not as many as bindings.
    #[must_use]
    pub fn rebound(&self, uses: &[Rebinding]) -> Option<Kernel> {
        let mut numbers = Vec::with_capacity(uses.len());
        let mut kernel = self.clone();
        kernel.bindings.clear();
        if uses.len() != self.bindings.len() {
            return None;
        }
        for (binding, rebinding) in self.bindings.iter().zip(uses) {
            numbers.push(kernel.bindings.len() as u32);
            match rebinding {
                Rebinding::Keep => kernel.bindings.push(binding.clone()),
                Rebinding::Writable => {
                    let mut binding = binding.clone();
                    if binding.access == Access::Read {
                        binding.access = Access::ReadWrite;
                    }
                    kernel.bindings.push(binding);
                }
                Rebinding::SameAs(other) => {
                    let same = self.bindings.get(*other)?;
                    if same.element != binding.element || matches!(uses[*other], Rebinding::SameAs(_)) {
                        return None;
                    }
                }
            }
        }
        for (number, rebinding) in uses.iter().enumerate() {
            if let Rebinding::SameAs(other) = rebinding {
                numbers[number] = numbers[*other];
            }
        }
        let new = |id: BindingId| BindingId(numbers[id.index()]);
        for node in &mut kernel.exprs {
            if let ExprKind::LoadBinding(binding, _) = &mut node.kind {
                *binding = new(*binding);
            }
        }
        for statement in kernel.blocks.iter_mut().flat_map(|block| &mut block.statements) {
            if let Stmt::StoreBinding(binding, ..) | Stmt::AtomicAdd(_, binding, ..) = statement {
                *binding = new(*binding);
            }
        }
        Some(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kir::{Builder, Type};
    use crate::print::{self, PrintOptions};

    /// `y[i] = x[i] + z[i]`, then `x` is read once more.
    fn kernel(x: Type) -> Kernel {
        let b = Builder::new("k", [64, 1, 1]);
        let (x, z, y) = (b.read("x", x), b.read("z", Type::F32), b.read_write("y", Type::F32));
        let i = b.flat_global_id();
        let first = x.load(i);
        let first = if first.ty() == Type::F32 { first } else { first.lane(0) };
        y.store(i, first + z.load(i));
        y.store(i, first * 2.0);
        b.finish().unwrap()
    }

    #[test]
    fn bindings_become_one_or_writable_and_close_ranks() {
        let rebound =
            kernel(Type::F32).rebound(&[Rebinding::SameAs(2), Rebinding::Writable, Rebinding::Keep]).unwrap();
        let text = print::wgsl(&rebound, &PrintOptions::default());
        assert!(text.contains("@group(0) @binding(0) var<storage, read_write> z"), "{text}");
        assert!(text.contains("@group(0) @binding(1) var<storage, read_write> y"), "{text}");
        assert!(!text.contains("> x"), "{text}");
        // What was read before the first store is what the second one uses.
        let loads = text.matches("= y[").count();
        assert_eq!(loads, 1, "{text}");
        crate::spirv::compile(&text, print::ENTRY).unwrap();
    }

    #[test]
    fn what_is_not_the_same_is_refused() {
        let k = kernel(Type::F32X4);
        let keep = Rebinding::Keep;
        assert!(k.rebound(&[Rebinding::SameAs(2), keep, keep]).is_none(), "other elements");
        assert!(k.rebound(&[keep, Rebinding::SameAs(7), keep]).is_none(), "no such binding");
        assert!(k.rebound(&[keep, keep]).is_none(), "too few");
        let k = kernel(Type::F32);
        assert!(k.rebound(&[Rebinding::SameAs(1), Rebinding::SameAs(2), keep]).is_none(), "one that goes");
        assert_eq!(k.rebound(&[keep; 3]).unwrap(), k);
    }
}

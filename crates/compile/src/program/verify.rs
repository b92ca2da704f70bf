//! The program verifier.
//!
//! Invariants: every id exists; places and bindings lie in their arenas at aligned offsets; kernels respect the target; each
//! dispatch is in exactly one section and level; dispatches of one level do not conflict; a dispatch writes only where it may.

use super::{BindingAccess, Dispatch, ExternalKind, Place, Program, Role, Work};
use griffinfly_ir::target::{Backend, TENSOR_ALIGNMENT, Target};
use griffinfly_ir::types::TensorType;

impl Program {
    /// All broken invariants; empty for a sound program.
    #[must_use]
    pub fn verify(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.format != super::FORMAT {
            faults.push(format!("format {} is not {}", self.format, super::FORMAT));
        }
        for (i, a) in self.arenas.iter().enumerate() {
            if !a.bytes.is_multiple_of(TENSOR_ALIGNMENT) || a.bytes > self.target.chunk_bytes() {
                faults.push(format!("arena {i} has {} bytes, limit {}", a.bytes, self.target.chunk_bytes()));
            }
        }
        for e in &self.externals {
            // Kernels bind all step scalars together, so one of them need not lie where a binding may start.
            let alignment = if e.kind == ExternalKind::StepScalar { 4 } else { TENSOR_ALIGNMENT };
            faults.extend(self.range_fault_at(alignment, e.place, e.ty.bytes() as u64, &e.name));
        }
        for c in &self.constants {
            faults.extend(self.range_fault(c.place, c.words.len() as u64 * 4, "constant"));
        }
        for (i, d) in self.dispatches.iter().enumerate() {
            self.check_dispatch(i, d, &mut faults);
        }
        self.check_levels(&mut faults);
        self.check_guard(&mut faults);
        faults
    }

    fn check_guard(&self, faults: &mut Vec<String>) {
        let Some(guard) = &self.id_guard else { return };
        for (what, index, kind) in
            [("state", guard.state, ExternalKind::State), ("output", guard.output, ExternalKind::Output)]
        {
            let flag = self.externals.get(index);
            if !flag.is_some_and(|e| e.kind == kind && e.ty == TensorType::f32([])) {
                faults.push(format!("the {what} of the id flag, external {index}, is no scalar {what}"));
            }
        }
    }

    fn range_fault(&self, place: Place, bytes: u64, what: &str) -> Option<String> {
        self.range_fault_at(TENSOR_ALIGNMENT, place, bytes, what)
    }

    fn range_fault_at(&self, alignment: u64, place: Place, bytes: u64, what: &str) -> Option<String> {
        let Some(arena) = self.arenas.get(place.arena.index()) else {
            return Some(format!("{what}: arena {} does not exist", place.arena.0));
        };
        let inside = place.offset.saturating_add(bytes) <= arena.bytes;
        let aligned = place.offset.is_multiple_of(alignment);
        (!inside || !aligned)
            .then(|| format!("{what}: {bytes} bytes at {} of an arena of {}", place.offset, arena.bytes))
    }

    fn check_dispatch(&self, i: usize, d: &Dispatch, faults: &mut Vec<String>) {
        let what = format!("dispatch {i} ({})", d.instance);
        for b in &d.bindings {
            faults.extend(self.range_fault(Place { arena: b.arena, offset: b.offset }, b.bytes, &what));
            let constant =
                |a: &super::Arena| matches!(a.role, Role::Constants | Role::Inputs | Role::Scalars);
            if b.access == BindingAccess::Write && self.arenas.get(b.arena.index()).is_some_and(constant) {
                faults.push(format!("{what} writes an arena it may only read"));
            }
        }
        let Some(l) = self.loops.get(d.source.index()) else {
            faults.push(format!("{what}: loop {} does not exist", d.source.0));
            return;
        };
        match (&d.work, self.target.backend) {
            (Work::Loop, Backend::Host) => {
                if d.bindings.len() != l.operands.len() + l.results.len() {
                    faults.push(format!("{what} binds {} ranges", d.bindings.len()));
                }
            }
            (Work::Kernel { kernel, parameters, groups }, Backend::Vulkan | Backend::WebGpu) => {
                let Some(k) = self.kernels.get(kernel.index()) else {
                    faults.push(format!("{what}: kernel {} does not exist", kernel.0));
                    return;
                };
                if k.bindings.len() != d.bindings.len() || k.parameter_words as usize != parameters.len() {
                    faults.push(format!("{what} does not fit kernel {}", k.name));
                }
                check_geometry(&what, *groups, k.workgroup_size, &self.target, faults);
            }
            _ => faults.push(format!("{what} does not run on this target")),
        }
    }

    fn check_levels(&self, faults: &mut Vec<String>) {
        let mut seen = vec![0; self.dispatches.len()];
        for (s, section) in self.sections.iter().enumerate() {
            for (l, level) in section.levels.iter().enumerate() {
                for (n, id) in level.iter().enumerate() {
                    let Some(count) = seen.get_mut(id.index()) else {
                        faults.push(format!("section {s} level {l}: dispatch {} does not exist", id.0));
                        continue;
                    };
                    *count += 1;
                    let others = level[..n].iter().filter_map(|o| self.dispatches.get(o.index()));
                    let mine = &self.dispatches[id.index()];
                    if others.into_iter().any(|o| crate::emit::conflict(o, mine)) {
                        faults.push(format!("section {s} level {l}: dispatch {} conflicts", id.0));
                    }
                }
            }
        }
        let bad = seen.iter().enumerate().filter(|(_, n)| **n != 1);
        faults.extend(bad.map(|(i, n)| format!("dispatch {i} is scheduled {n} times")));
    }
}

fn check_geometry(what: &str, groups: [u32; 3], size: [u32; 3], target: &Target, faults: &mut Vec<String>) {
    let invocations: u32 = size.iter().product();
    if invocations == 0 || invocations > target.max_invocations {
        faults.push(format!("{what}: {invocations} invocations, limit {}", target.max_invocations));
    }
    for a in 0..3 {
        if groups[a] == 0 || groups[a] > target.max_groups[a] || size[a] > target.max_workgroup_size[a] {
            faults.push(format!("{what}: {groups:?} groups of {size:?}"));
        }
    }
}

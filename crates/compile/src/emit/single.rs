//! The program of one loop alone, over memory that the caller owns.
//!
//! Operands and results are state, an arena each, in the order of the loop, so several programs of a loop can be bound to the same
//! buffers. Its dispatches run one after the other in the forward section.

use super::kernels::Kernels;
use crate::error::CompileError;
use crate::program::{
    Arena, ArenaId, Binding, ConstantData, Dispatch, DispatchId, FORMAT, LoopId, MemoryReport, Place,
    Program, Role, Section, SectionKind, Work,
};
use griffinfly_ir::layout::aligned;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::Target;
use griffinfly_kernel::families::{Realisation, Slot};

/// The program of a loop as it was realised: arena i is operand i, the results follow.
///
/// # Errors
/// A kernel that breaks a limit of the target or does not translate.
pub(crate) fn single(l: &Loop, realisation: &Realisation, target: &Target) -> Result<Program, CompileError> {
    let (operands, results) = (l.operands.len(), l.results.len());
    let mut arenas = Vec::new();
    let mut arena =
        |role: Role, bytes: u64| arenas.push(Arena { role, chunk: 0, bytes: aligned(bytes.max(1)) });
    l.operands.iter().chain(&l.results).for_each(|ty| arena(Role::State, ty.bytes() as u64));
    realisation.scratch.iter().for_each(|bytes| arena(Role::Scratch, *bytes));
    let counters = operands + results + realisation.scratch.len();
    let mut constants = Vec::new();
    if realisation.counters > 0 {
        arena(Role::Counters, realisation.counters);
        let place = Place { arena: ArenaId(counters as u32), offset: 0 };
        constants.push(ConstantData { place, words: vec![0; realisation.counters as usize / 4] });
    }
    let place = |slot: &Slot| match slot {
        Slot::Operand(i) => (*i, l.operands[*i].bytes() as u64),
        Slot::Result(i) => (operands + i, l.results[*i].bytes() as u64),
        Slot::Scratch(i) => (operands + results + i, realisation.scratch[*i]),
        Slot::Counters => (counters, realisation.counters),
    };
    let mut kernels = Kernels::default();
    let mut dispatches = Vec::new();
    for instance in &realisation.dispatches {
        let kernel = kernels.add(instance, target)?;
        let bindings = instance.bindings.iter().zip(kernels.accesses(kernel)).map(|(slot, access)| {
            let (arena, bytes) = place(slot);
            Binding { arena: ArenaId(arena as u32), offset: 0, bytes, access: *access }
        });
        dispatches.push(Dispatch {
            bindings: bindings.collect(),
            work: Work::Kernel { kernel, parameters: instance.parameters.clone(), groups: instance.groups },
            source: LoopId(0),
            instance: instance.name.clone(),
            provenance: Vec::new(),
        });
    }
    let levels = (0..dispatches.len()).map(|i| vec![DispatchId(i as u32)]).collect();
    let mut program = Program {
        format: FORMAT,
        generator: env!("CARGO_PKG_VERSION").into(),
        target: target.clone(),
        arenas,
        externals: Vec::new(),
        constants,
        kernels: Vec::new(),
        loops: vec![l.clone()],
        dispatches,
        sections: vec![Section { kind: SectionKind::ForwardBackward, levels }],
        memory: MemoryReport::default(),
        id_guard: None,
    };
    kernels.settle(&mut program)?;
    Ok(program)
}

//! Programs of a single loop, and their times, for the examples that compare kernels.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tools for the terminal")]

use griffinfly_compile::kernel::families::{Instance, Realisation, Slot};
use griffinfly_compile::kernel::{kir, print, spirv};
use griffinfly_compile::program::{
    Arena, ArenaId, Binding, BindingAccess, ConstantData, Dispatch, DispatchId, External, ExternalKind,
    FORMAT, Kernel, KernelId, LoopId, MemoryReport, Place, Program, Role, Section, SectionKind, Work,
};
use griffinfly_gpu::{Device, Executor, Sections};
use griffinfly_ir::loops::Loop;
use griffinfly_ir::types::TensorType;
use std::time::{Duration, Instant};

/// Words of an operand that are written.
const MOST_WORDS: usize = 1 << 20;

/// What a loop takes.
pub(crate) struct Times {
    /// Nanoseconds of each of its dispatches between timestamps: medians.
    pub(crate) dispatches: Vec<f64>,
    /// Wall time of one run in microseconds: the median.
    pub(crate) wall: f64,
}

/// Times a program of so many repeats, after a warm-up on hardware.
pub(crate) fn times(
    device: &dyn Device,
    executor: &mut dyn Executor,
    (repeats, warm, rounds): (Repeats, Duration, usize),
) -> Times {
    let warm = if device.target().is_hardware { warm } else { Duration::ZERO };
    let (started, mut walls) = (Instant::now(), Vec::new());
    loop {
        let before = Instant::now();
        let ticket = executor.submit(Sections::ALL).unwrap();
        executor.wait(ticket, Duration::from_secs(60)).unwrap();
        walls.push(before.elapsed().as_secs_f64() * 1e6 / repeats.count as f64);
        if started.elapsed() >= warm {
            break;
        }
    }
    let count = executor.program().dispatches.len() / repeats.count;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); count];
    for _ in 0..rounds {
        let timing = executor.profile(Sections::ALL).unwrap();
        timing.dispatch_ns.iter().enumerate().for_each(|(i, (_, ns))| times[i % count].push(*ns));
    }
    Times { dispatches: times.into_iter().map(median).collect(), wall: median(walls) }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How often a loop runs in a step, each time after the one before.
#[derive(Clone, Copy)]
pub(crate) struct Repeats {
    pub(crate) count: usize,
    /// Whether each has operands of its own, so that no cache holds them.
    pub(crate) cold: bool,
}

/// The program of one loop, with arbitrary contents; only the start of long operands has values.
pub(crate) fn program(device: &dyn Device, l: &Loop, realisation: &Realisation, repeats: Repeats) -> Program {
    let mut program = Program {
        format: FORMAT,
        generator: "example".into(),
        target: device.target().clone(),
        arenas: vec![],
        externals: vec![],
        constants: vec![],
        kernels: vec![],
        loops: vec![],
        dispatches: vec![],
        sections: vec![Section { kind: SectionKind::ForwardBackward, levels: vec![] }],
        memory: MemoryReport::default(),
        id_guard: None,
    };
    let apart = |ty: &TensorType| ty.bytes().next_multiple_of(256);
    let copies = if repeats.cold { repeats.count } else { 1 };
    let operands: Vec<_> =
        l.operands.iter().map(|ty| arena(&mut program, Role::Constants, apart(ty) * copies).0).collect();
    for (place, ty) in operands.iter().zip(&l.operands) {
        let word = |i: usize| (((i * 2_654_435_761) >> 8 & 0xffff) as f32 / 65_536.0 - 0.5).to_bits();
        let words = (0..ty.elements().min(MOST_WORDS)).map(word).collect();
        program.constants.push(ConstantData { place: *place, words });
    }
    let results: Vec<_> = l.results.iter().map(|ty| arena(&mut program, Role::Outputs, ty.bytes())).collect();
    for (i, (ty, (place, _))) in l.results.iter().zip(&results).enumerate() {
        let (name, kind) = (format!("y{i}"), ExternalKind::Output);
        program.externals.push(External { name, kind, ty: ty.clone(), place: *place });
    }
    let scratch: Vec<_> =
        realisation.scratch.iter().map(|n| arena(&mut program, Role::Scratch, *n as usize)).collect();
    let counters = (realisation.counters > 0).then(|| {
        let counters = arena(&mut program, Role::Counters, realisation.counters as usize);
        let words = vec![0; realisation.counters as usize / 4];
        program.constants.push(ConstantData { place: counters.0, words });
        counters
    });
    let kernels: Vec<_> = realisation.dispatches.iter().map(|x| kernel(&mut program, x)).collect();
    for copy in 0..repeats.count {
        for (instance, kernel) in realisation.dispatches.iter().zip(&kernels) {
            let buffer = |slot: &Slot| match slot {
                Slot::Operand(i) => {
                    let (at, ty) = (if repeats.cold { copy } else { 0 }, &l.operands[*i]);
                    (Place { offset: (at * apart(ty)) as u64, ..operands[*i] }, ty.bytes() as u64)
                }
                Slot::Result(i) => results[*i],
                Slot::Scratch(i) => scratch[*i],
                Slot::Counters => counters.unwrap(),
            };
            let places: Vec<_> = instance.bindings.iter().map(buffer).collect();
            push(&mut program, (instance, *kernel), &places);
        }
    }
    program
}

fn arena(program: &mut Program, role: Role, bytes: usize) -> (Place, u64) {
    program.arenas.push(Arena { role, chunk: 0, bytes: (bytes as u64).next_multiple_of(256) });
    (Place { arena: ArenaId(program.arenas.len() as u32 - 1), offset: 0 }, bytes as u64)
}

fn access(binding: &kir::Binding) -> BindingAccess {
    match binding.access {
        kir::Access::Read => BindingAccess::Read,
        _ => BindingAccess::Write,
    }
}

fn kernel(program: &mut Program, instance: &Instance) -> KernelId {
    let wgsl = print::wgsl(&instance.kernel, &print::PrintOptions::default());
    if std::env::var_os("GRIFFINFLY_PRINT").is_some() {
        println!("{wgsl}");
    }
    program.kernels.push(Kernel {
        name: instance.name.clone(),
        numeric: instance.numeric,
        spirv: spirv::compile(&wgsl, print::ENTRY).unwrap(),
        wgsl,
        bindings: instance.kernel.bindings.iter().map(access).collect(),
        parameter_words: instance.kernel.params.len() as u32,
        workgroup_size: instance.kernel.workgroup_size,
        workgroup_bytes: instance.kernel.workgroup_bytes() as u32,
    });
    KernelId(program.kernels.len() as u32 - 1)
}

fn push(program: &mut Program, (instance, kernel): (&Instance, KernelId), places: &[(Place, u64)]) {
    let accesses = instance.kernel.bindings.iter().map(access);
    let bindings = places.iter().zip(accesses).map(|((place, bytes), access)| Binding {
        arena: place.arena,
        offset: place.offset,
        bytes: *bytes,
        access,
    });
    program.dispatches.push(Dispatch {
        bindings: bindings.collect(),
        work: Work::Kernel { kernel, parameters: instance.parameters.clone(), groups: instance.groups },
        source: LoopId(0),
        instance: instance.name.clone(),
        provenance: vec![],
    });
    program.sections[0].levels.push(vec![DispatchId(program.dispatches.len() as u32 - 1)]);
}

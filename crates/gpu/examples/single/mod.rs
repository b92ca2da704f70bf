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
use std::time::{Duration, Instant};

/// Nanoseconds of each dispatch: the median of some steps, after a warm-up on hardware.
pub(crate) fn times(
    device: &dyn Device,
    executor: &mut dyn Executor,
    warm: Duration,
    rounds: usize,
) -> Vec<f64> {
    let warm = if device.target().is_hardware { warm } else { Duration::ZERO };
    let started = Instant::now();
    loop {
        let ticket = executor.submit(Sections::ALL).unwrap();
        executor.wait(ticket, Duration::from_secs(60)).unwrap();
        if started.elapsed() >= warm {
            break;
        }
    }
    let mut times: Vec<Vec<f64>> = Vec::new();
    for _ in 0..rounds {
        times.push(executor.profile(Sections::ALL).unwrap().dispatch_ns.iter().map(|(_, ns)| *ns).collect());
    }
    times.sort_by(|x, y| x.iter().sum::<f64>().total_cmp(&y.iter().sum()));
    times.swap_remove(times.len() / 2)
}

/// The program of one loop, with arbitrary contents.
pub(crate) fn program(device: &dyn Device, l: &Loop, realisation: Realisation) -> Program {
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
    let operands: Vec<_> =
        l.operands.iter().map(|ty| arena(&mut program, Role::Constants, ty.bytes())).collect();
    for (place, bytes) in &operands {
        let word = |i: u64| (((i * 2_654_435_761) >> 8 & 0xffff) as f32 / 65_536.0 - 0.5).to_bits();
        program.constants.push(ConstantData { place: *place, words: (0..bytes / 4).map(word).collect() });
    }
    let results: Vec<_> = l.results.iter().map(|ty| arena(&mut program, Role::Outputs, ty.bytes())).collect();
    for (i, (ty, (place, _))) in l.results.iter().zip(&results).enumerate() {
        let (name, kind) = (format!("y{i}"), ExternalKind::Output);
        program.externals.push(External { name, kind, ty: ty.clone(), place: *place });
    }
    let scratch: Vec<_> =
        realisation.scratch.iter().map(|n| arena(&mut program, Role::Scratch, *n as usize)).collect();
    for instance in realisation.dispatches {
        let buffer = |slot: &Slot| match slot {
            Slot::Operand(i) => operands[*i],
            Slot::Result(i) => results[*i],
            Slot::Scratch(i) => scratch[*i],
        };
        let places: Vec<_> = instance.bindings.iter().map(buffer).collect();
        push(&mut program, instance, &places);
    }
    program
}

fn arena(program: &mut Program, role: Role, bytes: usize) -> (Place, u64) {
    program.arenas.push(Arena { role, chunk: 0, bytes: (bytes as u64).next_multiple_of(256) });
    (Place { arena: ArenaId(program.arenas.len() as u32 - 1), offset: 0 }, bytes as u64)
}

fn push(program: &mut Program, instance: Instance, places: &[(Place, u64)]) {
    let access = |binding: &kir::Binding| match binding.access {
        kir::Access::Read => BindingAccess::Read,
        kir::Access::ReadWrite => BindingAccess::Write,
    };
    let accesses: Vec<_> = instance.kernel.bindings.iter().map(access).collect();
    let wgsl = print::wgsl(&instance.kernel, &print::PrintOptions::default());
    if std::env::var_os("GRIFFINFLY_PRINT").is_some() {
        println!("{wgsl}");
    }
    program.kernels.push(Kernel {
        name: instance.name.clone(),
        numeric: instance.numeric,
        spirv: spirv::compile(&wgsl, print::ENTRY).unwrap(),
        wgsl,
        bindings: accesses.clone(),
        parameter_words: instance.kernel.params.len() as u32,
        workgroup_size: instance.kernel.workgroup_size,
        workgroup_bytes: instance.kernel.workgroup_bytes() as u32,
    });
    let kernel = KernelId(program.kernels.len() as u32 - 1);
    let bindings = places.iter().zip(accesses).map(|((place, bytes), access)| Binding {
        arena: place.arena,
        offset: place.offset,
        bytes: *bytes,
        access,
    });
    program.dispatches.push(Dispatch {
        bindings: bindings.collect(),
        work: Work::Kernel { kernel, parameters: instance.parameters, groups: instance.groups },
        source: LoopId(0),
        instance: instance.name,
        provenance: vec![],
    });
    program.sections[0].levels.push(vec![DispatchId(program.dispatches.len() as u32 - 1)]);
}

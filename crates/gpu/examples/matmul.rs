//! Times f32 matrix products with every tiling on the best Vulkan device.
//!
//! `cargo run --release -p griffinfly-gpu --example matmul -- [SIZE | MxNxK]... [split=N]... [tiling=TEXT] [rounds=N]`; sizes
//! default to 1024 on hardware and 512 elsewhere. Prints the median device time of one product and what that makes in
//! FLOP/s, per tiling and split; clocks are warmed up before.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for the terminal")]

use griffinfly_compile::kernel::families::contract::{Choice, Merge, Tiling, choose, realise_with};
use griffinfly_compile::kernel::families::{Instance, Slot};
use griffinfly_compile::kernel::{kir, print, spirv};
use griffinfly_compile::program::{
    Arena, ArenaId, Binding, BindingAccess, ConstantData, Dispatch, DispatchId, External, ExternalKind,
    FORMAT, Kernel, KernelId, LoopId, MemoryReport, Place, Program, Role, Section, SectionKind, Work,
};
use griffinfly_gpu::vulkan::{Selector, open};
use griffinfly_gpu::{Device, Sections};
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind};
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Options {
    sizes: Vec<[usize; 3]>,
    splits: Vec<u32>,
    tiling: String,
    rounds: usize,
    transposed: bool,
}

fn main() {
    let device = open(&Selector::Best).unwrap();
    let target = device.target();
    let options = options(if target.is_hardware { 1024 } else { 512 });
    println!("{} ({}), {} units", device.info().name, device.info().driver, target.compute_units);
    for size in &options.sizes {
        let l = product(*size, options.transposed);
        let LoopKind::Contract(contract) = &l.kind else { continue };
        let chosen = choose(contract, target);
        let fits = |tiling: &&Tiling| tiling.fits(target, &target.numeric_classes);
        let named = |tiling: &&Tiling| tiling.to_string().contains(&options.tiling);
        for tiling in Tiling::all().iter().filter(fits).filter(named) {
            for split in &options.splits {
                let merges: &[Merge] =
                    if *split > 1 && !tiling.is_direct() { &[Merge::Dispatch, Merge::Last] } else { &[Merge::Dispatch] };
                for merge in merges {
                    let choice = Choice { tiling: *tiling, split: *split, merge: *merge };
                    let mark = if choice == chosen { " <- default" } else { "" };
                    println!("{}{mark}", measure(device.as_ref(), &l, &choice, (*size, options.rounds)));
                }
            }
        }
        println!("default: {} split {}", chosen.tiling, chosen.split);
    }
}

fn options(size: usize) -> Options {
    let mut options =
        Options { sizes: vec![], splits: vec![], tiling: String::new(), rounds: 9, transposed: false };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("split", n)) => options.splits.push(n.parse().unwrap()),
            Some(("tiling", text)) => text.clone_into(&mut options.tiling),
            Some(("rounds", n)) => options.rounds = n.parse().unwrap(),
            _ if argument == "transposed" => options.transposed = true,
            _ => {
                let n: Vec<usize> = argument.split('x').map(|n| n.parse().unwrap()).collect();
                options.sizes.push([n[0], n[n.len() / 2], n[n.len() - 1]]);
            }
        }
    }
    if options.sizes.is_empty() {
        options.sizes.push([size; 3]);
    }
    if options.splits.is_empty() {
        options.splits.push(1);
    }
    options
}

/// `y = a b`, with `b` given as its transpose on request (the layout of a linear layer's weights).
fn product([m, n, k]: [usize; 3], transposed: bool) -> Loop {
    let axis = IndexExpr::axis;
    let mut epilogue = Body::new();
    let acc = epilogue.expr.carry(0, DType::F32);
    epilogue.output(acc);
    let a = TensorType::f32([m, k]);
    let (b, order) =
        if transposed { (TensorType::f32([n, k]), [0, 1]) } else { (TensorType::f32([k, n]), [1, 0]) };
    let contract = Contract {
        batch: vec![],
        m: vec![m],
        n: vec![n],
        k: vec![k],
        a: Body::of_load(0, &a, Access::identity(2)),
        b: Body::of_load(1, &b, Access::at(order.map(axis).to_vec())),
        more: vec![],
        epilogue,
        stores: vec![Store::identity(0, 2)],
    };
    Loop { operands: vec![a, b], results: vec![TensorType::f32([m, n])], kind: LoopKind::Contract(contract) }
}

/// Median time of one product among many that wait for each other, from wall time.
fn measure(device: &dyn Device, l: &Loop, choice: &Choice, (size, rounds): ([usize; 3], usize)) -> String {
    let [m, n, k] = size;
    let flop = 2.0 * (m * n * k) as f64;
    let label = format!("{m:5}x{n:5}x{k:5} {:20} split {:2} {:?}", choice.tiling.to_string(), choice.split, choice.merge);
    let repeats = (3e-3 / (flop / 20e12 + 5e-6)).clamp(1.0, 200.0) as usize;
    let repeats = if device.target().is_hardware { repeats } else { 1 };
    let program = match program(device, l, choice, repeats) {
        Ok(program) => program,
        Err(reason) => return format!("{label}: {reason}"),
    };
    let started = Instant::now();
    let name = program.dispatches[0].instance.clone();
    let mut executor = device.instantiate(Arc::new(program), &[]).unwrap();
    let preparation = started.elapsed();
    let warm = if device.target().is_hardware { Duration::from_millis(120) } else { Duration::ZERO };
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < warm || times.len() < rounds {
        let before = Instant::now();
        let ticket = executor.submit(Sections::ALL).unwrap();
        executor.wait(ticket, Duration::from_secs(60)).unwrap();
        times.push(before.elapsed().as_secs_f64());
    }
    let mut times = times.split_off(times.len() - rounds);
    times.sort_by(f64::total_cmp);
    let total = times[times.len() / 2] / repeats as f64;
    let (micros, gflops) = (total * 1e6, flop / total / 1e9);
    format!("{label}: {micros:>8.1} us {gflops:9.1} GFLOP/s, prepared in {preparation:.0?}  [{name}]")
}

/// A program that computes the product so many times, each after the one before.
fn program(device: &dyn Device, l: &Loop, choice: &Choice, repeats: usize) -> Result<Program, String> {
    let realisation = realise_with(l, device.target(), choice).map_err(|e| e.to_string())?;
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
    let kind = ExternalKind::Output;
    program.externals.push(External {
        name: "y".into(),
        kind,
        ty: l.results[0].clone(),
        place: results[0].0,
    });
    let scratch: Vec<_> =
        realisation.scratch.iter().map(|n| arena(&mut program, Role::Scratch, *n as usize)).collect();
    let counters = (realisation.counters > 0).then(|| {
        let counters = arena(&mut program, Role::Counters, realisation.counters as usize);
        let words = vec![0; realisation.counters as usize / 4];
        program.constants.push(ConstantData { place: counters.0, words });
        counters
    });
    for instance in realisation.dispatches {
        let buffer = |slot: &Slot| match slot {
            Slot::Operand(i) => operands[*i],
            Slot::Result(i) => results[*i],
            Slot::Scratch(i) => scratch[*i],
            Slot::Counters => counters.unwrap(),
        };
        let places: Vec<_> = instance.bindings.iter().map(buffer).collect();
        push(&mut program, instance, &places);
    }
    let once = program.sections[0].levels.clone();
    program.sections[0].levels = (0..repeats).flat_map(|_| once.clone()).collect();
    Ok(program)
}

fn arena(program: &mut Program, role: Role, bytes: usize) -> (Place, u64) {
    program.arenas.push(Arena { role, chunk: 0, bytes: (bytes as u64).next_multiple_of(256) });
    (Place { arena: ArenaId(program.arenas.len() as u32 - 1), offset: 0 }, bytes as u64)
}

fn push(program: &mut Program, instance: Instance, places: &[(Place, u64)]) {
    let access = |binding: &kir::Binding| match binding.access {
        kir::Access::Read => BindingAccess::Read,
        _ => BindingAccess::Write,
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

//! Times f32 matrix products with every tiling on the best Vulkan device.
//!
//! `cargo run --release -p griffinfly-gpu --example matmul -- [SIZE | MxNxK]... [split=N]... [tiling=TEXT]... [rounds=N]
//! [transposed] [cold]`; sizes default to 1024 on hardware and 512 elsewhere. Prints the median device time of one product and
//! what that makes in FLOP/s and in bytes of operands and results, per tiling and split; clocks are warmed up before. With
//! `cold` a step makes the product with many copies of the operands, more than caches hold, and the wall time of one product
//! in such a step is printed too.

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
    tilings: Vec<String>,
    rounds: usize,
    transposed: bool,
    cold: bool,
}

/// Bytes that no cache holds.
const COLD: usize = 160 << 20;
/// Most copies of the operands.
const MOST_COPIES: usize = 256;
/// Most words that get values.
const MOST_WORDS: u64 = 1 << 22;

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
        let named = |tiling: &&Tiling| {
            let name = tiling.to_string();
            options.tilings.is_empty() || options.tilings.iter().any(|text| name.contains(text))
        };
        for tiling in Tiling::all().iter().filter(fits).filter(named) {
            for split in &options.splits {
                let merges: &[Merge] = if *split > 1 && tiling.is_staged() {
                    &[Merge::Dispatch, Merge::Last]
                } else {
                    &[Merge::Dispatch]
                };
                for merge in merges {
                    let choice = Choice { tiling: *tiling, split: *split, merge: *merge };
                    let mark = if choice == chosen { " <- default" } else { "" };
                    println!("{}{mark}", measure(device.as_ref(), &l, &choice, (*size, &options)));
                }
            }
        }
        println!("default: {} split {}", chosen.tiling, chosen.split);
    }
}

fn options(size: usize) -> Options {
    let mut options =
        Options { sizes: vec![], splits: vec![], tilings: vec![], rounds: 9, transposed: false, cold: false };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("split", n)) => options.splits.push(n.parse().unwrap()),
            Some(("tiling", text)) => options.tilings.push(text.to_owned()),
            Some(("rounds", n)) => options.rounds = n.parse().unwrap(),
            _ if argument == "transposed" => options.transposed = true,
            _ if argument == "cold" => options.cold = true,
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

fn measure(
    device: &dyn Device,
    l: &Loop,
    choice: &Choice,
    (size, options): ([usize; 3], &Options),
) -> String {
    let [m, n, k] = size;
    let label = format!(
        "{m:5}x{n:5}x{k:5} {:20} split {:2} {:?}",
        choice.tiling.to_string(),
        choice.split,
        choice.merge
    );
    let bytes: usize = l.operands.iter().chain(&l.results).map(TensorType::bytes).sum();
    let copies = match device.target().is_hardware {
        true if options.cold => (COLD / bytes).clamp(1, MOST_COPIES),
        // Many, so that what one submission costs does not count.
        true => (60_000_000_000 / (2 * m * n * k)).clamp(1, MOST_COPIES),
        false => 1,
    };
    let program = match program(device, l, choice, (copies, options)) {
        Ok(program) => program,
        Err(reason) => return format!("{label}: {reason}"),
    };
    let started = Instant::now();
    let (name, dispatches) = (program.dispatches[0].instance.clone(), program.dispatches.len() / copies);
    let mut executor = device.instantiate(Arc::new(program), &[]).unwrap();
    let preparation = started.elapsed();
    let warm = if device.target().is_hardware { Duration::from_millis(60) } else { Duration::ZERO };
    let (started, mut walls) = (Instant::now(), Vec::new());
    loop {
        let before = Instant::now();
        let ticket = executor.submit(Sections::ALL).unwrap();
        executor.wait(ticket, Duration::from_secs(60)).unwrap();
        walls.push(before.elapsed().as_secs_f64() * 1e6 / copies as f64);
        if started.elapsed() >= warm {
            break;
        }
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); dispatches];
    for _ in 0..options.rounds {
        let timing = executor.profile(Sections::ALL).unwrap();
        timing.dispatch_ns.iter().enumerate().for_each(|(i, (_, ns))| times[i % dispatches].push(*ns));
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let total: f64 = medians.iter().sum();
    let gflops = 2.0 * (m * n * k) as f64 / total;
    let micros: Vec<String> = medians.iter().map(|ns| format!("{:.1}", ns / 1000.0)).collect();
    let wall = if copies > 1 { format!(" (wall {:.2} us)", median(walls)) } else { String::new() };
    format!(
        "{label}: {:>10} us{wall} {gflops:9.1} GFLOP/s {:7.1} GB/s, prepared in {preparation:.0?}  [{name}]",
        micros.join(" + "),
        bytes as f64 / total
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A step of as many products as there are copies of the operands; only the first copy's start has values.
fn program(
    device: &dyn Device,
    l: &Loop,
    choice: &Choice,
    (copies, options): (usize, &Options),
) -> Result<Program, String> {
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
    let apart = |ty: &TensorType| ty.bytes().next_multiple_of(256);
    let operands: Vec<_> = l
        .operands
        .iter()
        .map(|ty| {
            (
                arena(&mut program, Role::Constants, apart(ty) * if options.cold { copies } else { 1 }).0,
                ty.bytes() as u64,
            )
        })
        .collect();
    for (place, bytes) in &operands {
        let word = |i: u64| (((i * 2_654_435_761) >> 8 & 0xffff) as f32 / 65_536.0 - 0.5).to_bits();
        let words = (0..(bytes / 4).min(MOST_WORDS)).map(word).collect();
        program.constants.push(ConstantData { place: *place, words });
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
    let kernels: Vec<_> = realisation.dispatches.iter().map(|x| kernel(&mut program, x)).collect();
    for copy in 0..copies {
        for (instance, kernel) in realisation.dispatches.iter().zip(&kernels) {
            let buffer = |slot: &Slot| match slot {
                Slot::Operand(i) => {
                    let (place, bytes) = operands[*i];
                    let at = if options.cold { copy } else { 0 };
                    (Place { offset: (at * apart(&l.operands[*i])) as u64, ..place }, bytes)
                }
                Slot::Result(i) => results[*i],
                Slot::Scratch(i) => scratch[*i],
                Slot::Counters => counters.unwrap(),
            };
            let places: Vec<_> = instance.bindings.iter().map(buffer).collect();
            push(&mut program, (instance, *kernel), &places);
        }
    }
    Ok(program)
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
    let bindings = places.iter().zip(&instance.kernel.bindings).map(|((place, bytes), binding)| Binding {
        arena: place.arena,
        offset: place.offset,
        bytes: *bytes,
        access: access(binding),
    });
    let (parameters, groups) = (instance.parameters.clone(), instance.groups);
    program.dispatches.push(Dispatch {
        bindings: bindings.collect(),
        work: Work::Kernel { kernel, parameters, groups },
        source: LoopId(0),
        instance: instance.name.clone(),
        provenance: vec![],
    });
    program.sections[0].levels.push(vec![DispatchId(program.dispatches.len() as u32 - 1)]);
}

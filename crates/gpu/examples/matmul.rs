//! Times matrix products with every tiling of every numeric class on the best Vulkan device.
//!
//! `cargo run --release -p griffinfly-gpu --example matmul -- [SIZE | MxNxK]... [split=N]... [tiling=TEXT]... [rounds=N]
//! [transposed] [cold]`; sizes default to 1024 on hardware and 512 elsewhere. Prints the median device time of one product and
//! what that makes in FLOP/s and in bytes of operands and results, per tiling and split; clocks are warmed up before. With
//! `cold` a step makes the product with many copies of the operands, more than caches hold, and the wall time of one product
//! in such a step is printed too.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for the terminal")]

mod single;

use griffinfly_compile::kernel::families::contract::{Choice, Merge, Tiling, choose, realise_with};
use griffinfly_gpu::Device;
use griffinfly_gpu::vulkan::{Selector, open};
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind};
use griffinfly_ir::types::{DType, TensorType};
use single::Repeats;
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
        for tiling in Tiling::all().iter().chain(Tiling::matrices()).filter(fits).filter(named) {
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
        "{m:5}x{n:5}x{k:5} {:28} split {:2} {:?}",
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
    let repeats = Repeats { count: copies, cold: options.cold };
    let realisation = match realise_with(l, device.target(), choice) {
        Ok(realisation) => realisation,
        Err(reason) => return format!("{label}: {reason}"),
    };
    let program = single::program(device, l, &realisation, repeats);
    let started = Instant::now();
    let name = program.dispatches[0].instance.clone();
    let mut executor = device.instantiate(Arc::new(program), &[]).unwrap();
    let preparation = started.elapsed();
    // Clocks drop while a pipeline is made.
    let warm = Duration::from_millis(400);
    let times = single::times(device, executor.as_mut(), (repeats, warm, options.rounds));
    let total: f64 = times.dispatches.iter().sum();
    let gflops = 2.0 * (m * n * k) as f64 / total;
    let micros: Vec<String> = times.dispatches.iter().map(|ns| format!("{:.1}", ns / 1000.0)).collect();
    let wall = if copies > 1 { format!(" (wall {:.2} us)", times.wall) } else { String::new() };
    format!(
        "{label}: {:>10} us{wall} {gflops:9.1} GFLOP/s {:7.1} GB/s, prepared in {preparation:.0?}  [{name}]",
        micros.join(" + "),
        bytes as f64 / total
    )
}

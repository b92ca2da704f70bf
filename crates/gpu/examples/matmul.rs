//! Times f32 matrix products with every tiling on the best Vulkan device.
//!
//! `cargo run --release -p griffinfly-gpu --example matmul -- [SIZE | MxNxK]... [split=N]... [tiling=TEXT] [rounds=N]`; sizes
//! default to 1024 on hardware and 512 elsewhere. Prints the median device time of one product and what that makes in
//! FLOP/s, per tiling and split; clocks are warmed up before.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for the terminal")]

mod single;

use griffinfly_compile::kernel::families::contract::{Choice, Tiling, choose, realise_with};
use griffinfly_gpu::Device;
use griffinfly_gpu::vulkan::{Selector, open};
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
                let choice = Choice { tiling: *tiling, split: *split };
                let mark = if choice == chosen { " <- default" } else { "" };
                println!("{}{mark}", measure(device.as_ref(), &l, &choice, (*size, options.rounds)));
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
        epilogue,
        stores: vec![Store::identity(0, 2)],
    };
    Loop { operands: vec![a, b], results: vec![TensorType::f32([m, n])], kind: LoopKind::Contract(contract) }
}

fn measure(device: &dyn Device, l: &Loop, choice: &Choice, (size, rounds): ([usize; 3], usize)) -> String {
    let [m, n, k] = size;
    let label = format!("{m:5}x{n:5}x{k:5} {:20} split {:2}", choice.tiling.to_string(), choice.split);
    let realisation = match realise_with(l, device.target(), choice) {
        Ok(realisation) => realisation,
        Err(reason) => return format!("{label}: {reason}"),
    };
    let program = single::program(device, l, realisation);
    let started = Instant::now();
    let name = program.dispatches[0].instance.clone();
    let mut executor = device.instantiate(Arc::new(program), &[]).unwrap();
    let preparation = started.elapsed();
    let median = single::times(device, executor.as_mut(), Duration::from_millis(200), rounds);
    let total: f64 = median.iter().sum();
    let gflops = 2.0 * (m * n * k) as f64 / total;
    let micros: Vec<String> = median.iter().map(|ns| format!("{:.1}", ns / 1000.0)).collect();
    format!(
        "{label}: {:>10} us {gflops:9.1} GFLOP/s, prepared in {preparation:.0?}  [{name}]",
        micros.join(" + ")
    )
}

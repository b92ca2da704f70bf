//! Times attention and its gradients with every geometry on the best Vulkan device.
//!
//! `cargo run --release -p griffinfly-gpu --example attention -- [NAME | BxHxKxQxSxD[c]]... [kind=fwd|dq|dkv]...
//! [geometry=TEXT[,TEXT]...] [rounds=N]`: sequences, query heads, key heads, queries, keys, width, causal. Names are those of the workloads'
//! shapes ([`SHAPES`]). Prints the median device time of each kernel, alone in its program, the fastest first, and how far its
//! results are from those of the first; pipelines are made on all cores before.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for the terminal")]

mod single;

use griffinfly_compile::kernel::families::attention::{Geometry, choose, choose_among, ranked, realise_with};
use griffinfly_gpu::vulkan::{Selector, open};
use griffinfly_gpu::{Device, Executor, Sections};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::loops::{Attention, AttentionMask, AttentionVariant, Loop, LoopKind};
use griffinfly_ir::ops::{AttentionOptions, Lowering};
use griffinfly_ir::target::{Contract, NumericClass};
use single::Repeats;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Sequences, query heads, key heads, queries, keys, width; whether causal.
type Shape = ([usize; 6], bool);

/// Shapes of attention in the workloads.
const SHAPES: [(&str, Shape); 11] = [
    ("whisper", ([1, 6, 6, 1500, 1500, 64], false)),
    ("smollm2", ([1, 9, 3, 128, 128, 64], true)),
    ("smolvla", ([1, 15, 5, 50, 50, 64], true)),
    ("smolvla_cross", ([1, 15, 5, 50, 16, 64], false)),
    ("unet64", ([1, 4, 4, 64, 64, 32], false)),
    ("unet256", ([1, 4, 4, 256, 256, 32], false)),
    ("unet1024", ([1, 4, 4, 1024, 1024, 32], false)),
    ("unet_cross", ([1, 4, 4, 256, 77, 32], false)),
    ("dinov3", ([1, 6, 6, 201, 201, 64], false)),
    ("long", ([1, 9, 3, 2048, 2048, 64], true)),
    ("decode", ([1, 9, 3, 1, 4096, 64], false)),
];

struct Options {
    shapes: Vec<(String, Shape)>,
    kinds: Vec<String>,
    geometry: String,
    rounds: usize,
}

/// A loop runs once in a step.
const ONCE: Repeats = Repeats { count: 1, cold: false };

fn main() {
    let device = open(&Selector::Best).unwrap();
    let device = device.as_ref();
    let options = options();
    println!("{} ({}), {} units", device.info().name, device.info().driver, device.target().compute_units);
    for (name, shape) in &options.shapes {
        for l in loops(*shape) {
            let LoopKind::Attention(a) = &l.kind else { continue };
            if options.kinds.is_empty() || options.kinds.iter().any(|kind| kind == kind_of(a)) {
                compare(device, &l, a, (name, &options));
            }
        }
    }
}

fn options() -> Options {
    let mut options = Options { shapes: vec![], kinds: vec![], geometry: String::new(), rounds: 9 };
    for argument in std::env::args().skip(1) {
        let known = SHAPES.iter().find(|(name, _)| *name == argument);
        match (known, argument.split_once('=')) {
            (Some((name, shape)), _) => options.shapes.push(((*name).to_owned(), *shape)),
            (_, Some(("kind", kind))) => options.kinds.push(kind.to_owned()),
            (_, Some(("geometry", text))) => text.clone_into(&mut options.geometry),
            (_, Some(("rounds", n))) => options.rounds = n.parse().unwrap(),
            _ => {
                let numbers = argument.trim_end_matches('c').split('x');
                let numbers: Vec<usize> = numbers.map(|n| n.parse().unwrap()).collect();
                options
                    .shapes
                    .push((argument.clone(), (numbers.try_into().unwrap(), argument.ends_with('c'))));
            }
        }
    }
    if options.shapes.is_empty() {
        options.shapes = SHAPES.map(|(name, shape)| (name.to_owned(), shape)).to_vec();
    }
    options
}

/// The forward loop and the two of the gradients.
fn loops(([batch, heads, kv_heads, queries, keys, width], causal): Shape) -> Vec<Loop> {
    let mut g = Graph::new();
    let q = g.input("q", [batch, queries, heads, width]);
    let [k, v] = ["k", "v"].map(|name| g.input(name, [batch, keys, kv_heads, width]));
    let mask = if causal { AttentionMask::CAUSAL } else { AttentionMask::FULL };
    let options = AttentionOptions { mask, scale: None, bias: None };
    let y = g.scaled_dot_product_attention(q, k, v, &options);
    let loss = g.mean_all(y);
    gradients(&mut g, loss, &[q, k, v]).unwrap();
    let found = g.ids().filter_map(|id| match g.lowering(id) {
        Lowering::Loop(l) if matches!(l.kind, LoopKind::Attention(_)) => Some(*l),
        _ => None,
    });
    found.collect()
}

fn kind_of(a: &Attention) -> &'static str {
    match a.variant {
        AttentionVariant::Forward => "fwd",
        AttentionVariant::GradQuery => "dq",
        AttentionVariant::GradKeyValue => "dkv",
    }
}

/// Multiply-adds of the pairs that are seen.
fn work(a: &Attention) -> f64 {
    let products = match a.variant {
        AttentionVariant::Forward => 2,
        AttentionVariant::GradQuery => 3,
        AttentionVariant::GradKeyValue => 4,
    };
    let pairs: usize = (0..a.shape.queries).map(|i| a.mask.keys(i, a.shape.lengths()).len()).sum();
    (a.shape.batch * a.shape.heads * pairs * a.shape.width * products) as f64
}

fn compare(device: &dyn Device, l: &Loop, a: &Attention, (name, options): (&str, &Options)) {
    let chosen = choose(a, device.target()).unwrap();
    let fast = Contract::Fast.classes(a.variant != AttentionVariant::Forward);
    let fast = choose_among(a, device.target(), fast).unwrap();
    let named = |g: &Geometry| options.geometry.split(',').any(|text| g.to_string().contains(text));
    let mut all = Geometry::all();
    // Those of the choice with the keys in parts.
    let ranked = ranked(a, device.target(), &NumericClass::ALL, usize::MAX).unwrap();
    all.extend(ranked.into_iter().filter(|g| g.splits > 1));
    all.retain(|g| named(g) && g.fits(a, device.target()));
    let mut executors = prepare(device, l, &all);
    let mut reference = None;
    let mut rows: Vec<(f64, String)> = Vec::new();
    for (geometry, (group_count, executor)) in all.iter().zip(&mut executors) {
        let times =
            single::times(device, executor.as_mut(), (ONCE, Duration::from_millis(200), options.rounds));
        let found = results(executor.as_mut(), l);
        let error = distance(reference.get_or_insert_with(|| found.clone()), &found);
        let micros = times.dispatches.iter().sum::<f64>() / 1000.0;
        let rate = work(a) * 2.0 / micros / 1e6;
        let mark = match *geometry {
            g if g == chosen && g == fast => " <- default",
            g if g == chosen => " <- default of the strict contract",
            g if g == fast => " <- default of the fast contract",
            _ => "",
        };
        let text = format!(
            "{micros:8.1} us (wall {:.1} us) {rate:6.2} TFLOP/s {group_count:5} groups  {geometry}, error {error:.0e}{mark}",
            times.wall
        );
        rows.push((micros, text));
    }
    rows.sort_by(|x, y| x.0.total_cmp(&y.0));
    println!("{name} {}", kind_of(a));
    rows.iter().for_each(|(_, text)| println!("  {text}"));
}

type Prepared = (u32, Box<dyn Executor>);

/// Executors of all geometries, made on all cores.
fn prepare(device: &dyn Device, l: &Loop, geometries: &[Geometry]) -> Vec<Prepared> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut made = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(geometry) = geometries.get(i) else { return made };
            let realisation = realise_with(l, device.target(), *geometry).unwrap();
            let count = realisation.dispatches[0].groups.iter().product();
            let program = single::program(device, l, &realisation, ONCE);
            made.push((i, (count, device.instantiate(Arc::new(program), &[]).unwrap())));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
    let mut all: Vec<(usize, Prepared)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, prepared)| prepared).collect()
}

/// All results of a step.
fn results(executor: &mut dyn Executor, l: &Loop) -> Vec<f32> {
    let ticket = executor.submit(Sections::ALL).unwrap();
    executor.wait(ticket, Duration::from_secs(60)).unwrap();
    let read = |(i, ty): (usize, &griffinfly_ir::types::TensorType)| {
        let mut bytes = vec![0; ty.bytes()];
        executor.read(ticket, i, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    l.results.iter().enumerate().flat_map(read).collect()
}

/// Largest difference, as a share of the largest magnitude; infinite where only one is finite.
fn distance(x: &[f32], y: &[f32]) -> f32 {
    let scale = x.iter().filter(|x| x.is_finite()).fold(0.0_f32, |most, x| most.max(x.abs()));
    let difference = |(x, y): (&f32, &f32)| match x - y {
        _ if x == y => 0.0,
        d if d.is_finite() => d.abs(),
        _ => f32::INFINITY,
    };
    x.iter().zip(y).map(difference).fold(0.0, f32::max) / scale
}

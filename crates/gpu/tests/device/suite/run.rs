//! Compiling and running one graph once on a device.

use crate::under_test::{Wanted, wanted, with_kernels};
use griffinfly_compile::program::{ExternalKind, Program, Role};
use griffinfly_compile::{Options, compile};
use griffinfly_gpu::{Buffer, Device, Sections, host};
use griffinfly_ir::array::Array;
use griffinfly_ir::graph::Graph;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Values of leaves by name.
pub(crate) type Feeds = HashMap<String, Array<f64>>;

/// A quiet NaN that no computation makes: what memory of programs begins with.
const POISON: u32 = 0x7fc0_dead;

/// Runs a test on the device under test; fails if the validation layer had anything to say.
pub(crate) fn with_device(test: impl FnOnce(&Arc<dyn Device>)) {
    match wanted() {
        Wanted::Host => test(&host::open_with(&host::HostOptions { fill: POISON, ..Default::default() })),
        Wanted::Vulkan | Wanted::WebGpu => with_kernels(POISON, test),
    }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Buffers of the arenas the caller owns, filled from the feeds and the program's initial values; scratch is not among them.
fn bound(
    device: &Arc<dyn Device>,
    p: &Program,
    feeds: &Feeds,
) -> Vec<(griffinfly_compile::program::ArenaId, Arc<dyn Buffer>)> {
    let mut out = Vec::new();
    for (i, arena) in p.arenas.iter().enumerate() {
        if !matches!(arena.role, Role::Parameters | Role::Mirror(_) | Role::State) {
            continue;
        }
        let id = griffinfly_compile::program::ArenaId(i as u32);
        let buffer = device.buffer(arena.bytes).unwrap_or_else(|e| panic!("{e}"));
        let initial =
            p.constants.iter().filter(|c| c.place.arena == id).map(|c| (c.place.offset, bytes_of(&c.words)));
        let fed = p
            .externals
            .iter()
            .filter(|e| e.place.arena == id)
            .filter_map(|e| feeds.get(&e.name).map(|v| (e.place.offset, bytes_of(&v.to_words()))));
        for (offset, bytes) in initial.chain(fed) {
            device.write(&buffer, offset, &bytes).unwrap_or_else(|e| panic!("{e}"));
        }
        out.push((id, buffer));
    }
    out
}

/// Compiles, runs two steps (the second over the first one's leavings, unless the first updates something), which must give
/// the same bits, and gives the outputs' words.
pub(crate) fn run_graph(device: &Arc<dyn Device>, g: &Graph, feeds: &Feeds) -> HashMap<String, Vec<u32>> {
    let program = compile(g, device.target(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let program = Arc::new(program);
    let buffers = bound(device, &program, feeds);
    let mut executor = device.instantiate(program.clone(), &buffers).unwrap_or_else(|e| panic!("{e}"));
    for (i, e) in program.externals.iter().enumerate() {
        if matches!(e.kind, ExternalKind::Input { .. } | ExternalKind::StepScalar)
            && let Some(v) = feeds.get(&e.name)
        {
            executor.write(i, &bytes_of(&v.to_words())).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    let mut results = |sections: Sections| {
        let ticket = executor.submit(sections).unwrap_or_else(|e| panic!("{e}"));
        executor.wait(ticket, Duration::from_secs(300)).unwrap_or_else(|e| panic!("{e}"));
        let mut out = HashMap::new();
        for (i, e) in program.externals.iter().enumerate().filter(|(_, e)| e.kind == ExternalKind::Output) {
            let mut bytes = vec![0; e.ty.bytes()];
            executor.read(ticket, i, &mut bytes).unwrap_or_else(|e| panic!("{e}"));
            let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            out.insert(e.name.clone(), words);
        }
        out
    };
    let first: HashMap<String, Vec<u32>> = results(Sections::ALL);
    let updates = program.sections.iter().any(|s| s.kind == griffinfly_compile::program::SectionKind::Update);
    if !updates {
        let second = results(Sections::STEP);
        let other = first.iter().find(|(name, words)| second[*name] != **words).map(|(name, _)| name);
        assert_eq!(other, None, "the second step gives other bits");
    }
    first
}

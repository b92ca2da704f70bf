//! Programs made by hand from the kernels of a family.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

use crate::under_test::with_kernels;
use griffinfly_compile::Kernels;
use griffinfly_compile::kernel::KernelError;
use griffinfly_compile::kernel::families::{Instance, Realisation, Slot};
use griffinfly_compile::kernel::kir::Access;
use griffinfly_compile::program::{
    Arena, ArenaId, Binding, BindingAccess, Dispatch, DispatchId, FORMAT, LoopId, MemoryReport, Program,
    Role, Section, SectionKind, Work,
};
use griffinfly_gpu::{Device, Sections};
use griffinfly_ir::loops::{Loop, interpret};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;
use std::time::Duration;

/// A quiet NaN that no computation makes.
const POISON: u32 = 0x7fc0_dead;
const ALIGN: u64 = 256;

/// One loop with its kernels and contents.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) l: Loop,
    pub(super) realisation: Realisation,
    pub(super) operands: Vec<Vec<u32>>,
    /// Allowed error of floats: `tolerance * (1 + |expected|)`.
    pub(super) tolerance: f32,
}

impl Case {
    pub(super) fn new(
        name: impl Into<String>,
        l: Loop,
        operands: Vec<Vec<u32>>,
        realise: impl FnOnce(&Loop) -> Result<Realisation, KernelError>,
    ) -> Self {
        let name = name.into();
        assert_eq!(l.verify(), Vec::<String>::new(), "{name}");
        let realisation = realise(&l).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name, l, realisation, operands, tolerance: 2e-5 }
    }
}

/// Pseudo-random floats in -1..1.
pub(super) fn floats(count: usize, seed: u64) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next().to_bits()).collect()
}

/// Runs a test on the device with kernels.
pub(super) fn with_device(test: impl FnOnce(&Arc<dyn Device>)) {
    with_kernels(0, test);
}

/// Where everything of a case lies, in bytes.
struct Layout {
    operands: Vec<u64>,
    results: Vec<u64>,
    scratch: Vec<u64>,
    counters: u64,
}

struct Image {
    words: Vec<u32>,
}

impl Image {
    /// Appends words and a gap; gives their place.
    fn push(&mut self, words: &[u32]) -> u64 {
        let at = self.words.len() as u64 * 4;
        self.words.extend_from_slice(words);
        let padded = (self.words.len() * 4 + 64).next_multiple_of(ALIGN as usize) / 4;
        self.words.resize(padded, POISON);
        at
    }
}

/// Runs all cases in one program: the results of each, and the number of distinct kernels.
fn execute(device: &Arc<dyn Device>, cases: &[Case]) -> (Vec<Vec<Vec<u32>>>, usize) {
    let mut image = Image { words: vec![POISON; 64] };
    let layouts: Vec<Layout> = cases.iter().map(|case| lay_out(&mut image, case)).collect();
    let program = Arc::new(assemble(device.target(), cases, &layouts, image.words.len() as u64 * 4));
    let kernels = program.kernels.len();
    let buffer = device.buffer(program.arenas[0].bytes).unwrap();
    let bytes: Vec<u8> = image.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    device.write(&buffer, 0, &bytes).unwrap();
    let mut executor = device.instantiate(program, &[(ArenaId(0), buffer.clone())]).unwrap();
    let ticket = executor.submit(Sections::ALL).unwrap();
    executor.wait(ticket, Duration::from_secs(300)).unwrap();
    let mut bytes = vec![0; bytes.len()];
    device.read(&buffer, 0, &mut bytes).unwrap();
    let mut found: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
    let mut all = Vec::new();
    for (case, layout) in cases.iter().zip(&layouts) {
        let results = case.l.results.iter().zip(&layout.results);
        all.push(results.map(|(ty, at)| take(&mut found, *at, ty.elements())).collect::<Vec<_>>());
        for (at, bytes) in layout.scratch.iter().zip(&case.realisation.scratch) {
            take(&mut found, *at, *bytes as usize / 4);
        }
    }
    let stray = found.iter().zip(&image.words).position(|(now, before)| now != before);
    assert_eq!(stray, None, "a word outside all results changed");
    (all, kernels)
}

/// The results of a case, whatever they should be.
pub(super) fn results(device: &Arc<dyn Device>, case: &Case) -> Vec<Vec<u32>> {
    execute(device, std::slice::from_ref(case)).0.remove(0)
}

/// Runs all cases in one program and compares; gives the number of distinct kernels.
pub(super) fn run(device: &Arc<dyn Device>, cases: &[Case]) -> usize {
    let (results, kernels) = execute(device, cases);
    let faults: Vec<String> =
        cases.iter().zip(&results).flat_map(|(case, words)| compare(case, words)).collect();
    assert!(faults.is_empty(), "{} cases differ:\n{}", faults.len(), faults.join("\n"));
    kernels
}

/// Takes words out of an image and puts the poison back.
fn take(words: &mut [u32], at: u64, count: usize) -> Vec<u32> {
    let range = at as usize / 4..at as usize / 4 + count;
    let taken = words[range.clone()].to_vec();
    words[range].fill(POISON);
    taken
}

fn lay_out(image: &mut Image, case: &Case) -> Layout {
    let poison = |count: usize| vec![POISON; count];
    for (ty, words) in case.l.operands.iter().zip(&case.operands) {
        assert_eq!(ty.elements(), words.len(), "{}", case.name);
    }
    let operands = case.operands.iter().map(|words| image.push(words)).collect();
    let results = case.l.results.iter().map(|ty| image.push(&poison(ty.elements()))).collect();
    let scratch =
        case.realisation.scratch.iter().map(|bytes| image.push(&poison(*bytes as usize / 4))).collect();
    let counters = image.push(&vec![0; case.realisation.counters as usize / 4]);
    Layout { operands, results, scratch, counters }
}

fn assemble(target: &Target, cases: &[Case], layouts: &[Layout], bytes: u64) -> Program {
    let mut program = Program {
        format: FORMAT,
        generator: "test".into(),
        target: target.clone(),
        arenas: vec![Arena { role: Role::State, chunk: 0, bytes }],
        externals: Vec::new(),
        constants: Vec::new(),
        kernels: Vec::new(),
        loops: cases.iter().map(|case| case.l.clone()).collect(),
        dispatches: Vec::new(),
        sections: Vec::new(),
        memory: MemoryReport::default(),
        id_guard: None,
    };
    let mut kernels = Kernels::default();
    let mut levels: Vec<Vec<DispatchId>> = Vec::new();
    for (number, (case, layout)) in cases.iter().zip(layouts).enumerate() {
        for (level, instance) in case.realisation.dispatches.iter().enumerate() {
            let kernel =
                kernels.add(instance, target).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            levels.resize(levels.len().max(level + 1), Vec::new());
            levels[level].push(DispatchId(program.dispatches.len() as u32));
            program.dispatches.push(Dispatch {
                work: Work::Kernel {
                    kernel,
                    parameters: instance.parameters.clone(),
                    groups: instance.groups,
                },
                source: LoopId(number as u32),
                bindings: bindings(case, layout, instance),
                instance: instance.name.clone(),
                provenance: vec![case.name.clone()],
            });
        }
    }
    program.sections.push(Section { kind: SectionKind::ForwardBackward, levels });
    kernels.settle(&mut program).unwrap();
    program
}

fn access(access: Access) -> BindingAccess {
    match access {
        Access::Read => BindingAccess::Read,
        Access::ReadWrite | Access::Exchange | Access::Counters => BindingAccess::Write,
    }
}

fn bindings(case: &Case, layout: &Layout, instance: &Instance) -> Vec<Binding> {
    let bytes = |ty: &TensorType| ty.bytes() as u64;
    assert_eq!(instance.bindings.len(), instance.kernel.bindings.len(), "{}", case.name);
    let place = |slot: &Slot| match *slot {
        Slot::Operand(i) => (layout.operands[i], bytes(&case.l.operands[i])),
        Slot::Result(i) => (layout.results[i], bytes(&case.l.results[i])),
        Slot::Scratch(i) => (layout.scratch[i], case.realisation.scratch[i]),
        Slot::Counters => (layout.counters, case.realisation.counters),
    };
    let one = |(slot, binding): (&Slot, &griffinfly_compile::kernel::kir::Binding)| {
        let (offset, bytes) = place(slot);
        Binding { arena: ArenaId(0), offset, bytes, access: access(binding.access) }
    };
    instance.bindings.iter().zip(&instance.kernel.bindings).map(one).collect()
}

/// What is wrong with the results of a case: the first difference of each.
fn compare(case: &Case, found: &[Vec<u32>]) -> Vec<String> {
    let operands: Vec<&[u32]> = case.operands.iter().map(Vec::as_slice).collect();
    let expected = interpret(&case.l, &operands);
    let mut faults = Vec::new();
    for (result, (ty, (found, expected))) in
        case.l.results.iter().zip(found.iter().zip(&expected)).enumerate()
    {
        let differs = |x: u32, y: u32| match ty.dtype {
            DType::F32 => !close(f32::from_bits(x), f32::from_bits(y), case.tolerance),
            _ => x != y,
        };
        let bad: Vec<usize> = (0..found.len()).filter(|i| differs(found[*i], expected[*i])).collect();
        if let Some(&i) = bad.first() {
            let show = |word: u32| match ty.dtype {
                DType::F32 => format!("{} ({word:#x})", f32::from_bits(word)),
                _ => format!("{word:#x}"),
            };
            let kernels: Vec<&str> = case.realisation.dispatches.iter().map(|d| d.name.as_str()).collect();
            faults.push(format!(
                "{} [{}] result {result}: {} of {} differ, first {i}: {} instead of {}",
                case.name,
                kernels.join(" | "),
                bad.len(),
                found.len(),
                show(found[i]),
                show(expected[i])
            ));
        }
    }
    faults
}

fn close(x: f32, y: f32, tolerance: f32) -> bool {
    let are_finite = x.is_finite() && y.is_finite();
    x == y || (x.is_nan() && y.is_nan()) || are_finite && (x - y).abs() <= tolerance * (1.0 + y.abs())
}

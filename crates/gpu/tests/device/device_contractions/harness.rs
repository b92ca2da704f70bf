//! Realisations assembled into one program, run and compared.

use super::reference::{Expected, expected};
use griffinfly_compile::Kernels;
use griffinfly_compile::kernel::families::contract::{Choice, realise_with};
use griffinfly_compile::kernel::families::{Instance, Realisation, Slot};
use griffinfly_compile::kernel::verify::Fault;
use griffinfly_compile::kernel::{KernelError, kir};
use griffinfly_compile::program::{
    Arena, ArenaId, Binding, BindingAccess, ConstantData, Dispatch, DispatchId, External, ExternalKind,
    FORMAT, LoopId, MemoryReport, Place, Program, Role, Section, SectionKind, Work,
};
use griffinfly_gpu::{Device, Sections};
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::{NumericClass, Target};
use griffinfly_ir::types::TensorType;
use std::sync::Arc;

const NAN: u32 = 0x7fc0_dead;

/// Cases that run as one step.
pub(super) struct Suite {
    pub(super) target: Target,
    program: Program,
    kernels: Kernels,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    expected: Expected,
    class: NumericClass,
    is_relative: bool,
    /// Externals of the results.
    results: Vec<usize>,
}

/// Where the buffers of a case lie.
struct Buffers {
    operands: Vec<(Place, u64)>,
    results: Vec<(Place, u64)>,
    scratch: Vec<(Place, u64)>,
    counters: Option<(Place, u64)>,
}

impl Suite {
    pub(super) fn new(target: &Target) -> Self {
        let section = Section { kind: SectionKind::ForwardBackward, levels: vec![vec![], vec![]] };
        let program = Program {
            format: FORMAT,
            generator: "tests".into(),
            target: target.clone(),
            arenas: vec![],
            externals: vec![],
            constants: vec![],
            kernels: vec![],
            loops: vec![],
            dispatches: vec![],
            sections: vec![section],
            memory: MemoryReport::default(),
            id_guard: None,
        };
        Suite { target: target.clone(), program, kernels: Kernels::default(), cases: vec![] }
    }

    /// Adds a loop realised by a choice.
    pub(super) fn case(&mut self, l: &Loop, choice: &Choice) {
        let realisation = realise_with(l, &self.target, choice).unwrap();
        self.realised(l, realisation);
    }

    /// Adds a loop realised by a choice, unless its tiles take more workgroup memory than there is.
    pub(super) fn case_if_it_fits(&mut self, l: &Loop, choice: &Choice) {
        match realise_with(l, &self.target, choice) {
            Err(KernelError::Invalid { faults, .. }) => {
                assert!(
                    faults.iter().all(|fault| matches!(fault, Fault::WorkgroupBytes { .. })),
                    "{faults:?}"
                );
            }
            realisation => self.realised(l, realisation.unwrap()),
        }
    }

    /// Adds a realisation.
    pub(super) fn realised(&mut self, l: &Loop, realisation: Realisation) {
        let operands = l.operands.iter().enumerate().map(|(i, ty)| values(i as u64, ty.elements())).collect();
        self.with_operands(l, realisation, operands);
    }

    /// Holds the last case to the rounding of sums of at most this magnitude, where its largest ones come to nothing.
    pub(super) fn hold_to(&mut self, magnitude: f64) {
        let last = self.cases.last_mut().map(|case| &mut case.expected.magnitude);
        last.into_iter().for_each(|found| *found = found.min(magnitude));
    }

    /// Adds a realisation with operands of its own.
    pub(super) fn with_operands(&mut self, l: &Loop, realisation: Realisation, operands: Vec<Vec<f32>>) {
        let buffers = Buffers {
            operands: operands.iter().map(|x| self.arena(Role::Constants, x.len(), x)).collect(),
            results: l.results.iter().map(|ty| self.arena(Role::Outputs, ty.elements(), &[])).collect(),
            scratch: realisation
                .scratch
                .iter()
                .map(|n| self.arena(Role::Scratch, *n as usize / 4, &[]))
                .collect(),
            counters: (realisation.counters > 0).then(|| {
                let count = realisation.counters as usize / 4;
                self.arena(Role::Counters, count, &vec![0.0; count])
            }),
        };
        let results =
            l.results.iter().zip(&buffers.results).map(|(ty, (place, _))| self.external(ty, *place));
        let results = results.collect();
        let class = realisation.dispatches[0].numeric;
        let name = format!("{} on {:?} -> {:?}", realisation.dispatches[0].name, l.operands, l.results);
        for (level, instance) in realisation.dispatches.into_iter().enumerate() {
            self.dispatch(level, instance, &buffers);
        }
        self.cases.push(Case { name, expected: expected(l, &operands), class, results, is_relative: false });
    }

    /// Adds a realisation whose results are compared relative to themselves, with the bound of its class alone, which many
    /// of them must come near.
    pub(super) fn relative(&mut self, l: &Loop, realisation: Realisation, operands: Vec<Vec<f32>>) {
        self.with_operands(l, realisation, operands);
        self.cases.last_mut().unwrap().is_relative = true;
    }

    /// A buffer that holds values and then NaN; returns its place and bytes without the padding.
    fn arena(&mut self, role: Role, length: usize, values: &[f32]) -> (Place, u64) {
        let bytes = (4 * length as u64 + 1024).next_multiple_of(256);
        self.program.arenas.push(Arena { role, chunk: 0, bytes });
        let place = Place { arena: ArenaId(self.program.arenas.len() as u32 - 1), offset: 0 };
        let mut words = vec![NAN; bytes as usize / 4];
        words.iter_mut().zip(values).for_each(|(word, value)| *word = value.to_bits());
        self.program.constants.push(ConstantData { place, words });
        (place, 4 * length as u64)
    }

    fn external(&mut self, ty: &TensorType, place: Place) -> usize {
        let name = format!("y{}", self.program.externals.len());
        self.program.externals.push(External { name, kind: ExternalKind::Output, ty: ty.clone(), place });
        self.program.externals.len() - 1
    }

    fn dispatch(&mut self, level: usize, instance: Instance, buffers: &Buffers) {
        let bindings = instance.bindings.iter().zip(&instance.kernel.bindings).map(|(slot, binding)| {
            let (place, bytes) = match slot {
                Slot::Operand(i) => buffers.operands[*i],
                Slot::Result(i) => buffers.results[*i],
                Slot::Scratch(i) => buffers.scratch[*i],
                Slot::Counters => buffers.counters.unwrap(),
            };
            Binding { arena: place.arena, offset: place.offset, bytes, access: access(binding) }
        });
        let dispatch = Dispatch {
            bindings: bindings.collect(),
            work: Work::Kernel {
                kernel: self.kernels.add(&instance, &self.target).unwrap(),
                parameters: instance.parameters,
                groups: instance.groups,
            },
            source: LoopId(0),
            instance: instance.name,
            provenance: vec![],
        };
        let id = DispatchId(self.program.dispatches.len() as u32);
        self.program.dispatches.push(dispatch);
        self.program.sections[0].levels[level].push(id);
    }

    /// Runs all cases twice, so that what the first run leaves is seen, and compares every element; reports all cases that fail.
    pub(super) fn run(self, device: &dyn Device) {
        let (cases, mut program) = (self.cases, self.program);
        self.kernels.settle(&mut program).unwrap();
        let kernels = program.kernels.len();
        let mut executor = device.instantiate(Arc::new(program), &[]).unwrap();
        executor.submit(Sections::ALL).unwrap();
        let ticket = executor.submit(Sections::ALL).unwrap();
        let mut faults = Vec::new();
        for case in &cases {
            for (result, want) in case.results.iter().zip(&case.expected.values) {
                let mut bytes = vec![0; want.len() * 4];
                executor.read(ticket, *result, &mut bytes).unwrap();
                let got: Vec<f32> =
                    bytes.chunks_exact(4).map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect();
                faults.extend(fault(case, &got, want));
                faults.extend(too_exact(case, &got, want));
            }
        }
        println!("{} cases, {kernels} kernels on {}", cases.len(), device.info().name);
        assert!(
            faults.is_empty(),
            "{} faults in {} cases:\n{}",
            faults.len(),
            cases.len(),
            faults.join("\n")
        );
    }
}

fn access(binding: &kir::Binding) -> BindingAccess {
    match binding.access {
        kir::Access::Read => BindingAccess::Read,
        kir::Access::ReadWrite | kir::Access::Exchange | kir::Access::Counters => BindingAccess::Write,
    }
}

/// What rounding to the terms of a class changes in a product, relative to it: both operands, and the products left out.
pub(super) fn rounding(class: NumericClass) -> f64 {
    match class {
        NumericClass::F32 => 0.0,
        NumericClass::Bf16x3 => 6.0 * 0.5_f64.powi(24),
        NumericClass::Bf16x2 => 5.0 * 0.5_f64.powi(16),
        NumericClass::F16 => 2.0 * 0.5_f64.powi(11),
        NumericClass::Bf16 => 2.0 * 0.5_f64.powi(8),
    }
}

/// One term or two must show among many products, else they were not taken.
fn too_exact(case: &Case, got: &[f32], want: &[f32]) -> Option<String> {
    let relative = |(g, w): (&f32, &f32)| (f64::from(*g) / f64::from(*w) - 1.0).abs();
    let most = got.iter().zip(want).map(relative).fold(0.0, f64::max);
    let is_coarse = case.is_relative && want.len() > 1000 && case.class.terms() < 3;
    (is_coarse && most < rounding(case.class) / 50.0).then(|| format!("{}: {most} is too exact", case.name))
}

fn fault(case: &Case, got: &[f32], want: &[f32]) -> Option<String> {
    let Case { name, class, expected: Expected { magnitude, .. }, .. } = case;
    let off = |(g, w): (&f32, &f32)| {
        if case.is_relative {
            // One f32 sum of the products of terms.
            let bound = (rounding(*class) + 2e-7) * f64::from(w.abs());
            let error = (f64::from(*g) - f64::from(*w)).abs();
            return error.is_nan() || error > bound;
        }
        if w.is_infinite() && class.terms() > 1 {
            // An infinite operand has a NaN rest.
            return g.is_finite();
        }
        if !w.is_finite() {
            return if w.is_nan() { !g.is_nan() } else { g != w };
        }
        // Sums carry the rounding of their products; an epilogue may square them.
        let size = magnitude.max(1.0) * f64::from(w.abs()).max(1.0).sqrt();
        let error = (f64::from(*g) - f64::from(*w)).abs();
        error.is_nan() || error > (4e-6 + rounding(*class)) * size
    };
    let wrong: Vec<usize> =
        got.iter().zip(want).enumerate().filter(|(_, p)| off(*p)).map(|(i, _)| i).collect();
    let first = *wrong.first()?;
    let of = got.len();
    Some(format!(
        "{name}: {} of {of} wrong, first at {first}: {} instead of {}",
        wrong.len(),
        got[first],
        want[first]
    ))
}

/// Reproducible values in -1..1.
pub(super) fn values(seed: u64, length: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(length as u64);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1 << 23) as f32) - 1.0
    };
    (0..length).map(|_| next()).collect()
}

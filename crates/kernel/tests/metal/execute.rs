//! Kernels for Metal, run on the CPU: every operation's samples against the loop interpreter.
//!
//! Input: the samples of the operations, realised for an Apple GPU, by the default choices and by others. Output: results that
//! equal those of the interpreter, whatever the order of threadgroups and invocations; no index leaves its array, and barriers are
//! reached by all. Results and scratch begin as a NaN; operands stay as they were. Planted faults must be found.
//!
//! Needs `clang++`: without it the tests say so and pass, with `GRIFFINFLY_TEST_METAL=1` they fail. The ordinary run takes a
//! sample of the choices, `GRIFFINFLY_TEST_FULL=1` all that the other tests of this module have.

use super::Realised;
use super::cpp::{Code, Dispatch, Job, Outcome, missing, run};
use griffinfly_ir::array::Array;
use griffinfly_ir::loops::{Loop, LoopKind, interpret};
use griffinfly_ir::ops::SampleInput;
use griffinfly_ir::scalar::UnaryFn;
use griffinfly_ir::target::NumericClass;
use griffinfly_ir::types::DType;
use griffinfly_kernel::families::{Instance, Realisation, Slot};
use griffinfly_kernel::kir::Kernel;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A quiet NaN that no computation makes.
const POISON: u32 = 0x7fc0_dead;
/// Of the choices beside the default, one in so many runs in the ordinary test.
const ONE_IN: usize = 4;

/// One loop by one choice.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) name: String,
    l: Loop,
    operands: Vec<Vec<u32>>,
    expected: Vec<Vec<u32>>,
    /// How far each element may be off.
    pub(super) bounds: Vec<Vec<f64>>,
    pub(super) realisation: Realisation,
    /// The text of each dispatch.
    pub(super) texts: Vec<String>,
}

impl Case {
    /// The buffer of a slot.
    fn buffer(&self, slot: Slot) -> usize {
        let (operands, results) = (self.operands.len(), self.l.results.len());
        match slot {
            Slot::Operand(i) => i,
            Slot::Result(i) => operands + i,
            Slot::Scratch(i) => operands + results + i,
            Slot::Counters => operands + results + self.realisation.scratch.len(),
        }
    }

    /// With its kernels numbered; those with equal texts are one.
    fn job(&self, codes: &mut Codes) -> Job {
        let poison = |count: usize| vec![POISON; count];
        let mut buffers = self.operands.clone();
        buffers.extend(self.l.results.iter().map(|ty| poison(ty.elements())));
        buffers.extend(self.realisation.scratch.iter().map(|bytes| poison(*bytes as usize / 4)));
        buffers.push(vec![0; self.realisation.counters as usize / 4]);
        let dispatch = |(instance, text): (&Instance, &String)| Dispatch {
            kernel: codes.number(instance, text),
            groups: instance.groups,
            parameters: instance.parameters.clone(),
            bindings: instance.bindings.iter().map(|slot| self.buffer(*slot)).collect(),
        };
        let dispatches = self.realisation.dispatches.iter().zip(&self.texts).map(dispatch).collect();
        Job { buffers, dispatches }
    }

    /// What is wrong with what the kernels left.
    fn faults(&self, outcome: &Outcome) -> Vec<String> {
        if let Some((dispatch, fault)) = &outcome.fault {
            return vec![format!("{} [{}]: {fault}", self.name, self.realisation.dispatches[*dispatch].name)];
        }
        let mut faults = Vec::new();
        let (operands, others) = outcome.buffers.split_at(self.operands.len());
        if operands != self.operands {
            faults.push(format!("{}: an operand changed", self.name));
        }
        for (number, (found, expected)) in others.iter().zip(&self.expected).enumerate() {
            faults.extend(self.difference(number, found, expected));
        }
        if others.last().is_some_and(|counters| counters.iter().any(|word| *word != 0)) {
            faults.push(format!("{}: counters that are not left at zero", self.name));
        }
        faults
    }

    /// Where a result differs from what the interpreter says.
    fn difference(&self, result: usize, found: &[u32], expected: &[u32]) -> Option<String> {
        let is_float = self.l.results[result].dtype == DType::F32;
        let differs = |i: &usize| {
            let is_written = found[*i] != POISON;
            let is_close = is_float && is_written && close(found[*i], expected[*i], self.bounds[result][*i]);
            found[*i] != expected[*i] && !is_close
        };
        let bad: Vec<usize> = (0..found.len()).filter(differs).collect();
        let first = *bad.first()?;
        let show = |word: u32| if is_float { f32::from_bits(word).to_string() } else { word.to_string() };
        let kernels: Vec<&str> = self.realisation.dispatches.iter().map(|d| d.name.as_str()).collect();
        Some(format!(
            "{} [{}] result {result}: {} of {} differ, first {first}: {} instead of {}",
            self.name,
            kernels.join(" | "),
            bad.len(),
            found.len(),
            show(found[first]),
            show(expected[first])
        ))
    }
}

fn close(x: u32, y: u32, bound: f64) -> bool {
    let (x, y) = (f32::from_bits(x), f32::from_bits(y));
    let are_finite = x.is_finite() && y.is_finite();
    x == y || (x.is_nan() && y.is_nan()) || are_finite && (f64::from(x) - f64::from(y)).abs() <= bound
}

/// Distinct kernels by text.
#[derive(Default)]
struct Codes {
    all: Vec<Code>,
    numbers: HashMap<String, usize>,
}

impl Codes {
    fn number(&mut self, instance: &Instance, text: &str) -> usize {
        *self.numbers.entry(text.into()).or_insert_with(|| {
            let (name, text) = (instance.name.clone(), text.into());
            self.all.push(Code { name, text, invocations: instance.kernel.invocations() });
            self.all.len() - 1
        })
    }
}

/// Runs all cases in one process: the faults of each, and the number of distinct kernels.
pub(super) fn execute(name: &str, cases: &[Case]) -> (Vec<Vec<String>>, usize) {
    let mut codes = Codes::default();
    let jobs: Vec<Job> = cases.iter().map(|case| case.job(&mut codes)).collect();
    let outcomes = run(name, &codes.all, &jobs);
    (cases.iter().zip(&outcomes).map(|(case, outcome)| case.faults(outcome)).collect(), codes.all.len())
}

/// A sample with what the interpreter makes of it.
pub(super) struct Problem {
    name: String,
    l: Loop,
    operands: Vec<Vec<u32>>,
    expected: Vec<Vec<u32>>,
}

impl Problem {
    pub(super) fn new(one: &Realised) -> Self {
        let Realised { sample, l, .. } = one;
        let values = |(i, input): (usize, &SampleInput)| {
            Array { ty: input.ty.clone(), data: input.values(i as u64 + 1) }.to_words()
        };
        Self::of(sample.describe(), l.clone(), sample.inputs.iter().enumerate().map(values).collect())
    }

    /// A loop with these operands, in words.
    pub(super) fn of(name: String, l: Loop, operands: Vec<Vec<u32>>) -> Self {
        let expected = interpret(&l, &slices(&operands));
        Problem { name, l, operands, expected }
    }

    /// By a realisation that the other tests have too.
    pub(super) fn case(&self, realisation: &Realisation) -> Case {
        self.case_with(realisation, |kernel| text(kernel).clone())
    }

    /// By a realisation whose texts are made here.
    pub(super) fn new_case(&self, realisation: &Realisation) -> Case {
        self.case_with(realisation, super::msl)
    }

    fn case_with(&self, realisation: &Realisation, text: impl Fn(&Kernel) -> String) -> Case {
        let class = realisation.dispatches.iter().map(|made| made.numeric).max();
        Case {
            name: self.name.clone(),
            l: self.l.clone(),
            operands: self.operands.clone(),
            expected: self.expected.clone(),
            bounds: self.bounds(class.unwrap_or(NumericClass::F32)),
            texts: realisation.dispatches.iter().map(|made| text(&made.kernel)).collect(),
            realisation: realisation.clone(),
        }
    }

    /// What floats may be off: their rounding, and what the class rounds of each product.
    pub(super) fn bounds(&self, class: NumericClass) -> Vec<Vec<f64>> {
        let float = |word: &u32| f64::from(f32::from_bits(*word)).abs();
        if class == NumericClass::F32 {
            let bound = |word: &u32| 2e-5 * (1.0 + float(word));
            return self.expected.iter().map(|words| words.iter().map(bound).collect()).collect();
        }
        let magnitudes = interpret(&magnitudes(&self.l), &slices(&self.operands));
        let pairs = magnitudes.iter().flatten().zip(self.expected.iter().flatten());
        for (magnitude, sum) in pairs {
            assert!(
                float(magnitude) * (1.0 + 1e-5) >= float(sum),
                "{}: the loop stores no plain sums",
                self.name
            );
        }
        let bound = |word: &u32| (4e-6 + rounding(class)) * float(word);
        magnitudes.iter().map(|words| words.iter().map(bound).collect()).collect()
    }
}

fn slices(words: &[Vec<u32>]) -> Vec<&[u32]> {
    words.iter().map(Vec::as_slice).collect()
}

/// The contraction of the magnitudes of the factors.
fn magnitudes(l: &Loop) -> Loop {
    let mut l = l.clone();
    let LoopKind::Contract(c) = &mut l.kind else { panic!("only contractions are rounded") };
    let factors = c.more.iter_mut().flat_map(|term| [&mut term.a, &mut term.b]);
    for factor in factors.chain([&mut c.a, &mut c.b]) {
        let outputs = factor.expr.outputs().to_vec();
        let sizes = outputs.into_iter().map(|x| factor.expr.unary(UnaryFn::Abs, x)).collect();
        factor.expr.set_outputs(sizes);
    }
    l
}

/// What rounding to the terms of a class changes in a product, relative to it: both operands, and the products left out.
fn rounding(class: NumericClass) -> f64 {
    match class {
        NumericClass::F32 => 0.0,
        NumericClass::Bf16x3 => 6.0 * 0.5_f64.powi(24),
        NumericClass::Bf16x2 => 5.0 * 0.5_f64.powi(16),
        NumericClass::F16 => 2.0 * 0.5_f64.powi(11),
        NumericClass::Bf16 => 2.0 * 0.5_f64.powi(8),
    }
}

/// The text of a kernel that the other tests have.
pub(super) fn text(kernel: &Kernel) -> &'static String {
    static TEXTS: OnceLock<HashMap<&Kernel, &String>> = OnceLock::new();
    TEXTS.get_or_init(|| super::all().iter().map(|(made, text)| (&made.kernel, text)).collect())[kernel]
}

/// The cases of a sample: by the default choice, by one in `step` of the others, and by those with matrices.
fn cases((number, one): (usize, &Realised), step: usize) -> Vec<Case> {
    let problem = Problem::new(one);
    let has_matrices = |made: &Realisation| made.dispatches.iter().any(|one| !one.kernel.matrices.is_empty());
    let chosen = one
        .made
        .iter()
        .enumerate()
        .filter(|(i, made)| *i == 0 || (i + number).is_multiple_of(step) || has_matrices(made));
    chosen.map(|(_, made)| problem.case(made)).collect()
}

/// Whether kernels cannot run here, which is said; a failure where they must.
pub(super) fn is_skipped() -> bool {
    let Some(reason) = missing() else { return false };
    let must = std::env::var_os("GRIFFINFLY_TEST_METAL").is_some_and(|value| value == "1");
    assert!(!must, "kernels for Metal do not run: {reason}");
    println!("skipped: kernels for Metal do not run: {reason}");
    true
}

#[test]
fn kernels_for_metal_equal_the_interpreter() {
    if is_skipped() {
        return;
    }
    let is_full = std::env::var_os("GRIFFINFLY_TEST_FULL").is_some_and(|value| value == "1");
    let step = if is_full { 1 } else { ONE_IN };
    let all: Vec<Case> =
        super::realised().iter().enumerate().flat_map(|sample| cases(sample, step)).collect();
    let (faults, kernels) = execute("metal", &all);
    let dispatches = all.iter().map(|case| case.texts.len()).sum::<usize>();
    let samples = super::realised();
    let with = samples.iter().filter(|one| !one.made.is_empty()).count();
    println!("{} cases of {with} samples, {dispatches} dispatches, {kernels} kernels", all.len());
    // What may have no case: a loop of more tensors than one kernel binds.
    let most = super::apple().max_bindings as usize;
    let none =
        samples.iter().find(|one| one.made.is_empty() && one.l.operands.len() + one.l.results.len() <= most);
    assert_eq!(none.map(|one| one.sample.describe()), None, "a sample without kernels");
    let faults = faults.concat();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(kernels > 300, "{kernels} kernels");
}

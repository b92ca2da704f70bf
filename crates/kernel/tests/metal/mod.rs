//! Kernels as Metal would get them, without a Mac: the text is golden for each kind of kernel, every kernel of every operation
//! and tiling keeps Metal's rules, and kernels run on the CPU (`execute`), where planted faults are found (`planted`).
//!
//! The text is what WebGPU makes for Metal: our WGSL through naga's Metal writer, with buffers in the slots of their bindings, the
//! parameters behind them, and without the checks that trusted code does not need. Rules and limits: Metal Shading Language
//! Specification 3.2, sections 2.2, 4 and 6.5; Metal Feature Set Tables, family Apple7 and later.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod cpp;
mod execute;
mod planted;
mod simdgroup;

use griffinfly_ir::loops::{Loop, LoopKind};
use griffinfly_ir::ops::{Lowering, Sample, samples};
use griffinfly_ir::target::{NumericClass, Target};
use griffinfly_kernel::families::{Instance, Realisation, attention, contract, realise};
use griffinfly_kernel::kir::{Access, Kernel};
use griffinfly_kernel::print::{self, ParameterBlock, PrintOptions};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;

/// Threadgroup memory of one threadgroup.
const THREADGROUP_BYTES: u64 = 32 << 10;
/// Buffers that a function takes.
const BUFFERS: usize = 31;
/// Bytes of matrices that the text may name, if it has any: `simdgroup_float8x8` and its kind.
const SIMDGROUP: &str = "8x8";

/// Tilings whose products simdgroups compute in matrices.
const MATRICES: contract::Staging = contract::Staging::Matrix(NumericClass::F32);

/// Each contraction is made by one choice in so many, another one each time: all of them for all would take a minute.
const ONE_IN: usize = 16;

/// An Apple GPU as WebGPU describes it to what is no browser.
fn apple() -> Target {
    Target {
        name: "apple gpu".into(),
        max_workgroup_bytes: THREADGROUP_BYTES as u32,
        max_invocations: 1024,
        max_workgroup_size: [1024; 3],
        subgroup_size: 32,
        max_iterations: u32::MAX,
        is_hardware: true,
        compute_units: 10,
        has_f32_matrices: true,
        ..Target::minimal_webgpu()
    }
}

/// The text of a kernel in the Metal Shading Language, version 2.4.
fn msl(kernel: &Kernel) -> String {
    use naga::back::msl;
    let parameters = ParameterBlock::Uniform { binding: kernel.bindings.len() as u32 };
    let wgsl = print::wgsl(kernel, &PrintOptions { parameters });
    let module =
        naga::front::wgsl::parse_str(&wgsl).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&wgsl)));
    let flags = naga::valid::ValidationFlags::all();
    // What the device has on whose target kernels with matrices are made.
    let capabilities = if kernel.matrices.is_empty() {
        naga::valid::Capabilities::empty()
    } else {
        use naga::valid::Capabilities as C;
        C::COOPERATIVE_MATRIX.union(C::SUBGROUP).union(C::SUBGROUP_BARRIER)
    };
    let mut validator = naga::valid::Validator::new(flags, capabilities);
    if !kernel.matrices.is_empty() {
        use naga::valid::{ShaderStages, SubgroupOperationSet};
        validator.subgroup_stages(ShaderStages::COMPUTE).subgroup_operations(SubgroupOperationSet::BASIC);
    }
    let info = validator.validate(&module).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&wgsl)));
    let slot = |number: usize, mutable: bool| {
        let binding = naga::ResourceBinding { group: 0, binding: number as u32 };
        (binding, msl::BindTarget { buffer: Some(number as u8), mutable, ..msl::BindTarget::default() })
    };
    let storage = kernel.bindings.iter().map(|binding| binding.access != Access::Read);
    let parameters = (!kernel.params.is_empty()).then_some(false);
    let resources = storage.chain(parameters).enumerate().map(|(number, mutable)| slot(number, mutable));
    // Behind the parameters come the sizes of the buffers, which naga hands to every kernel.
    let sizes = kernel.bindings.len() + usize::from(!kernel.params.is_empty());
    let entry = msl::EntryPointResources {
        resources: resources.collect(),
        sizes_buffer: Some(sizes as u8),
        ..Default::default()
    };
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [(print::ENTRY.to_owned(), entry)].into(),
        fake_missing_bindings: false,
        spirv_cross_compatibility: false,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..msl::Options::default()
    };
    let written = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default());
    let (text, translated) = written.unwrap_or_else(|error| panic!("{error}\n{wgsl}"));
    assert!(matches!(translated.entry_point_names.as_slice(), [Ok(_)]), "{:?}", translated.entry_point_names);
    text
}

/// A loop as the target runs it: by the default choice and by others, of contractions by one in so many.
fn realisations((number, l): (usize, &Loop), target: &Target) -> Vec<Realisation> {
    let mut all: Vec<Realisation> = realise(l, target).into_iter().collect();
    match &l.kind {
        LoopKind::Contract(_) => {
            let choices = contract::choices(target);
            // Of those for matrices one to each, too.
            let matrices: Vec<&contract::Choice> =
                choices.iter().filter(|choice| choice.tiling.staging == MATRICES).collect();
            let one = matrices[number % matrices.len()];
            for choice in choices.iter().skip(number % ONE_IN).step_by(ONE_IN).chain([one]) {
                all.extend(contract::realise_with(l, target, choice));
            }
        }
        LoopKind::Attention(a) => {
            let classes = [NumericClass::F32];
            for geometry in attention::ranked(a, target, &classes, 8).unwrap_or_default() {
                all.extend(attention::realise_with(l, target, geometry));
            }
        }
        _ => {}
    }
    all
}

/// What is wrong with a text, by Metal's rules.
fn faults(kernel: &Kernel, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if kernel.workgroup_bytes() > THREADGROUP_BYTES {
        faults.push(format!("{} bytes of threadgroup memory", kernel.workgroup_bytes()));
    }
    // Bindings, parameters, sizes; what a kernel does not use it is not given.
    let most = kernel.bindings.len() + usize::from(!kernel.params.is_empty()) + 1;
    let slots: Vec<usize> = text.split("[[buffer(").skip(1).filter_map(number).collect();
    let distinct = slots.iter().collect::<HashSet<_>>().len();
    if most > BUFFERS || distinct < slots.len() || slots.iter().any(|slot| *slot >= most) {
        faults.push(format!("buffers {slots:?} of {most}, at most {BUFFERS}"));
    }
    let matrices = text.split("simdgroup_").skip(1).filter(|rest| {
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        name.ends_with(|c: char| c.is_ascii_digit()) && !name.ends_with(SIMDGROUP)
    });
    faults.extend(matrices.map(|rest| format!("simdgroup_{}", &rest[..rest.len().min(20)])));
    // NaN and infinity are told by their bits, which fast mathematics does not change; what it may answer at will is not asked.
    let asked = ["fast::", "isnan(", "isinf(", "isfinite(", "isnormal(", "NAN", "INFINITY", "precise::"];
    faults.extend(asked.into_iter().filter(|word| text.contains(word)).map(|word| format!("uses {word}")));
    let waits = |c: &str| text.contains(c);
    if waits("atomic") || waits("coherent") || waits("device_barrier") {
        faults.push("order between threadgroups".into());
    }
    faults
}

/// The number that a text begins with.
fn number(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The name without numbers: kernels of one kind.
fn kind(instance: &Instance) -> String {
    let letters = instance.name.replace(|c: char| c.is_ascii_digit(), "");
    letters
        .split(' ')
        .take(3)
        .filter(|word| word.chars().any(char::is_alphabetic))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A sample that is one loop, with its realisations, the default first.
struct Realised {
    sample: Sample,
    l: Loop,
    made: Vec<Realisation>,
}

/// Every sample of an operation that is one loop, made once for all tests.
fn realised() -> &'static [Realised] {
    static ALL: OnceLock<Vec<Realised>> = OnceLock::new();
    ALL.get_or_init(|| {
        let target = apple();
        let loops = samples().into_iter().filter_map(|sample| match sample.lowering() {
            Lowering::Loop(l) => Some((sample, *l)),
            Lowering::Leaf | Lowering::Expansion(_) => None,
        });
        let realise = |(number, (sample, l))| {
            let made = realisations((number, &l), &target);
            Realised { sample, l, made }
        };
        loops.enumerate().map(realise).collect()
    })
}

/// Every distinct kernel with its text, made once for all tests.
fn all() -> &'static [(Instance, String)] {
    static ALL: OnceLock<Vec<(Instance, String)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut seen = HashSet::new();
        let made = realised().iter().flat_map(|one| &one.made).flat_map(|made| &made.dispatches);
        let distinct = made.filter(|instance| seen.insert(&instance.kernel));
        distinct.map(|instance| (instance.clone(), msl(&instance.kernel))).collect()
    })
}

#[test]
fn every_kernel_keeps_the_rules_of_metal() {
    for (instance, text) in all() {
        assert_eq!(faults(&instance.kernel, text), Vec::<String>::new(), "{}\n{text}", instance.name);
    }
    assert!(all().len() > 300, "{} kernels", all().len());
}

#[test]
fn broken_rules_are_found() {
    let map = realised().iter().find(|one| matches!(one.l.kind, LoopKind::Map(_))).unwrap();
    let mut kernel = map.made[0].dispatches[0].kernel.clone();
    let text = msl(&kernel);
    assert_eq!(faults(&kernel, &text), Vec::<String>::new());
    for (what, broken) in [
        ("simdgroup_float16x16", text.clone() + "simdgroup_float16x16 m;"),
        ("uses fast::", text.clone() + "metal::fast::exp(x)"),
        ("uses isnan(", text.clone() + "isnan(x)"),
        ("order between threadgroups", text.clone() + "atomic_fetch_add_explicit"),
        ("buffers [2, 0, 0, ", text.replace("[[buffer(1)]]", "[[buffer(0)]]")),
        ("buffers [2, 9, ", text.replace("[[buffer(0)]]", "[[buffer(9)]]")),
    ] {
        let found = faults(&kernel, &broken);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }
    assert_eq!(faults(&kernel, &(text.clone() + "simdgroup_float8x8 m;")), Vec::<String>::new());
    kernel.shared.push(griffinfly_kernel::kir::SharedArray {
        name: "large".into(),
        element: griffinfly_kernel::kir::Type::F32,
        half: None,
        length: 8193,
    });
    assert_eq!(faults(&kernel, &text), ["32772 bytes of threadgroup memory"]);
}

#[test]
fn golden_texts_of_every_kind_of_kernel() {
    let mut shortest: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for (instance, text) in all() {
        let known = shortest.entry(kind(instance)).or_insert((&instance.name, text));
        if (text.len(), text.as_str()) < (known.1.len(), known.1) {
            *known = (&instance.name, text);
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metal/goldens");
    let mut files = Vec::new();
    for (kind, (name, text)) in &shortest {
        let file = kind.replace(|c: char| !c.is_ascii_alphanumeric(), "-") + ".metal";
        crate::golden_at(&folder.join(&file), &format!("// {name}\n{text}"));
        files.push(file);
    }
    let found = std::fs::read_dir(&folder).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    let stray: Vec<String> = found.filter(|file| !files.contains(file)).collect();
    assert_eq!(stray, Vec::<String>::new(), "kinds of kernels that are no more");
}

/// Writes the WGSL of every kernel to the folder that `GRIFFINFLY_WGSL_OUT` names, for browsers to compile: by this target without
/// matrices, which browsers do not offer, and by the smallest one.
#[test]
#[ignore = "writes what the tests in a browser read"]
fn texts_for_browsers() {
    let folder = std::env::var_os("GRIFFINFLY_WGSL_OUT").expect("GRIFFINFLY_WGSL_OUT names no folder");
    let targets = [Target { has_f32_matrices: false, ..apple() }, Target::minimal_webgpu()];
    let loops = || realised().iter().map(|one| &one.l).enumerate();
    let made = targets.iter().flat_map(|target| loops().flat_map(|l| realisations(l, target)));
    let mut texts = BTreeMap::new();
    for instance in made.flat_map(|made| made.dispatches) {
        assert!(instance.kernel.matrices.is_empty(), "{}", instance.name);
        let parameters = ParameterBlock::Uniform { binding: instance.kernel.bindings.len() as u32 };
        texts.insert(print::wgsl(&instance.kernel, &PrintOptions { parameters }), instance.name);
    }
    for (number, (text, name)) in texts.iter().enumerate() {
        let file = Path::new(&folder).join(format!("{number}.wgsl"));
        std::fs::write(file, format!("// {name}\n{text}")).unwrap();
    }
    assert!(texts.len() > 300, "{} kernels", texts.len());
}

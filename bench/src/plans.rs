//! The programs of the five workloads at full size on a large GPU: dispatches, prefetches, pipelines and levels are golden.

use crate::plan;
use crate::record::Phase;
use crate::workload::{Name, Shape, Size};
use griffinfly::InferenceGraph;
use griffinfly::compile::{Options, compile, tuning};
use griffinfly::ir::target::{Contract, Target};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// A large GPU, as the driver of one describes it.
fn large() -> Target {
    Target {
        name: "large gpu".into(),
        max_binding_bytes: (1 << 32) - 1,
        binding_alignment: 16,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        max_bindings: 32,
        max_parameter_bytes: 256,
        subgroup_size: 32,
        max_iterations: u32::MAX,
        is_hardware: true,
        compute_units: 132,
        ..Target::minimal_vulkan()
    }
}

/// The graph of a cell at full size.
fn graph(name: Name, phase: Phase) -> InferenceGraph {
    let shape = if phase == Phase::Latency { Shape::Minimal } else { Shape::Full };
    let model = name.at(Size::Full).model(shape).unwrap();
    match phase {
        Phase::Train => model.training().unwrap().gradients().unwrap(),
        _ => model.inference().unwrap(),
    }
}

#[test]
fn golden_plans() {
    // The same whatever device is tested.
    if std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_some() {
        return;
    }
    let mut text = String::from("workload phase: dispatches, prefetches, pipelines, levels\n");
    for name in [Name::SmolLm2, Name::SmolVla, Name::UNet, Name::ResNet50, Name::Whisper] {
        for phase in Phase::ALL {
            let graph = graph(name, phase);
            let program = compile(graph.graph(), &large(), &Options::default()).unwrap();
            let size = plan::size_of(&program);
            let numbers = [size.dispatches, size.prefetches, size.pipelines, size.levels];
            let numbers = numbers.map(|n| n.to_string()).join(", ");
            let _ = writeln!(text, "{} {}: {numbers}", name.text(), phase.text());
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/plans.txt");
    if std::env::var_os("GRIFFINFLY_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "if this is meant: cargo xtask bless");
}

/// A choice of the shipped table whose problem no workload has any more would never be used.
#[test]
fn shipped_choices_are_of_problems_that_there_are() {
    if std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_some() {
        return;
    }
    let mut keys = BTreeSet::new();
    for name in [Name::SmolLm2, Name::SmolVla, Name::UNet, Name::ResNet50, Name::Whisper] {
        for phase in Phase::ALL {
            let graph = graph(name, phase);
            for contract in [Contract::Strict, Contract::Fast] {
                let options = Options { contract, ..Options::default() };
                let problems = tuning::problems(graph.graph(), &large(), &options).unwrap();
                keys.extend(problems.into_iter().map(|problem| problem.key));
            }
        }
    }
    let table = include_str!("../../crates/griffinfly/src/tune/tables/nvidia-h200.json");
    let table: serde_json::Value = serde_json::from_str(table).unwrap();
    let shipped = table["choices"].as_object().unwrap();
    let unknown: Vec<_> = shipped.keys().filter(|key| !keys.contains(*key)).collect();
    assert!(!shipped.is_empty() && unknown.is_empty(), "{unknown:#?}");
}

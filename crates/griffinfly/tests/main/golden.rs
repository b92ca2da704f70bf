//! The demo's training program for three kinds of device: counts, bytes and dispatches of every level are golden.

use griffinfly::compile::{Options, compile};
use griffinfly::inspect::with_updates;
use griffinfly::ir::target::Target;
use griffinfly::models;
use std::fmt::Write as _;
use std::path::Path;

/// A large GPU, as the driver of one describes it.
fn large() -> Target {
    Target {
        name: "large gpu".into(),
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

#[test]
fn golden_demo() {
    let model = models::digits(64);
    let graph = with_updates(&model.training().unwrap(), &models::DigitsModel::optimizer()).unwrap();
    let mut text = String::new();
    for target in [Target::host(), Target::minimal_vulkan(), large()] {
        let program = compile(&graph, &target, &Options::default()).unwrap();
        assert!(program.dispatches.len() <= 30, "{}: {} dispatches", target.name, program.dispatches.len());
        let _ = writeln!(text, "{}\n{}", target.name, program.summary());
        for (level, ids) in program.sections.iter().flat_map(|section| &section.levels).enumerate() {
            for id in ids {
                let _ = writeln!(text, "{level} {}", program.dispatches[id.index()].instance);
            }
        }
        text.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/demo.txt");
    if std::env::var_os("GRIFFINFLY_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "if this is meant: cargo xtask bless");
}

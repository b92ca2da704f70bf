//! Families without a device: every operation's loops become kernels that the validator accepts, for the smallest and for
//! a large target; a loop over the limits is a typed error; the text of a few kernels is golden.

mod metal;

use griffinfly_ir::index::{Access, Store};
use griffinfly_ir::loops::{Body, Combine, Loop, LoopKind, Map, Phase, Row};
use griffinfly_ir::ops::{Lowering, samples};
use griffinfly_ir::scalar::UnaryFn;
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};
use griffinfly_kernel::KernelError;
use griffinfly_kernel::families::{Realisation, RowRealisation, realise, realise_row_as};
use griffinfly_kernel::{print, spirv};
use std::collections::BTreeSet;
use std::path::Path;

fn large() -> Target {
    Target {
        name: "large".into(),
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        max_bindings: 32,
        is_hardware: true,
        compute_units: 132,
        ..Target::minimal_vulkan()
    }
}

fn texts(realisation: &Realisation) -> Vec<String> {
    let print = |instance: &griffinfly_kernel::families::Instance| {
        assert_eq!(instance.bindings.len(), instance.kernel.bindings.len(), "{}", instance.name);
        assert_eq!(instance.parameters.len(), instance.kernel.params.len(), "{}", instance.name);
        print::wgsl(&instance.kernel, &print::PrintOptions::default())
    };
    realisation.dispatches.iter().map(print).collect()
}

#[test]
fn all_operations_compile_for_small_and_large_targets() {
    let mut known = BTreeSet::new();
    for sample in samples() {
        let Lowering::Loop(l) = sample.lowering() else { continue };
        for target in [Target::minimal_vulkan(), large()] {
            let made = realise(&l, &target);
            // A loop of several kernels may have more tensors than one of them binds.
            if l.operands.len() + l.results.len() > target.max_bindings as usize && made.is_err() {
                assert!(matches!(made, Err(KernelError::Invalid { .. })), "{}: {made:?}", sample.describe());
                continue;
            }
            let made = made.unwrap_or_else(|e| panic!("{}: {e}", sample.describe()));
            for text in texts(&made).into_iter().filter(|text| known.insert(text.clone())) {
                let words = spirv::compile(&text, print::ENTRY);
                words.unwrap_or_else(|e| panic!("{}: {e}\n{text}", sample.describe()));
            }
        }
    }
    assert!(!known.is_empty());
}

/// `y = tanh(x) + bias` over `[rows, cols]`, with `sources` operands added besides.
fn biased(rows: usize, cols: usize, sources: usize) -> Loop {
    let mut types = vec![TensorType::f32([rows, cols]), TensorType::f32([cols])];
    let mut body = Body::new();
    let x = body.load(0, &types[0], Access::identity(2));
    let bias = body.load(1, &types[1], Access::broadcast(&[cols], &[rows, cols]));
    let t = body.expr.unary(UnaryFn::Tanh, x);
    let mut y = body.expr.add(t, bias);
    for i in 0..sources {
        let x = body.load(2 + i, &types[0], Access::identity(2));
        y = body.expr.add(y, x);
        types.push(types[0].clone());
    }
    body.output(y);
    let results = vec![types[0].clone()];
    let stores = vec![Store::identity(0, 2)];
    Loop { operands: types, results, kind: LoopKind::Map(Map { domain: vec![rows, cols], body, stores }) }
}

/// The first largest element of each row, with its place.
fn largest(rows: usize, cols: usize) -> Loop {
    let ty = TensorType::f32([rows, cols]);
    let phase = Phase { body: Body::of_load(0, &ty, Access::identity(2)), combines: vec![Combine::MaxIndex] };
    let mut row_body = Body::new();
    let (y, i) = (row_body.expr.carry(0, DType::F32), row_body.expr.carry(1, DType::I32));
    [y, i].into_iter().for_each(|output| row_body.output(output));
    Loop {
        operands: vec![ty],
        results: vec![TensorType::f32([rows]), TensorType::new(DType::I32, [rows])],
        kind: LoopKind::Row(Row {
            rows: vec![rows],
            cols: vec![cols],
            phases: vec![phase],
            row_body,
            row_stores: (0..2).map(|result| Store::identity(result, 1)).collect(),
            col_body: Body::new(),
            col_stores: Vec::new(),
        }),
    }
}

#[test]
fn too_many_bindings_are_a_typed_error() {
    let error = realise(&biased(3, 5, 6), &Target::minimal_vulkan()).unwrap_err();
    assert!(matches!(error, KernelError::Invalid { .. }), "{error}");
    assert!(error.to_string().contains("9 bindings, 8 allowed"), "{error}");
}

#[test]
fn a_row_too_long_for_registers_is_a_typed_error() {
    let l = largest(2, 100_000);
    let error = realise_row_as(&l, &Target::minimal_vulkan(), RowRealisation::OnChip).unwrap_err();
    assert!(matches!(error, KernelError::Unsupported { .. }), "{error}");
}

#[test]
fn few_long_rows_are_split_on_a_large_device() {
    let made = realise(&largest(2, 100_000), &large()).unwrap();
    assert_eq!(made.dispatches.len(), 2);
    assert_eq!(made.scratch.len(), 1);
    assert_eq!(realise(&largest(4096, 100_000), &large()).unwrap().dispatches.len(), 1);
}

fn golden(name: &str, text: &str) {
    golden_at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/families").join(name), text);
}

fn golden_at(path: &Path, text: &str) {
    if std::env::var_os("GRIFFINFLY_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, text).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text, expected, "{}: `cargo xtask bless` rewrites it", path.display());
}

#[test]
fn golden_kernels() {
    let target = Target::minimal_vulkan();
    let map = realise(&biased(6, 12, 0), &target).unwrap();
    golden("map-bias.wgsl", &texts(&map).concat());
    let on_chip = realise_row_as(&largest(5, 22), &target, RowRealisation::OnChip).unwrap();
    golden("row-on-chip.wgsl", &texts(&on_chip).concat());
    let split = realise_row_as(&largest(5, 30), &target, RowRealisation::Split).unwrap();
    golden("row-split.wgsl", &texts(&split).join("\n// next dispatch\n\n"));
}

//! Tiny shapes on the device under test, the report of what was written, and results that are wrong.

use super::case::{self, Ready};
use super::shape::{Case, Pass, Shape};
use super::{Arguments, LIMIT, check, run, shape};
use crate::error::BenchError;
use griffinfly::{Device, DeviceChoice};
use std::path::{Path, PathBuf};

fn choice() -> DeviceChoice {
    let wanted = std::env::var("GRIFFINFLY_TEST_DEVICE");
    wanted.map_or(DeviceChoice::Host, |name| name.parse().unwrap())
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/micro/shapes.json")
}

fn cases() -> Vec<Case> {
    shape::read(Some(&tiny())).unwrap()
}

/// Arguments that write to a file of this name.
fn arguments(name: &str) -> Arguments {
    let out = std::env::temp_dir().join(format!("griffinfly-micro-{}-{name}.json", std::process::id()));
    let (reference, revision) = (Vec::new(), Some("0123456789abcdef".into()));
    Arguments {
        shapes: Some(tiny()),
        kind: Vec::new(),
        device: choice(),
        samples: 2,
        reference,
        revision,
        out,
    }
}

/// The rows of a page of this record and nothing else.
fn page(record: &Path) -> String {
    let micro = super::Micro::parse(record, &std::fs::read_to_string(record).unwrap()).unwrap();
    micro.table()
}

#[test]
fn device_times_are_written_and_reported() {
    let ours = arguments("ours");
    run(&ours).unwrap();
    let table = page(&ours.out);
    for (shape, passes) in [
        ("5x7x9", &["forward", "input gradient", "weight gradient"][..]),
        ("c1", &["forward", "input gradient", "weight gradient"]),
        ("a1", &["forward", "forward and backward"]),
        ("a2", &["forward", "forward and backward"]),
    ] {
        for pass in passes {
            let start = format!("{shape} | {pass} | strict | ");
            let line = table.lines().find(|line| line.contains(&start));
            let line = line.unwrap_or_else(|| panic!("no '{start}' in {table}"));
            assert!(line.contains(" | f32 | - | - | - | - |"), "{line}");
        }
    }
    std::fs::remove_file(&ours.out).unwrap();
}

#[test]
fn device_times_stand_beside_those_of_the_reference() {
    let row = |pass: &str, contract: &str| {
        format!(
            r#"{{"kind": "gemm", "shape": "5x7x9", "pass": "{pass}", "contract": "{contract}",
            "reference": "BLAS", "reference_us": 3, "reference_error": 1e-7}}"#
        )
    };
    let rows = [row("forward", "strict"), row("forward", "fast"), row("input gradient", "fast")].join(",");
    let theirs = arguments("theirs").out;
    let text = format!(r#"{{"format": 1, "device": "D", "driver": "d", "revision": "r", "rows": [{rows}]}}"#);
    std::fs::write(&theirs, text).unwrap();
    let both = Arguments { kind: vec!["gemm".into()], reference: vec![theirs.clone()], ..arguments("both") };
    run(&both).unwrap();
    let table = page(&both.out);
    for start in ["forward | strict", "forward | fast", "input gradient | fast"] {
        let line = table.lines().find(|line| line.contains(&format!("5x7x9 | {start} | ")));
        assert!(line.is_some_and(|line| line.contains(" | f32 | 3.0 | 0.00 | BLAS | ")), "{start}: {table}");
    }
    assert!(table.contains("weight gradient | strict"), "ours alone: {table}");
    assert!(
        table.contains("geometric mean of 1 |  | strict") && table.contains("geometric mean of 2 |  | fast")
    );
    std::fs::remove_file(theirs).unwrap();
    std::fs::remove_file(both.out).unwrap();
}

#[test]
fn device_results_are_compared_with_f64() {
    let device = Device::open(choice()).unwrap();
    for case in cases() {
        for pass in case.shape.passes() {
            let ready = case::ready(&device, &case.shape, *pass).unwrap();
            let error = check::error(&ready, &case.shape, *pass).unwrap();
            assert!(error <= LIMIT && error > 0.0, "{} {}: {error}", case.name, pass.text());
        }
    }
}

/// With other operands than those the results are of, every pass is wrong.
#[test]
fn results_of_other_operands_are_seen() {
    let device = Device::host();
    for case in cases() {
        for pass in case.shape.passes() {
            let Ready { session, mut given, results } = case::ready(&device, &case.shape, *pass).unwrap();
            for tensor in &mut given {
                tensor.values.rotate_left(1);
            }
            let ready = Ready { session, given, results };
            let error = check::error(&ready, &case.shape, *pass).unwrap();
            assert!(error > 100.0 * LIMIT, "{} {}: {error}", case.name, pass.text());
        }
    }
}

#[test]
fn arithmetic_is_that_of_the_products() {
    let [gemm, conv, causal, full] = <[Case; 4]>::try_from(cases()).unwrap().map(|case| case.shape);
    assert_eq!(gemm.operations(Pass::InputGradient), 2 * 5 * 7 * 9);
    assert_eq!(conv.result(), [2, 6, 4, 7]);
    assert_eq!(conv.operations(Pass::Forward), 2 * (2 * 6 * 4 * 7) * (2 * 3 * 2));
    assert_eq!(causal.operations(Pass::Forward), 2 * 2 * (2 * 4 * 8) * (9 * 10 / 2));
    assert_eq!(full.operations(Pass::ForwardBackward), 2 * 7 * (2 * 8) * (9 * 5));
}

#[test]
fn what_is_no_file_of_shapes_is_refused() {
    assert!(shape::read(None).unwrap().len() > 20);
    assert!(matches!(shape::read(Some(Path::new("none.json"))), Err(BenchError::Io { .. })));
    let path = arguments("shapes").out;
    std::fs::write(&path, r#"[{"name": "n", "of": "o", "kind": "pool"}]"#).unwrap();
    assert!(matches!(shape::read(Some(&path)), Err(BenchError::Record { .. })));
    std::fs::remove_file(path).unwrap();
    let known = serde_json::from_str::<Shape>(r#"{"kind": "gemm", "m": 1, "n": 2, "k": 3}"#).unwrap();
    assert_eq!(known.name(), "1x2x3");
}

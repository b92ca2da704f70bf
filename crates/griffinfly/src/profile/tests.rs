//! Profiles of the host device, and the texts made of them.

use super::*;
use crate::definition::GraphExt;
use crate::device::{Device, DeviceChoice};
use crate::inputs::Input;
use crate::session::Session;
use griffinfly_ir::graph::Graph;

/// `y = max(x w, 0)` on the host.
fn profiled() -> Profile {
    let mut g = Graph::new();
    let (x, w) = (g.input("x", [8, 16]), g.input("w", [16, 4]));
    let y = g.matmul(x, w);
    let y = g.relu(y);
    let graph = g.inference([("y", y)]).expect("builds");
    let device = Device::open(DeviceChoice::Host).expect("opens");
    let mut session = Session::new(&device, graph).expect("compiles");
    assert!(session.profile(1).is_err(), "no step was run");
    session.run(&[("x", Input::f32(&[1.0; 128])), ("w", Input::f32(&[1.0; 64]))]).expect("runs");
    session.profile(3).expect("profiles")
}

#[test]
fn rows_have_time_work_and_what_they_compute() {
    let profile = profiled();
    assert_eq!(profile.rows.len(), 1);
    let row = &profile.rows[0];
    assert_eq!(row.operations, 2 * 8 * 16 * 4 + 8 * 4);
    // Every range begins at a multiple of 256 bytes but ends with its tensor.
    assert_eq!(row.bytes, 4 * (128 + 64 + 32));
    assert!(row.nanoseconds > 0.0 && profile.total_ns >= row.nanoseconds && profile.step_ns > 0.0);
    assert!(row.dispatch.computes.iter().any(|label| label.contains("matmul")), "{row:?}");
    assert_eq!(row.of_roof, None);
}

#[test]
fn a_roof_bounds_a_dispatch_by_work_or_bytes() {
    let roof = Roof { operations_per_second: 1e9, bytes_per_second: 1e9 };
    assert!((roof.least_ns(10, 3) - 10.0).abs() < 1e-9);
    assert!((roof.least_ns(3, 10) - 10.0).abs() < 1e-9);
    let profile = profiled().under(roof);
    let row = &profile.rows[0];
    let share = row.of_roof.expect("known");
    assert!((share * row.nanoseconds - row.operations.max(row.bytes) as f64).abs() < 1e-3);
}

#[test]
fn a_measured_roof_is_finite() {
    let device = Device::open(DeviceChoice::Host).expect("opens");
    let roof = Roof::measure(&device).expect("measures");
    assert!(roof.operations_per_second > 1e6 && roof.operations_per_second.is_finite());
    assert!(roof.bytes_per_second > 1e6 && roof.bytes_per_second.is_finite());
}

#[test]
fn the_table_has_a_line_for_each_instance() {
    let mut profile = profiled();
    let row = profile.rows[0].clone();
    profile.rows.push(row);
    let table = profile.table();
    assert_eq!(table.lines().count(), 4, "{table}");
    let last = table.lines().last().expect("a line");
    assert!(last.contains("100.0%") && last.contains(" 2 ") && last.contains("f32"), "{table}");
    assert!(last.contains(" -      -  f32 "), "the host has no registers: {table}");
    (profile.rows[0].registers, profile.rows[1].registers, profile.rows[1].spills) =
        (Some(40.0), Some(48.0), Some(16.0));
    assert!(profile.table().contains("  48     16  f32 "), "the most of both: {}", profile.table());
    let roof = Roof { operations_per_second: 1e12, bytes_per_second: 1e12 };
    assert!(profile.under(roof).table().contains("roof: 1000.0 GFLOP/s, 1000.0 GB/s"));
}

#[test]
fn the_trace_has_an_event_for_each_dispatch_without_gaps() {
    let mut profile = profiled();
    let row = profile.rows[0].clone();
    profile.rows.push(row);
    let trace: serde_json::Value = serde_json::from_str(&profile.trace()).expect("is JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let complete: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(complete.len(), 2);
    let number = |event: &serde_json::Value, key: &str| event[key].as_f64().expect("a number");
    assert!((number(complete[1], "ts") - number(complete[0], "dur")).abs() < 1e-9);
    assert_eq!(complete[0]["args"]["operations"], profile.rows[0].operations);
}

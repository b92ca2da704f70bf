//! The command as its users run it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of one test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("griffinfly-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the command in a directory.
fn run_in(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_griffinfly")).args(arguments).current_dir(directory).output().unwrap()
}

fn run(arguments: &[&str]) -> Output {
    run_in(&std::env::temp_dir(), arguments)
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The last line of a successful run, as JSON.
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(stdout(output).lines().last().unwrap()).unwrap()
}

/// The message of a run that ended with this code: no panic, nothing on standard output.
fn failure(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(stdout(output).is_empty(), "{}", stdout(output));
    assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
    text
}

#[test]
fn the_demo_trains_saves_and_repeats() {
    let scratch = Scratch::new("demo");
    let demo = |out: &str| {
        json(&run_in(
            &scratch.0,
            &["demo", "--device", "host", "--steps", "60", "--seed", "5", "--out", out, "--json"],
        ))
    };
    let first = demo("a/b");
    let keys = [
        "device",
        "backend",
        "train_steps",
        "loss_first",
        "loss_last",
        "test_accuracy",
        "compile_s",
        "step_ms_median",
        "plan_bytes_physical",
        "plan_bytes_logical",
        "checkpoint",
    ];
    for key in keys {
        assert!(!first[key].is_null(), "{key} is missing in {first}");
    }
    assert_eq!((first["backend"].as_str(), first["train_steps"].as_u64()), (Some("host"), Some(60)));
    assert!(first["loss_last"].as_f64() < first["loss_first"].as_f64());
    assert!(first["test_accuracy"].as_f64().unwrap() > 0.8, "{first}");
    let second = demo("c");
    for key in ["loss_first", "loss_last", "test_accuracy"] {
        assert_eq!(first[key], second[key]);
    }
    let bytes = |out: &str| std::fs::read(scratch.0.join(out).join("digits.safetensors")).unwrap();
    assert!(bytes("a/b") == bytes("c"), "the same seed gave another file");

    let file = scratch.0.join("c/digits.safetensors");
    let loaded = json(&run(&["demo", "--device", "host", "--json", "--load", file.to_str().unwrap()]));
    assert_eq!(loaded["test_accuracy"], first["test_accuracy"]);
    assert_eq!((loaded["train_steps"].as_u64(), loaded["loss_first"].is_null()), (Some(0), true));
}

#[test]
fn the_demo_tells_people_what_it_did() {
    let scratch = Scratch::new("text");
    let output = run_in(&scratch.0, &["demo", "--device", "host", "--steps", "8"]);
    let text = stdout(&output);
    assert!(output.status.success());
    for part in
        ["device", "training", "preparation", "step", "plan", "checkpoint", "test accuracy", "confusion", "█"]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(
        output.stderr.is_empty(),
        "progress is for terminals: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(scratch.0.join("digits.safetensors").is_file());
}

#[test]
fn usage_errors_end_with_2() {
    let wrong: [&[&str]; 9] = [
        &[],
        &["dance"],
        &["demo", "--device", "toaster"],
        &["demo", "--steps", "0"],
        &["demo", "--steps", "many"],
        &["demo", "--seed", "-1"],
        &["demo", "--load", "x", "--steps", "3"],
        &["inspect"],
        &["inspect", "--stage", "soup"],
    ];
    for arguments in wrong {
        failure(&run(arguments), 2);
    }
}

#[test]
fn failures_end_with_1_and_say_what_and_where() {
    let scratch = Scratch::new("failures");
    let file = |name: &str| scratch.0.join(name).to_str().unwrap().to_owned();
    let load = |path: &str| failure(&run(&["demo", "--device", "host", "--load", path]), 1);
    assert!(load(&file("absent")).contains("absent"));
    // A directory may hold the files of a model: this one holds none.
    let empty = load(scratch.0.to_str().unwrap());
    assert!(empty.contains("model.safetensors"), "{empty}");
    std::fs::write(file("short"), b"abc").unwrap();
    assert!(load(&file("short")).contains("too few"));
    let header = r#"{"conv1.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([0; 4]);
    std::fs::write(file("other"), bytes).unwrap();
    let text = load(&file("other"));
    assert!(
        text.contains("'conv1.weight' has shape [1]") && text.contains("'head.bias' f32[10] is missing"),
        "{text}"
    );
    let text = failure(&run(&["demo", "--device", "host", "--steps", "1", "--out", &file("short")]), 1);
    assert!(text.contains("cannot make the directory"), "{text}");
}

#[test]
fn a_device_that_is_not_there_is_a_failure() {
    let output = Command::new(env!("CARGO_BIN_EXE_griffinfly"))
        .args(["demo", "--device", "vulkan", "--steps", "1"])
        .env("VK_DRIVER_FILES", "nowhere.json")
        .env("VK_ICD_FILENAMES", "nowhere.json")
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap();
    assert!(failure(&output, 1).contains("vulkan"));
}

#[test]
fn devices_are_listed() {
    let listed = json(&run(&["devices", "--json"]));
    let backends: Vec<&str> =
        listed["devices"].as_array().unwrap().iter().map(|d| d["backend"].as_str().unwrap()).collect();
    assert!(backends.contains(&"host"), "{listed}");
    assert!(stdout(&run(&["devices"])).contains("host"));
}

#[test]
fn every_stage_can_be_shown() {
    for stage in ["graph", "optimised", "loops", "kernels", "plan"] {
        for extra in [None, Some("--train")] {
            let mut arguments = vec!["inspect", "--device", "host", "--batch", "4", "--stage", stage];
            arguments.extend(extra);
            let text = stdout(&run(&arguments));
            arguments.push("--json");
            let object = json(&run(&arguments));
            assert_eq!(object["stage"], stage);
            assert_eq!(object["text"].as_str().unwrap().trim_end(), text.trim_end());
            assert!(!text.trim().is_empty(), "{stage}");
            let rows = object["dispatches"].as_array();
            assert_eq!(rows.is_some(), ["kernels", "plan"].contains(&stage), "{stage}");
            for row in rows.into_iter().flatten() {
                let instance = row["instance"].as_str().unwrap();
                let shown = format!("{} {instance}", row["dispatch"]);
                assert!(text.lines().any(|line| line.contains(&shown)), "{shown}");
                assert!(!row["computes"].as_array().unwrap().is_empty(), "{row}");
            }
        }
    }
    let loops = stdout(&run(&["inspect", "--device", "host", "--stage", "loops", "--train"]));
    for part in
        ["(image:f32[64,1,8,8], conv1.weight:f32[16,1,3,3]", "output loss = t", "update head.bias = t"]
    {
        assert!(loops.contains(part), "{part} is missing in\n{loops}");
    }
}

#[test]
fn a_profile_is_a_table_a_record_and_a_trace() {
    let scratch = Scratch::new("profile");
    for train in [false, true] {
        let mut arguments = vec![
            "profile", "--device", "host", "--batch", "4", "--steps", "2", "--json", "p.json", "--trace",
            "t.json",
        ];
        arguments.extend(train.then_some("--train"));
        let output = run_in(&scratch.0, &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let table = stdout(&output);
        assert!(table.contains("dispatches in") && table.contains("roof:"), "{table}");
        let read = |name: &str| -> Value {
            serde_json::from_str(&std::fs::read_to_string(scratch.0.join(name)).unwrap()).unwrap()
        };
        let (profile, trace) = (read("p.json"), read("t.json"));
        let rows = profile["rows"].as_array().unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| row["of_roof"].as_f64().unwrap() > 0.0));
        assert!(rows.iter().any(|row| row["operations"].as_u64().unwrap() > 0));
        assert_eq!(trace["traceEvents"].as_array().unwrap().len(), rows.len() + 1);
    }
    let refused = run_in(&scratch.0, &["profile", "--device", "host", "--json", "missing/p.json"]);
    assert!(failure(&refused, 1).contains("missing"));
}

#[test]
fn tuning_needs_kernels_and_a_budget() {
    let refused = run(&["tune", "--device", "host", "--budget", "5"]);
    assert!(failure(&refused, 1).contains("no kernels to choose among"));
    assert!(failure(&run(&["tune", "--budget", "0"]), 2).contains("--budget"));
}

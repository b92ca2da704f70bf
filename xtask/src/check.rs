//! Everything that can be judged without running the code: format, lints, house rules, documentation.

use crate::report::Report;
use crate::{cargo, tidy};

/// Runs all checks.
pub(crate) fn run(report: &mut Report) {
    report.stage("format", || cargo::run(&["fmt", "--all", "--check"], &[]));
    report.stage("tidy", tidy::run);
    let features = ["--features", "griffinfly/webgpu"];
    let clippy = ["clippy", "--workspace", "--all-targets", features[0], features[1], "--", "-D", "warnings"];
    report.stage("clippy", || cargo::run(&clippy, &[]));
    // As it is built by default.
    let default = ["clippy", "--workspace", "--lib", "--bins", "--", "-D", "warnings"];
    report.stage("clippy without WebGPU", || cargo::run(&default, &[]));
    // Libraries only: the binary `griffinfly` and the library of that name would write the same page.
    let docs = ["doc", "--no-deps", "--workspace", "--lib", features[0], features[1]];
    report.stage("docs", || cargo::run(&docs, &[("RUSTDOCFLAGS", "-D warnings")]));
}

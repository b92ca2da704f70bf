//! Everything that can be judged without running the code: format, lints, house rules, documentation.

use crate::report::Report;
use crate::{cargo, tidy};

/// Runs all checks.
pub(crate) fn run(report: &mut Report) {
    report.stage("format", || cargo::run(&["fmt", "--all", "--check"], &[]));
    report.stage("tidy", tidy::run);
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    report.stage("clippy", || cargo::run(&clippy, &[]));
    // Libraries only: the binary `griffinfly` and the library of that name would write the same page.
    let docs = ["doc", "--no-deps", "--workspace", "--lib"];
    report.stage("docs", || cargo::run(&docs, &[("RUSTDOCFLAGS", "-D warnings")]));
}

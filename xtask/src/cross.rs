//! Type-checks the libraries for the systems they are meant for and the tests do not run on.
//!
//! Nothing is linked or run, so only the target's standard library is needed. A target without it is told as not checked,
//! with how to get it; it is not a failure, because no test machine needs all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::{Failure, Outcome, Report};
use crate::{cargo, workspace};

const TARGETS: [&str; 3] = ["aarch64-apple-darwin", "aarch64-linux-android", "x86_64-pc-windows-gnu"];

/// Checks every target.
pub(crate) fn run(report: &mut Report) {
    let sysroot = sysroot();
    for target in TARGETS {
        report.stage(&format!("check for {target}"), || check(sysroot.as_ref()?, target));
    }
}

fn check(sysroot: &Path, target: &str) -> Result<Outcome, Failure> {
    if !has_library(sysroot, target) {
        return Ok(Outcome::NotRun(format!(
            "NOT CHECKED, its standard library is not installed: rustup target add {target}"
        )));
    }
    cargo::run(&["check", "--workspace", "--lib", "--target", target], &[])
}

/// The directory of the compiler that cargo uses in this repository.
fn sysroot() -> Result<PathBuf, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).current_dir(workspace::root()).output();
    let output = output.map_err(|error| format!("cannot start rustc: {error}"))?;
    if !output.status.success() {
        return Err(format!("rustc --print sysroot ended with {}", output.status));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Whether the compiler has the standard library of a target.
fn has_library(sysroot: &Path, target: &str) -> bool {
    let directory = sysroot.join("lib/rustlib").join(target).join("lib");
    let is_std = |name: String| name.starts_with("libstd-");
    std::fs::read_dir(directory).is_ok_and(|mut entries| {
        entries.any(|e| e.is_ok_and(|e| is_std(e.file_name().to_string_lossy().into())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_libraries_count() {
        let sysroot = sysroot().unwrap();
        let installed = std::fs::read_dir(sysroot.join("lib/rustlib")).unwrap().flatten();
        let names: Vec<String> = installed.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        assert!(names.iter().any(|target| has_library(&sysroot, target)), "{names:?}");
        assert!(!has_library(&sysroot, "no-such-target"));
    }

    #[test]
    fn a_missing_library_is_told_with_how_to_get_it() {
        let outcome = check(Path::new("nowhere"), "aarch64-apple-darwin");
        let Ok(Outcome::NotRun(reason)) = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("NOT CHECKED"), "{reason}");
        assert!(reason.contains("rustup target add aarch64-apple-darwin"), "{reason}");
    }
}

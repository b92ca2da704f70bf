//! Type-checks libraries and commands for the systems they are meant for and the tests do not run on.
//!
//! Nothing is linked or run, so only the target's standard library is needed: as rustup installs it, else made on the spot from its
//! source with the compiler that Debian packages for browsers. A target for which neither is there is told as not checked, with how
//! to get it; it is not a failure, because no test machine needs all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::{Failure, Outcome, Report};
use crate::{apt, cargo, workspace};

/// Browsers are not among them: `web` builds for them.
const TARGETS: [&str; 4] =
    ["aarch64-apple-darwin", "aarch64-apple-ios", "aarch64-linux-android", "x86_64-pc-windows-gnu"];

/// Debian's compiler, cargo and source of the standard library, newer than its others, and a tool that the library for Windows
/// is made with.
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "binutils-mingw-w64-x86-64"];
/// What they install.
pub(crate) const FILES: [&str; 4] = [
    "/usr/bin/rustc",
    "/usr/bin/cargo",
    "/usr/lib/rustlib/src/rust/library/std/Cargo.toml",
    "/usr/bin/x86_64-w64-mingw32-dlltool",
];

/// Checks every target.
pub(crate) fn run(report: &mut Report, may_install: bool) {
    let sysroot = sysroot();
    let has_all = || sysroot.as_ref().is_ok_and(|root| TARGETS.iter().all(|t| has_library(root, t)));
    if !has_all() && may_install {
        report.stage("set-up of cross-checks", set_up);
    }
    for target in TARGETS {
        report.stage(&format!("check for {target}"), || check(sysroot.as_ref()?, target, has_source()));
    }
}

/// Installs Debian's compiler where that is possible; elsewhere nothing.
pub(crate) fn set_up() -> Result<Outcome, Failure> {
    if has_source() {
        return Ok(Outcome::Passed(String::new()));
    }
    if !apt::can_install() {
        return Ok(Outcome::NotRun(format!("not as root on Debian: {} not installed", PACKAGES.join(", "))));
    }
    match apt::install(&PACKAGES) {
        Ok(()) if has_source() => Ok(Outcome::Passed(PACKAGES.join(" "))),
        Ok(()) => Ok(Outcome::NotRun(format!("{} bring no source of the library", PACKAGES.join(", ")))),
        // Releases of Debian without these packages are no failure of the project.
        Err(reason) => Ok(Outcome::NotRun(reason)),
    }
}

/// Whether all of it is there and new enough for this repository.
pub(crate) fn has_source() -> bool {
    let version = || Command::new(FILES[0]).arg("--version").output().ok();
    FILES.iter().all(|file| Path::new(file).exists())
        && version().is_some_and(|output| {
            minor(&String::from_utf8_lossy(&output.stdout)) >= minor(env!("CARGO_PKG_RUST_VERSION"))
        })
}

/// The second number of a version, such as 96 in `rustc 1.96.0 (...)`; 0 where there is none.
fn minor(version: &str) -> u32 {
    version.split('.').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn check(sysroot: &Path, target: &str, has_source: bool) -> Result<Outcome, Failure> {
    let arguments = arguments(target);
    if has_library(sysroot, target) {
        return cargo::run(&arguments, &[]);
    }
    if has_source {
        return check_from_source(&arguments);
    }
    Ok(Outcome::NotRun(format!(
        "NOT CHECKED, its standard library is not installed: rustup target add {target}, or on Debian: apt-get install {}",
        PACKAGES.join(" ")
    )))
}

/// Everything, with what is built in by default on Apple's systems and by choice elsewhere.
fn arguments(target: &str) -> Vec<&str> {
    let all = ["check", "--workspace", "--target", target];
    let webgpu: &[&str] = if target.contains("-apple-") { &[] } else { &["--features", "griffinfly/webgpu"] };
    [&all, webgpu].concat()
}

/// Checks with Debian's compiler and a standard library of its own making, below a target directory of its own.
fn check_from_source(arguments: &[&str]) -> Result<Outcome, Failure> {
    let [rustc, cargo, ..] = FILES;
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(workspace::root());
    command.args(["-Zbuild-std=std,panic_abort", "--target-dir", "target/cross"]);
    // Nothing of it runs, so nothing is optimised.
    command.args([
        "--config",
        "profile.dev.package.\"*\".opt-level=0",
        "--config",
        "profile.dev.debug=false",
    ]);
    command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1").env_remove("CARGO_TARGET_DIR");
    let status = command.status().map_err(|error| format!("cannot start {cargo}: {error}"))?;
    if status.success() {
        Ok(Outcome::Passed("with a standard library from source".into()))
    } else {
        Err(format!("{cargo} {} ended with {status}", arguments.join(" ")))
    }
}

/// The directory of the compiler that cargo uses in this repository.
pub(crate) fn sysroot() -> Result<PathBuf, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).current_dir(workspace::root()).output();
    let output = output.map_err(|error| format!("cannot start rustc: {error}"))?;
    if !output.status.success() {
        return Err(format!("rustc --print sysroot ended with {}", output.status));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Whether the compiler has the standard library of a target.
pub(crate) fn has_library(sysroot: &Path, target: &str) -> bool {
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
    fn versions_compare_by_their_second_number() {
        assert_eq!(minor("rustc 1.96.0 (abc 2026-05-01)"), 96);
        assert_eq!(minor("1.89"), 89);
        assert_eq!(minor("unknown"), 0);
        assert!(minor(env!("CARGO_PKG_RUST_VERSION")) > 80);
    }

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
        let outcome = check(Path::new("nowhere"), "aarch64-apple-darwin", false);
        let Ok(Outcome::NotRun(reason)) = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("NOT CHECKED"), "{reason}");
        assert!(reason.contains("rustup target add aarch64-apple-darwin"), "{reason}");
        assert!(reason.contains("rustc-web"), "{reason}");
    }
}

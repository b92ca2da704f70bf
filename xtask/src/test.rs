//! The whole test: set-up, checks, all tests on host, then device tests on each Vulkan driver.

use crate::drivers::{self, Driver};
use crate::report::{Failure, Outcome, Report};
use crate::{apt, cargo, check};

/// The flags of `test`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Every tiling at every size.
    full: bool,
    /// Install and download nothing.
    no_install: bool,
}

impl Options {
    /// Reads the flags, or returns the one that is unknown.
    pub(crate) fn parse(flags: &[&str]) -> Result<Self, String> {
        let mut options = Options::default();
        for &flag in flags {
            match flag {
                "--full" => options.full = true,
                "--no-install" => options.no_install = true,
                _ => return Err(flag.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Runs everything.
pub(crate) fn run(report: &mut Report, options: Options) {
    let found = drivers::set_up(report, !options.no_install);
    report.stage("set-up of clang", || clang(!options.no_install));
    check::run(report);
    report.stage("tests on host", || {
        let mut environment = vec![("GRIFFINFLY_TEST_DEVICE", "host")];
        if has_clang() {
            environment.push(("GRIFFINFLY_TEST_METAL", "1"));
        }
        add_full(&mut environment, options);
        cargo::test(&[ALL, &[]], &environment)
    });
    for (number, driver) in found.drivers.iter().enumerate() {
        // Kernels for themselves are many and slow to compile: by default on the first driver, which compiles them fastest.
        let kernels = number == 0 || options.full;
        let on = |backend: &'static str, kernels: bool| Pass { backend, kernels, options };
        let name = format!("device tests on {}", driver.name);
        report.stage(&name, || device_tests(driver, found.validation, on("vulkan", kernels)));
        if kernels {
            let name = format!("device tests through WebGPU on {}", driver.name);
            report.stage(&name, || device_tests(driver, false, on("webgpu", options.full)));
        }
    }
}

/// Installs the compiler that runs the kernels for Metal on the CPU, where it is missing and that is allowed.
fn clang(may_install: bool) -> Result<Outcome, Failure> {
    if !has_clang() && may_install && apt::can_install() {
        apt::install(&["clang"])?;
    }
    if has_clang() {
        return Ok(Outcome::Passed(String::new()));
    }
    let how = "kernels for Metal are not run on the CPU without clang++. On Debian: apt-get install clang";
    Ok(Outcome::NotRun(how.into()))
}

fn has_clang() -> bool {
    apt::runs("clang++")
}

/// All packages with all that can be built in, always: a choice among them would build their dependencies again with other features.
pub(crate) const ALL: &[&str] = &["--workspace", "--features", "griffinfly/webgpu"];

/// One run of the device tests.
#[derive(Clone, Copy)]
struct Pass {
    backend: &'static str,
    /// Whether the tests of kernels for themselves are among them.
    kernels: bool,
    options: Options,
}

fn device_tests(driver: &Driver, validation: bool, pass: Pass) -> Result<Outcome, Failure> {
    let manifest = driver.manifest.to_str().ok_or("the path of the driver is not UTF-8")?;
    let mut environment = vec![
        ("GRIFFINFLY_TEST_DEVICE", pass.backend),
        ("VK_DRIVER_FILES", manifest),
        // The name of the same variable for loaders before 1.3.207.
        ("VK_ICD_FILENAMES", manifest),
    ];
    if validation {
        environment.push(("GRIFFINFLY_VALIDATION", "1"));
        // The layer bears no devices that come and go on several threads.
        environment.push(("RUST_TEST_THREADS", "1"));
    }
    add_full(&mut environment, pass.options);
    let filters: &[&str] = &["--tests", "device"];
    let skipped: &[&str] = if pass.kernels {
        &[]
    } else {
        &["--", "--skip", "device_families", "--skip", "device_contractions"]
    };
    cargo::test(&[ALL, filters, skipped], &environment)
}

fn add_full(environment: &mut Vec<(&str, &str)>, options: Options) {
    if options.full {
        environment.push(("GRIFFINFLY_TEST_FULL", "1"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags() {
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        assert_eq!(Options::parse(&["--no-install", "--full"]), Ok(Options { full: true, no_install: true }));
        assert_eq!(Options::parse(&["--fast"]), Err("--fast".to_owned()));
    }
}

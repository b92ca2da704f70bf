//! The page in a browser: what the tests need is set up, they are run, and what the tab saved is read by the command line tool.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{fresh, output, site, succeed};
use crate::report::{Failure, Outcome, Report};
use crate::{apt, cargo, workspace};

/// Where browsers are looked for; `CHROMIUM` names another one.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Runs the tests; what is missing and cannot be installed is told.
pub(super) fn run(report: &mut Report, may_install: bool) {
    report.stage("set-up of the browser", || set_up(may_install));
    let missing = missing();
    let mut stage = |name: &str, run: &dyn Fn() -> Result<Outcome, Failure>| {
        report.stage(name, || match &missing {
            Some(what) => Ok(Outcome::NotRun(format!("{what} is not there"))),
            None => run(),
        });
    };
    stage("checkpoint and kernels for the browser", &material);
    stage("page in a browser", &visits);
    stage("what the tab saved, read elsewhere", &read_back);
}

fn set_up(may_install: bool) -> Result<Outcome, Failure> {
    if browser().is_none() && may_install && apt::can_install() {
        apt::install(&["chromium"])?;
    }
    if let Some(what) = missing() {
        let how = "needed are Chromium (or CHROMIUM=PATH), Node.js 20 or later and npm";
        return Ok(Outcome::NotRun(format!("{what} is not there; {how}")));
    }
    succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(tests()))?;
    Ok(Outcome::Passed(String::new()))
}

fn missing() -> Option<&'static str> {
    if browser().is_none() {
        return Some("Chromium");
    }
    ["node", "npm"].into_iter().find(|program| !apt::runs(program))
}

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| BROWSERS.iter().map(PathBuf::from).find(|path| path.is_file()))
}

/// The tests.
fn tests() -> PathBuf {
    workspace::root().join("web/e2e")
}

/// What the tests leave: screenshot, checkpoint, numbers.
fn left() -> PathBuf {
    output().join("out")
}

/// A checkpoint of the CPU's, and the text of every kernel.
fn material() -> Result<Outcome, Failure> {
    let trained = fresh(&output().join("trained"))?;
    let printed = demo(&["--out", &trained.to_string_lossy()])?;
    std::fs::write(trained.join("report.json"), &printed).map_err(|error| format!("report.json: {error}"))?;
    let kernels = fresh(&output().join("kernels"))?;
    let kernels = kernels.to_string_lossy();
    cargo::test(
        &[crate::test::ALL, &["--test", "families", "--", "--ignored", "texts_for_browsers"]],
        &[("GRIFFINFLY_WGSL_OUT", &kernels)],
    )
}

/// The report of a demo on the CPU.
fn demo(arguments: &[&str]) -> Result<String, Failure> {
    let demo = [
        "run",
        "--quiet",
        "-p",
        "griffinfly-cli",
        "--features",
        "webgpu",
        "--",
        "demo",
        "--device",
        "host",
        "--json",
    ];
    let output = cargo::command(&[&demo, arguments].concat()).stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("the demo ended with {}", output.status)) }
}

fn visits() -> Result<Outcome, Failure> {
    let accuracy = accuracy(&output().join("trained/report.json"))?;
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=spec", "page.test.mjs"]).current_dir(tests());
    command.env("GRIFFINFLY_SITE", site()).env("GRIFFINFLY_OUT", fresh(&left())?);
    command.env("GRIFFINFLY_CHECKPOINT", output().join("trained/digits.safetensors"));
    command.env("GRIFFINFLY_ACCURACY", accuracy.to_string());
    command.env("GRIFFINFLY_WGSL", output().join("kernels"));
    if let Some(browser) = browser() {
        command.env("CHROMIUM", browser);
    }
    succeed(&mut command)?;
    let numbers = std::fs::read_to_string(left().join("numbers.json")).unwrap_or_default();
    Ok(Outcome::Passed(numbers.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// The CPU reads the file that the tab saved, and classifies as many images correctly.
fn read_back() -> Result<Outcome, Failure> {
    let file = left().join("digits.safetensors");
    let again = number(&demo(&["--load", &file.to_string_lossy()])?, "test_accuracy").ok_or("no accuracy")?;
    let in_tab = accuracy(&left().join("numbers.json"))?;
    if (again - in_tab).abs() > 1e-5 {
        return Err(format!("{again} of the test images on the CPU, {in_tab} in the tab"));
    }
    Ok(Outcome::Passed(format!("accuracy {again} in both")))
}

fn accuracy(report: &Path) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(report)
        .map_err(|error| format!("cannot read {}: {error}", report.display()))?;
    number(&text, "test_accuracy").ok_or_else(|| format!("{} has no test_accuracy", report.display()))
}

/// The number of a field in JSON.
fn number(json: &str, field: &str) -> Option<f64> {
    let rest = json.split(&format!("\"{field}\":")).nth(1)?.trim_start();
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || "+-.eE".contains(*c)).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests_of_reading {
    use super::*;

    #[test]
    fn numbers_are_found_by_name() {
        let json = r#"{"trained_accuracy": 1, "test_accuracy": 0.975,"steps":440}"#;
        assert_eq!(number(json, "test_accuracy"), Some(0.975));
        assert_eq!(number(json, "steps"), Some(440.0));
        assert_eq!(number(json, "loss"), None);
        assert_eq!(number(r#"{"test_accuracy": "none"}"#, "test_accuracy"), None);
    }
}

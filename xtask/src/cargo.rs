//! Runs cargo, and reads from the output of tests what ran and what failed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::report::{Failure, Outcome};
use crate::workspace;

/// How many failed tests are named in the summary.
const NAMED: usize = 20;

/// The cargo that runs this, at the root of the repository.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(workspace::root());
    command
}

/// Runs cargo to success.
pub(crate) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let mut command = command(arguments);
    command.envs(environment.iter().copied());
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() {
        Ok(Outcome::Passed(String::new()))
    } else {
        Err(format!("cargo {} ended with {status}", arguments.join(" ")))
    }
}

/// Runs `cargo test` with these arguments and counts the tests; a run in which no test matched is a failure. The loader's own choice of layers is switched off:
/// the tests enable validation themselves.
pub(crate) fn test(arguments: &[&[&str]], environment: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let mut command = command(&["test", "--no-fail-fast"]);
    command.args(arguments.concat()).env_remove("VK_INSTANCE_LAYERS").envs(environment.iter().copied());
    command.stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start cargo: {error}"))?;
    let mut tally = Tally::default();
    for line in BufReader::new(child.stdout.take().ok_or("cargo has no output")?).split(b'\n') {
        let line = line.map_err(|error| format!("cannot read what cargo prints: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.read(&line);
    }
    let status = child.wait().map_err(|error| format!("cannot wait for cargo: {error}"))?;
    tally.judge(status.success())
}

/// What the test binaries said.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    ignored: usize,
    failed: Vec<String>,
    /// What had begun when its process ended; known where tests run one at a time.
    unfinished: Vec<String>,
}

impl Tally {
    fn read(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += count_before(result, " passed");
            self.ignored += count_before(result, " ignored");
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failed.push(name.to_owned());
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ")) {
            self.unfinished.push(name.to_owned());
        }
    }

    fn judge(self, success: bool) -> Result<Outcome, Failure> {
        if !self.unfinished.is_empty() {
            return Err(format!("the process ended in {}: see above", self.unfinished.join(", ")));
        }
        if !success && self.failed.is_empty() {
            return Err("did not build, or a test ended the whole process: see above".to_owned());
        }
        if !success {
            let rest = self.failed.len().saturating_sub(NAMED);
            let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
            let named: Vec<_> = self.failed.iter().take(NAMED).map(String::as_str).collect();
            return Err(format!("{} failed: {}{more}", self.failed.len(), named.join(", ")));
        }
        if self.passed == 0 {
            return Err(format!("no test ran ({} ignored): the filter matches none of them", self.ignored));
        }
        let ignored = if self.ignored == 0 { String::new() } else { format!(", {} ignored", self.ignored) };
        Ok(Outcome::Passed(format!("{} tests{ignored}", self.passed)))
    }
}

/// The number before a word, such as 12 in `ok. 12 passed; 0 failed`.
fn count_before(text: &str, word: &str) -> usize {
    let before = text.split(word).next().filter(|before| before.len() < text.len()).unwrap_or("");
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn counts_over_binaries() {
        let outcome = tally(&[
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        ])
        .judge(true);
        assert_eq!(outcome, Ok(Outcome::Passed("15 tests, 1 ignored".to_owned())));
    }

    #[test]
    fn failures_are_named() {
        let failed = tally(&["test a::b ... FAILED", "test c ... ok"]).judge(false);
        assert_eq!(failed, Err("1 failed: a::b".to_owned()));
        let ended = tally(&["test a::b ... ok", "test c::d ... ", "running 3 tests", "test e ... FAILED"])
            .judge(false);
        assert_eq!(ended, Err("the process ended in c::d: see above".to_owned()));
        assert!(tally(&[]).judge(false).unwrap_err().contains("did not build"));
    }

    #[test]
    fn a_run_without_tests_fails() {
        let none =
            "test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 31 filtered out; finished in 0.0s";
        for lines in [&[][..], &[none], &[none, none]] {
            let failure = tally(lines).judge(true).unwrap_err();
            assert!(failure.contains("no test ran"), "{failure}");
        }
    }
}

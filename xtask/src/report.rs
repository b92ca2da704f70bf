//! Runs stages, keeps what came of each, and sums up at the end.
//!
//! A stage never stops the ones after it: one run shows everything that is wrong.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

/// What came of a stage that did not fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well; the note, which may be empty, goes to the summary.
    Passed(String),
    /// It could not run here. Not a failure, but said loudly.
    NotRun(String),
}

/// A failure, in words.
pub(crate) type Failure = String;

struct Row {
    name: String,
    seconds: f64,
    result: Result<Outcome, Failure>,
}

/// The stages so far.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Runs a stage and records it.
    pub(crate) fn stage(&mut self, name: &str, run: impl FnOnce() -> Result<Outcome, Failure>) {
        println!("\n== {name}");
        let start = Instant::now();
        let result = run();
        let seconds = start.elapsed().as_secs_f64();
        match &result {
            Err(failure) => println!("== {name}: FAILED: {failure}"),
            Ok(Outcome::NotRun(reason)) => println!("== {name}: NOT RUN: {reason}"),
            Ok(Outcome::Passed(_)) => {}
        }
        self.rows.push(Row { name: name.to_owned(), seconds, result });
    }

    /// Prints the summary and returns the exit code.
    pub(crate) fn finish(self) -> ExitCode {
        let (text, ok) = self.summary();
        println!("\n{text}");
        if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// The table, what did not run, the failures, and whether there were none.
    fn summary(&self) -> (String, bool) {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let (mut table, mut not_run, mut failures) = (String::new(), String::new(), String::new());
        for Row { name, seconds, result } in &self.rows {
            let word = match result {
                Ok(Outcome::Passed(note)) => format!("ok       {note}"),
                Ok(Outcome::NotRun(reason)) => {
                    let _ = writeln!(not_run, "NOT RUN: {name}: {reason}");
                    "NOT RUN".to_owned()
                }
                Err(failure) => {
                    let _ = writeln!(failures, "FAILED: {name}: {failure}");
                    "FAILED".to_owned()
                }
            };
            let _ = writeln!(table, "{}", format!("{name:<width$} {seconds:>8.1} s  {word}").trim_end());
        }
        let total: f64 = self.rows.iter().map(|row| row.seconds).sum();
        let last = format!("{:<width$} {total:>8.1} s", "total");
        (format!("{table}{last}\n{not_run}{failures}").trim_end().to_owned(), failures.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_and_do_not_stop_the_rest() {
        let mut report = Report::default();
        report.stage("one", || Err("a test failed".to_owned()));
        report.stage("two", || Ok(Outcome::Passed("3 tests".to_owned())));
        let (text, ok) = report.summary();
        assert!(!ok);
        assert!(text.contains("FAILED: one: a test failed") && text.contains("ok       3 tests"), "{text}");
    }

    #[test]
    fn what_did_not_run_is_told_but_does_not_fail() {
        let mut report = Report::default();
        report.stage("lavapipe", || Ok(Outcome::NotRun("no driver".to_owned())));
        let (text, ok) = report.summary();
        assert!(ok && text.contains("NOT RUN: lavapipe: no driver"), "{text}");
    }
}

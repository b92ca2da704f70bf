//! House rules that the compiler and clippy do not know.
//!
//! Input: every text file of the repository. Output: findings with file and line. There is no list of exceptions.

mod layers;
mod links;
mod rust;
mod words;

use std::fmt;

use crate::report::{Failure, Outcome};
use crate::source::{self, Source};
use crate::workspace;

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Finding { path: source.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Checks the repository.
pub(crate) fn run() -> Result<Outcome, Failure> {
    let root = workspace::root();
    let sources = source::read_all(&root)?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(check).collect();
    findings.extend(sources.iter().flat_map(|source| links::check(source, &root)));
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    let long: Vec<_> = sources.iter().filter_map(rust::long_file).collect();
    long.iter().for_each(|note| println!("note: {note}"));
    if findings.is_empty() {
        Ok(Outcome::Passed(format!("{} files", sources.len())))
    } else {
        let first: Vec<String> = findings.iter().take(10).map(Finding::to_string).collect();
        Err(format!("{} findings:\n  {}", findings.len(), first.join("\n  ")))
    }
}

/// All findings in one file that need no other file.
fn check(source: &Source) -> Vec<Finding> {
    let mut findings = words::check(source);
    findings.extend(rust::check(source));
    findings.extend(layers::check(source));
    findings
}

#[cfg(test)]
mod tests;

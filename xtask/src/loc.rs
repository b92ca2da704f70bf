//! How much library code there is, per crate, against the budget.
//!
//! Counted are the lines of `crates/*/src` with code on them: no tests, no comments, no blank lines.

use std::collections::BTreeMap;

use crate::report::{Failure, Outcome};
use crate::source::{self, Source};
use crate::workspace;

/// Crates that are importers and tools; all others are the core.
const OUTER: [&str; 2] = ["import", "cli"];

const CORE_BUDGET: usize = 43_000;
const TOTAL_BUDGET: usize = 50_000;

/// Prints the table.
pub(crate) fn run() -> Result<Outcome, Failure> {
    let counts = count(&source::read_all(&workspace::root())?);
    for (name, lines) in &counts {
        println!("{name:<12} {lines:>7}");
    }
    let core: usize = counts.iter().filter(|(name, _)| !OUTER.contains(&name.as_str())).map(|(_, n)| n).sum();
    let total: usize = counts.values().sum();
    let note = format!("core {core} of {CORE_BUDGET}, total {total} of {TOTAL_BUDGET} lines");
    if core > CORE_BUDGET || total > TOTAL_BUDGET {
        return Err(format!("over the budget: {note}"));
    }
    Ok(Outcome::Passed(note))
}

/// Lines of library code by crate.
fn count(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for source in sources {
        if let Some(name) = source.library() {
            let lines = source.library_code.lines().filter(|line| !line.trim().is_empty()).count();
            *counts.entry(name.to_owned()).or_insert(0) += lines;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_library_code_counts() {
        let sources = [
            Source::new(
                "crates/a/src/lib.rs",
                "//! Docs.\n\nfn f() {\n    // why\n}\n#[cfg(test)]\nmod tests {\n}\n",
            ),
            Source::new("crates/a/src/tests.rs", "fn t() {}"),
            Source::new("crates/a/tests/t.rs", "fn t() {}"),
            Source::new("xtask/src/main.rs", "fn main() {}"),
        ];
        assert_eq!(count(&sources), BTreeMap::from([("a".to_owned(), 2)]));
    }
}

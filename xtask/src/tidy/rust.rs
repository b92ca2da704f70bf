//! Rules for Rust files: size, opening comment, names, unfinished code, `unsafe`.

use super::Finding;
use crate::source::{Source, line_of};

/// Lines after which a file is noted, and after which it is refused.
const SOFT_LINES: usize = 400;
const HARD_LINES: usize = 700;

/// Names that say nothing about what a module holds.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "misc", "helpers", "helper"];

/// Macros that stand for code not written.
const UNFINISHED: [&str; 2] = ["todo!", "unimplemented!"];

/// The only places where `unsafe` may be.
const UNSAFE_PLACES: [&str; 2] = ["crates/gpu/", "crates/import/src/mmap.rs"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut add = |line, message: String| findings.push(Finding::new(source, line, message));
    let lines = source.text.lines().count();
    if lines > HARD_LINES {
        add(HARD_LINES + 1, format!("{lines} lines: a file has at most {HARD_LINES}"));
    }
    if source.library().is_some() && !source.text.starts_with("//!") {
        add(1, "does not open with `//!`: say what the file does".to_owned());
    }
    for part in source.path.trim_end_matches(".rs").split('/') {
        if EMPTY_NAMES.contains(&part) {
            add(1, format!("`{part}` says nothing: name a module by what it does"));
        }
    }
    for name in UNFINISHED {
        for line in lines_with(&source.code, name) {
            add(line, format!("`{name}`: finish the work or leave it out"));
        }
    }
    if !UNSAFE_PLACES.iter().any(|place| source.path.starts_with(place)) {
        for line in lines_with(&source.code, "unsafe") {
            add(line, format!("`unsafe` is allowed in {} only", UNSAFE_PLACES.join(" and ")));
        }
    }
    findings
}

/// A note on a file that is longer than it should be.
pub(super) fn long_file(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    let long = source.is_rust() && lines > SOFT_LINES;
    long.then(|| format!("{}: {lines} lines, more than {SOFT_LINES}", source.path))
}

/// The lines on which a word stands in code.
pub(super) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let outside = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let bytes = code.as_bytes();
    let whole = |&(at, _): &(usize, &str)| {
        (at == 0 || outside(bytes.get(at - 1))) && outside(bytes.get(at + word.len()))
    };
    code.match_indices(word).filter(whole).map(|(at, _)| line_of(code, at)).collect()
}

//! Words that must not appear: work left behind, and the machine of whoever wrote the file.

use super::Finding;
use crate::source::{Source, line_of};

/// Marks of unfinished work, as whole words in any text. Written so that this file passes its own check.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Beginnings of paths that exist on somebody's machine only.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Hosts that a registry is served from: which one is the business of each machine.
const REGISTRY_HOSTS: [&str; 3] =
    [concat!("static.", "crates.io"), concat!("index.", "crates.io"), concat!("files.", "pythonhosted.org")];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let mut add = |message: String| findings.push(Finding::new(source, number + 1, message));
        for mark in MARKS {
            if has_word(line, mark) {
                add(format!("{mark}: finish the work or leave it out"));
            }
        }
        for path in MACHINE_PATHS {
            if starts_path(line, path) {
                add(format!("the path {path} exists on one machine only"));
            }
        }
        if let Some(host) = REGISTRY_HOSTS.iter().find(|host| line.contains(*host)) {
            add(format!("names the registry host {host}"));
        }
    }
    findings.extend(registry_settings(source));
    findings
}

/// Where packages come from is not a setting of the repository.
fn registry_settings(source: &Source) -> Option<Finding> {
    if !source.path.starts_with(".cargo/") {
        return None;
    }
    let position = source.text.find("[source").or_else(|| source.text.find("[registr"))?;
    Some(Finding::new(source, line_of(&source.text, position), "sets a package registry"))
}

fn has_word(line: &str, word: &str) -> bool {
    let outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(word).any(|(at, _)| {
        outside(line[..at].chars().next_back()) && outside(line[at + word.len()..].chars().next())
    })
}

/// Whether the path starts here, and is not the middle of a longer one or of an address.
fn starts_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"._-~*}$/".contains(c))
    })
}

//! The layers: which crate may use which, that the pure ones touch nothing outside, and who may look into operations.

use super::Finding;
use super::rust::lines_with;
use crate::source::{Source, line_of};

/// Each manifest with the crates of the workspace that it may name.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("crates/ir", &[]),
    ("crates/kernel", &["ir"]),
    ("crates/compile", &["ir", "kernel"]),
    ("crates/gpu", &["ir", "compile"]),
    ("crates/import", &["ir"]),
    ("crates/griffinfly", &["ir", "kernel", "compile", "gpu", "import"]),
    ("crates/cli", &["griffinfly"]),
    ("bench", &["griffinfly"]),
    ("web", &["griffinfly"]),
    ("web/bindgen", &[]),
    ("xtask", &[]),
];

/// Crates without GPU, files, environment or processes.
const PURE: [&str; 3] = ["ir", "kernel", "compile"];

/// What pure crates may not depend on.
const IMPURE_DEPENDENCIES: [&str; 4] = ["ash", "wgpu", "memmap2", "tokenizers"];

/// The modules of `std` that pure crates may not use.
const IMPURE_MODULES: [&str; 4] = ["env", "fs", "net", "process"];

/// The window into operations, and the only places that may name it: every other pass leaves what an operation means to the
/// operation's own file.
const OPERATION_VIEW: &str = "RuleView";
const OPERATION_VIEW_PLACES: [&str; 2] = ["crates/ir/src/", "crates/compile/src/rewrite/"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = manifest(source);
    findings.extend(operation_view(source));
    if source.library().is_some_and(|name| PURE.contains(&name)) {
        findings.extend(pure_code(source));
    }
    findings
}

fn manifest(source: &Source) -> Vec<Finding> {
    let Some(place) = source.path.strip_suffix("/Cargo.toml") else {
        return Vec::new();
    };
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == place) else {
        return vec![Finding::new(source, 1, "is not in the table of layers: add it there")];
    };
    let pure = place.strip_prefix("crates/").is_some_and(|name| PURE.contains(&name));
    let mut findings = Vec::new();
    for (line, name) in dependencies(&source.text) {
        let ours = match name.strip_prefix("griffinfly") {
            Some("") => Some("griffinfly"),
            Some(rest) => rest.strip_prefix('-'),
            None => None,
        };
        if ours.is_some_and(|ours| !allowed.contains(&ours)) {
            findings.push(Finding::new(source, line, format!("{place} may not use {name}")));
        }
        if place == "xtask" {
            findings.push(Finding::new(source, line, "xtask uses the standard library only"));
        }
        if pure && IMPURE_DEPENDENCIES.contains(&name) {
            findings.push(Finding::new(source, line, format!("{place} is pure and may not use {name}")));
        }
    }
    findings
}

/// The dependencies of a manifest, of every kind, with their lines.
fn dependencies(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            // A section of its own: `[dependencies.name]`.
            if let Some((_, name)) = section.split_once("dependencies.") {
                found.push((number + 1, name));
            }
        } else if inside && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or("").trim_matches('"');
            if !name.is_empty() {
                found.push((number + 1, name));
            }
        }
    }
    found
}

fn operation_view(source: &Source) -> Vec<Finding> {
    if OPERATION_VIEW_PLACES.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    let message = format!("`{OPERATION_VIEW}` is for {} only", OPERATION_VIEW_PLACES.join(" and "));
    lines_with(&source.code, OPERATION_VIEW)
        .into_iter()
        .map(|l| Finding::new(source, l, message.as_str()))
        .collect()
}

fn pure_code(source: &Source) -> Vec<Finding> {
    let code = &source.library_code;
    let mut findings = Vec::new();
    for (at, _) in code.match_indices("std::") {
        for name in modules_at(&code[at + "std::".len()..]) {
            if IMPURE_MODULES.contains(&name) {
                let message = format!("`std::{name}`: ir, kernel and compile are pure");
                findings.push(Finding::new(source, line_of(code, at), message));
            }
        }
    }
    findings
}

/// The modules named right after `std::`: one, or the heads of a group in braces.
fn modules_at(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![head(rest)];
    };
    let (mut depth, mut start, mut heads) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                heads.push(head(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
        if c == '}' && start == at + 1 {
            break;
        }
    }
    heads
}

fn head(path: &str) -> &str {
    let path = path.trim_start();
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    &path[..end]
}

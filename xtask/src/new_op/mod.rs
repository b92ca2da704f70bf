//! Begins a new operation: writes its file and says which lines must be added elsewhere.
//!
//! Input: a family (a directory of `crates/ir/src/ops`) and a name in snake case. Output: a file that holds an operation
//! with every section one has, and the list of places. Nothing that exists is changed.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::report::Failure;
use crate::source;

/// Where the operations are.
const OPS: &str = "crates/ir/src/ops";

/// The file of an operation; the names stand for its own in snake and in camel case.
const SKELETON: &str = include_str!("skeleton.txt");
const NAME: &str = "__NAME__";
const TYPE: &str = "__TYPE__";

/// Words that cannot name a module or a method.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Writes the file and gives the list of places.
pub(crate) fn run(root: &Path, family: &str, name: &str) -> Result<String, Failure> {
    let ops = root.join(OPS);
    check_family(&ops, family)?;
    let camel = camel_case(name)?;
    check_unused(root, name, &camel)?;
    let path = ops.join(family).join(format!("{name}.rs"));
    let text = SKELETON.replace(TYPE, &camel).replace(NAME, name);
    let wrong = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    Ok(places(family, name, &camel))
}

/// What is left to do by hand.
fn places(family: &str, name: &str, camel: &str) -> String {
    let rows = |rows: &[[String; 2]]| -> String {
        let width = rows.iter().map(|[place, _]| place.len()).max().unwrap_or(0);
        rows.iter().map(|[place, what]| format!("   {place:<width$}   {what}\n")).collect()
    };
    let lines = rows(&[
        [format!("{OPS}/{family}/mod.rs"), format!("mod {name};")],
        [format!("{OPS}/{family}/mod.rs"), format!("pub(crate) use {name}::{camel};")],
        [format!("{OPS}/mod.rs, in `ops!`"), format!("{camel} = \"{name}\": {family}::{camel},")],
    ]);
    let perhaps = rows(&[
        ["`moves` in crates/ir/src/graph/ids.rs".into(), "it moves elements unchanged, ids too".into()],
        [format!("`RuleView` in {OPS}/view.rs"), "rules of rewriting look at its attributes".into()],
        [format!("`is_without_gradient` in {OPS}/sample.rs"), "it has no gradient on purpose".into()],
    ]);
    format!(
        "\
wrote {OPS}/{family}/{name}.rs, an operation that squares its operand

1. Add these lines:
{lines}2. In the file, put the operation's own formulas in place of the square: infer, gradient, reference, lower, samples,
   builder methods. The reference is written independently of the lowering.
3. Only where it applies:
{perhaps}4. cargo fmt, then cargo test -p griffinfly-ir: the op suite runs the samples."
    )
}

/// A family is a directory with a `mod.rs`.
fn check_family(ops: &Path, family: &str) -> Result<(), Failure> {
    let entries = fs::read_dir(ops).map_err(|error| format!("cannot read {}: {error}", ops.display()))?;
    let mut families: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("mod.rs").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    families.sort();
    if families.iter().any(|known| known == family) {
        return Ok(());
    }
    Err(format!("'{family}' is no family of operations: choose one of {}", families.join(", ")))
}

/// The name as a type: `max_pool2d` gives `MaxPool2d`. Only words of small letters and digits, joined by single `_`.
fn camel_case(name: &str) -> Result<String, Failure> {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !starts || !name.split('_').all(word) {
        return Err(format!(
            "'{name}' is no name: use small letters, digits and single `_`, as in max_pool2d"
        ));
    }
    if KEYWORDS.contains(&name) {
        return Err(format!("'{name}' is a word of the Rust language: choose another name"));
    }
    let upper = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    Ok(name.split('_').map(upper).collect())
}

/// No operation, file or builder method may have the name.
fn check_unused(root: &Path, name: &str, camel: &str) -> Result<(), Failure> {
    let list = format!("{OPS}/mod.rs");
    let method = |text: &str| {
        ["&mut self", "&self", "self"].iter().any(|first| text.contains(&format!(" fn {name}({first}")))
    };
    for source in source::read_all(&root.join("crates/ir"))? {
        let path = format!("crates/ir/{}", source.path);
        let file = source.path.strip_prefix("src/ops/").and_then(|inner| inner.rsplit('/').next());
        if file == Some(&format!("{name}.rs")) {
            return Err(format!("'{name}' is there already: {path}"));
        }
        let row = source.text.contains(&format!("= \"{name}\":"))
            || source.text.lines().any(|line| line.trim_start().starts_with(&format!("{camel} = \"")));
        if path == list && row {
            return Err(format!("'{name}' or {camel} is in the list of operations already: {path}"));
        }
        if method(&source.code) {
            return Err(format!("the method `{name}` is there already: {path}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

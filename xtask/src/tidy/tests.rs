//! Each rule finds what it forbids and nothing else.

use super::*;

/// The messages for a file of this text.
fn messages(path: &str, text: &str) -> Vec<String> {
    check(&Source::new(path, text)).iter().map(Finding::to_string).collect()
}

fn assert_clean(path: &str, text: &str) {
    assert_eq!(messages(path, text), [""; 0], "{path}");
}

/// The only finding's line and a part of its message.
fn assert_finds(path: &str, text: &str, line: usize, part: &str) {
    let found = messages(path, text);
    let [message] = found.as_slice() else { panic!("{path}: {found:?}") };
    assert!(message.starts_with(&format!("{path}:{line}: ")) && message.contains(part), "{message}");
}

const FILE: &str = "crates/ir/src/a.rs";

#[test]
fn unfinished_work() {
    for mark in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        assert_finds(FILE, &format!("//! A.\n// {mark}: later"), 2, mark);
        assert_finds("README.md", mark, 1, mark);
        assert_clean(FILE, &format!("//! A.\nconst {mark}S: u8 = 1;"));
    }
    assert_finds(FILE, "//! A.\nfn f() {\n    todo!()\n}", 3, "todo!");
    assert_finds(FILE, "//! A.\nfn f() { unimplemented!(\"x\") }", 2, "unimplemented!");
    assert_clean(FILE, "//! A. Not `todo!()`.\nconst A: &str = \"todo!()\";");
}

#[test]
fn machine_paths_and_hosts() {
    let path = concat!("/wo", "rk/main");
    assert_finds("README.md", &format!("see {path}"), 1, "one machine");
    assert_finds(FILE, &format!("//! A.\nconst A: &str = \"{path}\";"), 2, "one machine");
    assert_clean("README.md", &format!("https://example.org{path} and net{path}"));
    assert_finds("README.md", concat!("https://static.", "crates.io/x"), 1, "registry host");
    assert_finds(".cargo/config.toml", "[alias]\n[source.x]", 2, "registry");
    assert_clean("README.md", "https://crates.io/crates/ash");
}

#[test]
fn files() {
    assert_finds(FILE, "fn f() {}", 1, "`//!`");
    assert_clean("crates/ir/tests/a.rs", "fn f() {}");
    let line = "//! A.\n";
    assert_clean(FILE, &line.repeat(700));
    assert_finds(FILE, &line.repeat(701), 701, "701 lines");
    assert_eq!(rust::long_file(&Source::new(FILE, &line.repeat(400))), None);
    assert!(rust::long_file(&Source::new(FILE, &line.repeat(401))).is_some());
    for name in ["utils.rs", "common/mod.rs", "misc.rs", "x/helpers.rs"] {
        assert_finds(&format!("crates/ir/src/{name}"), line, 1, "says nothing");
    }
    assert_clean("crates/ir/src/commons.rs", line);
}

#[test]
fn unsafe_code() {
    let text = "//! A, without `unsafe`.\n#![deny(unsafe_code)]\nfn f() { unsafe {} }";
    assert_finds(FILE, text, 3, "`unsafe`");
    assert_finds("crates/import/src/lib.rs", text, 3, "`unsafe`");
    assert_clean("crates/gpu/src/vulkan/memory.rs", text);
    assert_clean("crates/import/src/mmap.rs", text);
}

#[test]
fn layers_of_manifests() {
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\n# why\ngriffinfly-compile.workspace = true\n";
    assert_finds("crates/kernel/Cargo.toml", manifest, 6, "may not use griffinfly-compile");
    assert_clean("crates/gpu/Cargo.toml", manifest);
    assert_finds("crates/cli/Cargo.toml", manifest, 6, "may not use");
    let section = "[dev-dependencies.griffinfly]\nworkspace = true";
    assert_finds("crates/gpu/Cargo.toml", section, 1, "may not use griffinfly");
    assert_clean("bench/Cargo.toml", section);
    assert_finds("crates/ir/Cargo.toml", "[dependencies]\nash = \"1\"", 2, "pure");
    assert_finds("xtask/Cargo.toml", "[dependencies]\nserde = \"1\"", 2, "standard library");
    assert_finds("crates/new/Cargo.toml", "", 1, "table of layers");
    assert_clean("Cargo.toml", "[workspace.dependencies]\nash = \"1\"");
}

#[test]
fn the_view_into_operations() {
    let text = "//! A.\nuse griffinfly_ir::ops::RuleView;\n// RuleView\nstruct RuleViews;";
    assert_finds("crates/compile/src/lower/mod.rs", text, 2, "RuleView");
    assert_finds("crates/gpu/tests/a.rs", text, 2, "RuleView");
    assert_clean("crates/compile/src/rewrite/mod.rs", text);
    assert_clean("crates/ir/src/ops/mod.rs", text);
}

#[test]
fn purity_of_code() {
    assert_finds(FILE, "//! A.\nuse std::fs::File;", 2, "std::fs");
    assert_finds(FILE, "//! A.\nfn f() { std::env::var(\"A\"); }", 2, "std::env");
    assert_finds(
        FILE,
        "//! A.\nuse std::{collections::{BTreeMap, BTreeSet}, process, rc::Rc};",
        2,
        "std::process",
    );
    assert_clean(FILE, "//! A. No std::fs.\nuse std::{fmt, sync::{Arc, mpsc}};\nuse std::iter;\nmod fs {}");
    assert_clean(FILE, "//! A.\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}");
    assert_clean("crates/ir/src/a/tests.rs", "//! A.\nuse std::fs;");
    assert_clean("crates/gpu/src/cache.rs", "//! A.\nuse std::fs;");
}

#[test]
fn links() {
    let text = "[a](A.md#x) [b](https://example.org) [c](#d)\n```\n[e](F.md)\n```\n![g](h/i.png \"j\")";
    assert_eq!(links::relative_links(text), [(1, "A.md"), (5, "h/i.png")]);
    let root = workspace::root();
    let found = links::check(&Source::new("docs/x.md", "[a](../Cargo.toml) [b](absent.md)"), &root);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("absent.md"));
}

//! The file is whole, and nothing that exists is touched.

use std::path::PathBuf;

use super::*;
use crate::workspace;

/// A copy of what an operation is registered in, removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("griffinfly-xtask-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for file in ["mod.rs", "rule.rs", "elementwise/mod.rs", "elementwise/gelu.rs", "pool/mod.rs"] {
            let (from, to) = (workspace::root().join(OPS).join(file), root.join(OPS).join(file));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        Tree(root)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(OPS).join(file)).unwrap()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_file_has_every_section() {
    let tree = Tree::new("sections");
    let places = run(&tree.0, "elementwise", "soft_sign2").unwrap();
    let text = tree.read("elementwise/soft_sign2.rs");
    let sections =
        ["pub(crate) struct SoftSign2 {}", "impl Rule for SoftSign2 {", "impl Graph {", "impl Value {"];
    for part in sections {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(text.matches("pub fn soft_sign2(").count(), 2);
    assert!(text.starts_with("//! ") && text.ends_with("}\n") && !text.contains("__"), "{text}");
    for (open, close) in [("{", "}"), ("(", ")"), ("[", "]")] {
        assert_eq!(text.matches(open).count(), text.matches(close).count(), "{open}{close}");
    }
    for line in [
        "elementwise/mod.rs  ",
        "   mod soft_sign2;",
        "pub(crate) use soft_sign2::SoftSign2;",
        "SoftSign2 = \"soft_sign2\": elementwise::SoftSign2,",
    ] {
        assert!(places.contains(line), "{places}");
    }
}

/// What every operation must say, as the trait has it now: a method without a body.
#[test]
fn the_file_says_all_that_is_required() {
    let tree = Tree::new("required");
    let rules = tree.read("rule.rs");
    let required = rules.split_once("trait Rule").unwrap().1.split_once("\n}").unwrap().0;
    let methods = required.split("fn ").skip(1).filter(|method| !method.contains('{'));
    let names: Vec<&str> = methods.filter_map(|method| method.split(['(', '<']).next()).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(SKELETON.contains(&format!("    fn {name}")), "{name}");
    }
}

#[test]
fn the_registry_looks_as_the_places_say() {
    let tree = Tree::new("registry");
    assert!(tree.read("mod.rs").contains("    Gelu = \"gelu\": elementwise::Gelu,\n"));
    let family = tree.read("elementwise/mod.rs");
    assert!(family.contains("\nmod gelu;\n") && family.contains("\npub(crate) use gelu::Gelu;\n"));
}

#[test]
fn what_exists_is_refused_and_kept() {
    let tree = Tree::new("existing");
    let before = tree.read("elementwise/gelu.rs");
    for (name, part) in [
        ("gelu", "is there already: crates/ir/src/ops/elementwise/gelu.rs"),
        ("matmul", "in the list of operations already"),
        ("gelu_tanh", "the method `gelu_tanh`"),
    ] {
        for family in ["elementwise", "pool"] {
            let error = run(&tree.0, family, name).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
    assert_eq!(tree.read("elementwise/gelu.rs"), before);
    run(&tree.0, "pool", "cube").unwrap();
    assert!(run(&tree.0, "elementwise", "cube").unwrap_err().contains("ops/pool/cube.rs"));
    assert!(!tree.0.join(OPS).join("elementwise/cube.rs").exists());
}

#[test]
fn names_that_are_none_are_refused() {
    let tree = Tree::new("names");
    for name in ["", "Cube", "2d", "_x", "x_", "a__b", "../x", "a-b", "größe", "a b"] {
        assert!(run(&tree.0, "pool", name).unwrap_err().contains("is no name"), "{name}");
    }
    assert!(run(&tree.0, "pool", "match").unwrap_err().contains("Rust language"));
    for family in ["", "poole", "..", "mod.rs"] {
        let error = run(&tree.0, family, "cube").unwrap_err();
        assert!(error.contains("choose one of elementwise, pool"), "{error}");
    }
    assert_eq!(camel_case("max_pool2d").unwrap(), "MaxPool2d");
}

//! The examples run, and one is the text of the README.

#[path = "../../examples/digits.rs"]
#[allow(unreachable_pub, missing_docs, reason = "it is written as a program of its own")]
mod digits;

#[path = "../../examples/separable.rs"]
#[allow(unreachable_pub, missing_docs, reason = "it is written as a program of its own")]
pub(crate) mod separable;

#[test]
fn the_examples_run() {
    digits::main().unwrap();
    separable::main().unwrap();
}

#[test]
fn the_readme_shows_the_example() {
    let read =
        |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (readme, example) = (read("../../README.md"), read("examples/separable.rs"));
    let code = example.split_once("\n\n").unwrap().1.trim_end();
    assert!(readme.contains(code), "copy crates/griffinfly/examples/separable.rs into README.md");
}

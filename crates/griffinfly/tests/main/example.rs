//! The example is the text of the README, and runs.

#[path = "../../examples/digits.rs"]
#[allow(unreachable_pub, missing_docs, reason = "it is written as a program of its own")]
mod digits;

#[test]
fn the_example_runs() {
    digits::main().unwrap();
}

#[test]
fn the_readme_shows_the_example() {
    let read =
        |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (readme, example) = (read("../../README.md"), read("examples/digits.rs"));
    let code = example.split_once("\n\n").unwrap().1.trim_end();
    assert!(readme.contains(code), "copy crates/griffinfly/examples/digits.rs into README.md");
}

//! Golden texts: what small programs compile to. `GRIFFINFLY_BLESS=1` writes them anew.

use crate::digits::digits;
use crate::targets::lavapipe;
use griffinfly_compile::program::Program;
use griffinfly_compile::rewrite::{Stage, run};
use griffinfly_compile::{Options, compile, loops, optimised};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::optimizer::Optimizer;
use griffinfly_ir::target::Target;
use std::fmt::Write as _;
use std::path::Path;

/// The text with the line numbers of source files left out: they say nothing about the program.
fn without_lines(text: &str) -> String {
    let mut parts = text.split(".rs:");
    let mut out = parts.next().unwrap_or("").to_string();
    for part in parts {
        let _ = write!(out, ".rs{}", part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// Compares a text with the golden of this name, or writes it.
fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    let text = without_lines(text);
    if std::env::var_os("GRIFFINFLY_BLESS").is_some_and(|v| v == "1") {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("makes the directory");
        std::fs::write(&path, &text).expect("writes the golden");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let mut lines = golden.lines().zip(text.lines()).enumerate();
    let differ = lines.find(|(_, (was, is))| was != is);
    assert_eq!(
        differ, None,
        "a line (from 0), what it was and is in {name}. If this is meant: GRIFFINFLY_BLESS=1"
    );
    let (was, is) = (golden.lines().count(), text.lines().count());
    assert_eq!(was, is, "{name} has another number of lines. If this is meant: GRIFFINFLY_BLESS=1");
}

/// One dense layer with a softmax written out: small enough to read every line of its program.
fn dense() -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", [4, 6]);
    let (w, b) = (g.parameter("w", [3, 6], Init::ZEROS), g.parameter("b", [3], Init::ZEROS));
    g.scoped("dense", |g| {
        let y = g.matmul_with(x, w, [false, true]);
        let y = g.add(y, b);
        let e = g.exp(y);
        let sum = g.sum_keep(e, &[1]);
        let p = g.div(e, sum);
        g.output("p", p);
    });
    g
}

#[test]
fn golden_dense() {
    let (g, target, options) = (dense(), Target::host(), Options::default());
    let mut text = format!("graph\n{g}\n");
    let _ = writeln!(text, "optimised\n{}", optimised(&g, &options).expect("optimises"));
    let _ = writeln!(text, "loops\n{}", loops(&g, &target, &options).expect("lowers"));
    let _ = writeln!(text, "plan\n{}", compile(&g, &target, &options).expect("compiles"));
    assert_golden("dense.txt", &text);
}

#[test]
fn golden_digits() {
    let g = digits(16, &Optimizer::adam(1e-3));
    let expanded = run(&g, Stage::Simplify).0.expanded();
    let mut text = format!("rules before expansion\n{}", run(&g, Stage::Simplify).1);
    let _ = write!(text, "rules after expansion\n{}", run(&expanded, Stage::Simplify).1);
    let program = compile(&g, &Target::host(), &Options::default()).expect("compiles");
    let _ = write!(text, "program\n{}", program.summary());
    assert_golden("digits.txt", &text);
}

#[test]
fn line_numbers_are_left_out() {
    assert_eq!(without_lines("a@b.rs:12 c.rs:3\n.rs:"), "a@b.rs c.rs\n.rs");
}

/// What the device is given to do, level by level: the kernel instance and what it computes.
fn levels(p: &Program) -> String {
    let mut text = String::new();
    for section in &p.sections {
        let _ = writeln!(text, "section {:?}", section.kind);
        for (l, level) in section.levels.iter().enumerate() {
            let _ = writeln!(text, "  level {l}");
            for id in level {
                let d = &p.dispatches[id.index()];
                let _ = writeln!(text, "    {} # {}", d.instance, d.provenance.join(" "));
            }
        }
    }
    text
}

/// The training program of the digits network for a Vulkan driver: its size, and every dispatch.
#[test]
fn golden_digits_vulkan() {
    let g = digits(64, &Optimizer::adamw(1e-3));
    let p = compile(&g, &lavapipe(), &Options::default()).expect("compiles");
    assert!(p.dispatches.len() <= 30, "{} dispatches\n{p}", p.dispatches.len());
    assert_golden("digits_vulkan.txt", &format!("{}{}", p.summary(), levels(&p)));
}

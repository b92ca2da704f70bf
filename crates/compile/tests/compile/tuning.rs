//! Choices in compilation: problems are found once, entries change instances and nothing else.

use griffinfly_compile::program::Program;
use griffinfly_compile::tuning::{problems, program};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::target::Target;

/// Two equal products, one after the other, and one of another size.
fn graph() -> Graph {
    let mut g = Graph::new();
    let (x, w, v) = (g.input("x", [64, 96]), g.input("w", [96, 96]), g.input("v", [96, 40]));
    let h = g.matmul(x, w);
    let h = g.matmul(h, w);
    let y = g.matmul(h, v);
    g.output("y", y);
    g
}

fn instances(p: &Program) -> Vec<&str> {
    p.dispatches.iter().map(|d| d.instance.as_str()).collect()
}

#[test]
fn problems_are_distinct_and_compile_alone() {
    let target = Target::minimal_vulkan();
    let all = problems(&graph(), &target, &Options::default()).expect("compiles");
    let keys: Vec<&str> = all.iter().map(|p| p.key.as_str()).collect();
    assert_eq!(keys, ["contract b1 m64 n96 k*r k96 e0 f32", "contract b1 m64 n40 k*r k96 e0 f32"]);
    let alone = program(&all[0], "direct/4x4 split2", &target).expect("compiles");
    assert_eq!(alone.verify(), Vec::<String>::new());
    assert_eq!(alone.dispatches.len(), 2, "a product and the sum of its parts");
    assert!(program(&all[0], "direct/5x5", &target).is_err());
}

#[test]
fn entries_change_the_instances_of_their_problem() {
    let (g, target) = (graph(), Target::minimal_vulkan());
    let mut options = Options::default();
    let default = compile(&g, &target, &options).expect("compiles");
    options.choices.insert("contract b1 m64 n40 k*r k96 e0 f32", "16x64x32/4x4");
    let changed = compile(&g, &target, &options).expect("compiles");
    let (before, after) = (instances(&default), instances(&changed));
    assert_eq!(before.iter().filter(|name| name.contains("16x64x32/4x4")).count(), 0);
    assert_eq!(after.iter().filter(|name| name.contains("16x64x32/4x4")).count(), 1);
    options.choices.insert("contract b1 m64 n40 k*r k96 e0 f32", "no tiling");
    assert_eq!(compile(&g, &target, &options).expect("compiles"), default);
}

//! Long graphs: compilation takes time in proportion to the nodes.

use super::targets::lavapipe;
use griffinfly_compile::{Options, compile, loops, optimised};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::optimizer::{Optimizer, attach};
use griffinfly_ir::target::Target;
use std::time::{Duration, Instant};

/// A training step of residual layers, `x + relu(x w + b)` each, until the graph has about this many nodes.
fn chain(nodes: usize) -> Graph {
    let built = |layers: usize| {
        let mut g = Graph::new();
        let mut x = g.input("x", [8, 16]);
        for i in 0..layers {
            let w = g.parameter(&format!("w{i}"), [16, 16], Init::ZEROS);
            let b = g.parameter(&format!("b{i}"), [16], Init::ZEROS);
            x = g.scoped(&format!("layer{i}"), |g| {
                let h = g.matmul_with(x, w, [false, true]);
                let h = g.add(h, b);
                let h = g.relu(h);
                g.add(x, h)
            });
        }
        let square = g.mul(x, x);
        let loss = g.mean_all(square);
        g.output("loss", loss);
        attach(&mut g, &Optimizer::momentum(0.1, 0.9), loss).expect("differentiable");
        g
    };
    let per_layer = (built(20).nodes().len() - built(10).nodes().len()) / 10;
    built(nodes / per_layer)
}

/// Time of rewriting, of lowering and fusion after it, and of everything.
fn times(g: &Graph, target: &Target) -> [Duration; 3] {
    let options = Options::default();
    let start = Instant::now();
    optimised(g, &options).expect("optimises");
    let rewritten = start.elapsed();
    let start = Instant::now();
    loops(g, target, &options).expect("fuses");
    let fused = start.elapsed().saturating_sub(rewritten);
    let start = Instant::now();
    let p = compile(g, target, &options).expect("compiles");
    let all = start.elapsed();
    println!(
        "{} nodes for {}: {} dispatches, {} levels: rewriting {rewritten:.2?}, fusion {fused:.2?}, all {all:.2?}",
        g.nodes().len(),
        target.name,
        p.dispatches.len(),
        p.level_count()
    );
    [rewritten, fused, all]
}

/// Joins that look at all loops, with a copy of them to go back to, took about a minute at 3,000 nodes.
#[test]
#[ignore = "measures"]
fn measure_long_graphs() {
    for target in [Target::host(), lavapipe()] {
        times(&chain(1000), &target);
        times(&chain(3000), &target);
    }
}

#[test]
fn a_thousand_nodes_compile() {
    let program = compile(&chain(1000), &lavapipe(), &Options::default()).expect("compiles");
    assert!(program.verify().is_empty() && program.dispatches.len() > 100, "{}", program.dispatches.len());
}

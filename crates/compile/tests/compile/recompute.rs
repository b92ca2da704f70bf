//! What the backward pass computes again instead of keeping.

use griffinfly_compile::lower::{LoopGraph, LoopNode};
use griffinfly_compile::{Options, loops};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::loops::Archetype;
use griffinfly_ir::target::Target;

/// `sum(f(x w) v)` with the gradients of x, w and v.
fn between_products(f: impl Fn(&mut Graph, Value) -> Value) -> LoopGraph {
    let mut g = Graph::new();
    let (x, w, v) = (g.input("x", [16, 24]), g.input("w", [24, 40]), g.input("v", [40, 8]));
    let h = g.matmul(x, w);
    let h = f(&mut g, h);
    let y = g.matmul(h, v);
    let yy = g.mul(y, y);
    let loss = g.mean_all(yy);
    g.output("loss", loss);
    for (i, d) in gradients(&mut g, loss, &[x, w, v]).expect("differentiable").into_iter().enumerate() {
        g.output(&format!("d{i}"), d);
    }
    loops(&g, &Target::host(), &Options::default()).expect("compiles")
}

fn products(made: &LoopGraph) -> Vec<&LoopNode> {
    made.loops.iter().filter(|n| n.l.archetype() == Archetype::Contract).collect()
}

#[test]
fn an_activation_keeps_its_operand_and_its_result() {
    let activations: [fn(&mut Graph, Value) -> Value; 4] =
        [|g, x| g.gelu_tanh(x), |g, x| g.gelu(x), |g, x| x.silu(g), |g, x| g.softplus(x)];
    for f in activations {
        let made = between_products(f);
        let products = products(&made);
        // What the forward pass writes: x w and the activation of it.
        assert_eq!(products[0].outputs.len(), 2, "{made}");
    }
}

#[test]
fn what_is_kept_anyway_is_not_computed_again() {
    let made = between_products(|g, x| {
        let y = g.gelu(x);
        g.output("kept", y);
        g.exp(y)
    });
    let products = products(&made);
    // The pre-activation, the output, and the exponential that the product reads: nothing else.
    assert_eq!(products[0].outputs.len(), 3, "{made}");
}

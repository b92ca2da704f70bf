//! Convolutions whose products go by taps, then channels.

use crate::terms::compared;
use griffinfly_compile::lower::{LoopGraph, LoopNode};
use griffinfly_compile::program::SectionKind;
use griffinfly_compile::{Options, compile, loops};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::loops::{Contract, LoopKind};
use griffinfly_ir::ops::Window2d;
use griffinfly_ir::optimizer::{Optimizer, attach};
use griffinfly_ir::target::Target;

/// Products of the contractions over channels and taps.
fn products(made: &LoopGraph) -> Vec<Vec<usize>> {
    let of = |node: &LoopNode| match &node.l.kind {
        LoopKind::Contract(Contract { k, .. }) if k.len() == 3 => Some(k.clone()),
        _ => None,
    };
    made.loops.iter().filter_map(of).collect()
}

/// Loops that copy weights.
fn copies(made: &LoopGraph) -> usize {
    made.loops.iter().filter(|node| node.labels.iter().any(|label| label.ends_with(" by taps"))).count()
}

#[test]
fn products_go_by_taps_and_gradients_share_the_copy() {
    let windows = [
        (Window2d::strided(1).padded(1), 1),
        (Window2d::strided(2).padded(1), 1),
        (Window2d { dilation: [2, 1], ..Window2d::strided(1).padded(1) }, 1),
        (Window2d::strided(1), 2),
    ];
    for (window, groups) in windows {
        let mut g = Graph::new();
        let x = g.input("x", [2, 32 * groups, 7, 6]);
        let w = g.parameter("w", [64 * groups, 32, 3, 2], Init::Normal(0.1.into()));
        let y = g.conv2d_grouped(x, w, window, groups);
        let y = g.relu(y);
        let square = g.mul(y, y);
        let loss = g.mean_all(square);
        g.output("y", y);
        for (name, d) in
            ["dx", "dw"].into_iter().zip(gradients(&mut g, loss, &[x, w]).expect("differentiable"))
        {
            g.output(name, d);
        }
        let made = compared(&g);
        assert_eq!(copies(&made), 1, "{made}");
        let all = products(&made);
        let by_taps = |k: &&Vec<usize>| k[2] == 32 || k[2] == 64;
        assert_eq!(all.iter().filter(by_taps).count(), 2, "{all:?}");
    }
}

#[test]
fn taps_of_one_dimension_go_first_too() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 32, 9]);
    let w = g.parameter("w", [5, 32, 3], Init::Normal(0.1.into()));
    let y = g.conv1d(x, w, Window2d::strided(2).padded(1), 1);
    g.output("y", y);
    let made = compared(&g);
    assert_eq!((copies(&made), products(&made)), (1, vec![vec![1, 3, 32]]), "{made}");
}

/// Where the weights do not change in a step the copy is prepared, else it is made of those of the step; two terms have two.
#[test]
fn copies_are_made_where_weights_change() {
    let residual = |g: &mut Graph| {
        let x = g.input("x", [1, 32, 6, 6]);
        let sum = ["v", "w"].map(|name| {
            let w = g.parameter(name, [32, 32, 3, 3], Init::Normal(0.1.into()));
            g.conv2d(x, w, Window2d::strided(1).padded(1))
        });
        g.add(sum[0], sum[1])
    };
    let sections = |g: &Graph| -> Vec<SectionKind> {
        let target = Target { max_bindings: 16, ..Target::minimal_vulkan() };
        let p = compile(g, &target, &Options::default()).expect("compiles");
        let of = |s: &griffinfly_compile::program::Section| {
            let ids = s.levels.iter().flatten().map(|id| &p.dispatches[id.index()]);
            let copies = ids.filter(|d| d.provenance.iter().any(|label| label.ends_with(" by taps")));
            vec![s.kind; copies.count()]
        };
        p.sections.iter().flat_map(of).collect()
    };
    let mut g = Graph::new();
    let y = residual(&mut g);
    g.output("y", y);
    assert_eq!(copies(&compared(&g)), 2);
    assert_eq!(sections(&g), [SectionKind::Prepare; 2]);
    let mut g = Graph::new();
    let y = residual(&mut g);
    let loss = g.mean_all(y);
    g.output("loss", loss);
    attach(&mut g, &Optimizer::sgd(0.1), loss).expect("differentiable");
    assert_eq!(sections(&g), [SectionKind::ForwardBackward; 2]);
}

/// Few channels, a single tap, weights that are no parameter; and nothing for the host.
#[test]
fn what_gains_nothing_stays() {
    let of = |channels: usize, taps: usize, is_parameter: bool| {
        let mut g = Graph::new();
        let x = g.input("x", [1, channels, 6, 5]);
        let dims = [4, channels, taps, taps];
        let w =
            if is_parameter { g.parameter("w", dims, Init::Normal(0.1.into())) } else { g.input("w", dims) };
        let y = g.conv2d(x, w, Window2d::strided(1));
        g.output("y", y);
        g
    };
    for g in [of(24, 3, true), of(32, 1, true), of(32, 3, false)] {
        assert_eq!(copies(&compared(&g)), 0);
    }
    let g = of(32, 3, true);
    assert_eq!(copies(&compared(&g)), 1);
    let host = loops(&g, &Target::host(), &Options::default()).expect("compiles");
    assert_eq!(copies(&host), 0);
}

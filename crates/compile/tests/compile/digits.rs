//! The digits network: its training program stays small.

use super::programs::{check, feeds};
use griffinfly_compile::program::{ExternalKind, Role, SectionKind};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::graph::{Graph, Init, Value};
use griffinfly_ir::ops::Window2d;
use griffinfly_ir::optimizer::{
    AdamConfig, CORRECTION1, CORRECTION2, LEARNING_RATE, Optimizer, SgdConfig, attach,
};
use griffinfly_ir::target::Target;

fn affine(g: &mut Graph, name: &str, y: Value, dims: &[usize]) -> Value {
    let b = g.parameter(&format!("{name}.bias"), dims, Init::ZEROS);
    g.add(y, b)
}

/// Two convolutions, pooling, a hidden layer, cross-entropy, Adam.
pub(crate) fn digits(batch: usize, optimizer: &Optimizer) -> Graph {
    let mut g = Graph::new();
    let x = g.input("image", [batch, 1, 8, 8]);
    let labels = g.input_ids("label", [batch]);
    let mut h = x;
    for (name, from, to) in [("conv1", 1, 16), ("conv2", 16, 32)] {
        let w = g.parameter(&format!("{name}.weight"), [to, from, 3, 3], Init::Normal(0.1.into()));
        h = g.conv2d(h, w, Window2d::strided(1).padded(1));
        h = affine(&mut g, name, h, &[to, 1, 1]);
        h = g.relu(h);
    }
    h = g.max_pool2d(h, [2, 2], Window2d::strided(2));
    h = g.flatten(h, 1);
    for (name, from, to) in [("fc1", 512, 64), ("fc2", 64, 10)] {
        let w = g.parameter(&format!("{name}.weight"), [to, from], Init::Normal(0.1.into()));
        h = g.matmul_with(h, w, [false, true]);
        h = affine(&mut g, name, h, &[to]);
        if name == "fc1" {
            h = g.relu(h);
        }
    }
    let loss = g.cross_entropy(h, labels);
    g.output("loss", loss);
    attach(&mut g, optimizer, loss).expect("differentiable");
    g
}

#[test]
fn the_training_program_has_at_most_30_dispatches() {
    let p =
        compile(&digits(64, &Optimizer::Adam(AdamConfig::default())), &Target::host(), &Options::default())
            .expect("compiles");
    assert!(p.dispatches.len() <= 30, "{} dispatches\n{p}", p.dispatches.len());
    println!("{p}\n{}", p.summary());
}

#[test]
fn a_training_step_of_a_convolutional_network_equals_the_oracle() {
    // Plain descent: Adam's first step divides a gradient by its own size, which turns rounding of gradients near zero into
    // differences of whole steps.
    let g = digits(3, &Optimizer::Sgd(SgdConfig::default()));
    g.finish().expect("builds");
    check(&g, &feeds(&g), "digits");
}

#[test]
fn adam_trains_on_the_smallest_device() {
    let target = Target::minimal_vulkan();
    for optimizer in [Optimizer::adam(1e-3), Optimizer::adamw(1e-3)] {
        let p = compile(&digits(64, &optimizer), &target, &Options::default()).expect("compiles");
        let most = p.dispatches.iter().map(|d| d.bindings.len()).max();
        assert_eq!(most, Some(8), "the update has all the bindings there are\n{p}");
        assert_eq!(p.kernels.iter().map(|k| k.bindings.len()).max(), Some(8));
        let updates = p.sections.iter().filter(|s| s.kind == SectionKind::Update);
        assert_eq!(updates.flat_map(|s| &s.levels).map(Vec::len).sum::<usize>(), 1, "{p}");
    }
}

#[test]
fn step_scalars_lie_side_by_side_and_keep_their_names() {
    let g = digits(4, &Optimizer::adamw(1e-3));
    let p = compile(&g, &Target::host(), &Options::default()).expect("compiles");
    let scalars = p.externals.iter().filter(|e| e.kind == ExternalKind::StepScalar);
    let scalars: Vec<_> = scalars.map(|e| (e.name.as_str(), e.place.offset)).collect();
    assert_eq!(scalars, [(LEARNING_RATE, 0), (CORRECTION1, 4), (CORRECTION2, 8)]);
    let arenas: Vec<u64> = p.arenas.iter().filter(|a| a.role == Role::Scalars).map(|a| a.bytes).collect();
    assert_eq!(arenas, [256]);
}

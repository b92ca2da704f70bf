//! Optimizers in the graph against the published algorithms, written out as PyTorch orders them.

use crate::support::{Feeds, assert_close, by_lowering, by_reference, feeds, sum_all};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::AutodiffError;
use griffinfly_ir::graph::{Graph, Init, LeafKind, Region};
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::ops::Lowering;
use griffinfly_ir::optimizer::{AdamConfig, Optimizer, SgdConfig, attach, step_scalars};
use griffinfly_ir::types::TensorType;

const START: [f64; 3] = [0.5, -1.5, 2.0];
const CURVE: [f64; 3] = [1.0, 3.0, -0.5];

/// `loss = sum c w^2`, gradient `2 c w`; outputs are the next values of all leaves that are updated.
fn training(optimizer: &Optimizer) -> Graph {
    let mut g = Graph::new();
    let w = g.parameter("w", [3], Init::ONES);
    let c = g.input("c", [3]);
    let ww = g.mul(w, w);
    let weighted = g.mul(c, ww);
    let loss = sum_all(&mut g, weighted);
    attach(&mut g, optimizer, loss).unwrap();
    for u in g.updates().to_vec() {
        let name = g.as_leaf(u.leaf).unwrap().name.clone();
        g.output(&name, u.value);
    }
    assert_eq!(g.verify(), vec![]);
    g
}

/// Runs steps with the learning rate growing, and gives w after each.
fn run(optimizer: &Optimizer, steps: u64, eval: fn(&Graph, &Feeds) -> Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let g = training(optimizer);
    let mut f = feeds(&g, &[("w", &START), ("c", &CURVE)]);
    let mut all = Vec::new();
    for t in 1..=steps {
        for (name, x) in step_scalars(optimizer, t, 0.05 * t as f64) {
            f.insert(name.into(), Array { ty: TensorType::f32([]), data: vec![f64::from(x)] });
        }
        let next = eval(&g, &f);
        for (o, data) in g.outputs().iter().zip(next) {
            f.insert(o.name.clone(), Array { ty: TensorType::f32([3]), data });
        }
        all.push(f["w"].data.clone());
    }
    all
}

fn expect(optimizer: &Optimizer, mut step: impl FnMut(usize, f64, f64, f64, f64) -> f64) {
    let mut w = START;
    let mut expected = Vec::new();
    for t in 1..=6 {
        for i in 0..3 {
            w[i] = step(i, f64::from(t), 0.05 * f64::from(t), w[i], 2.0 * CURVE[i] * w[i]);
        }
        expected.push(w);
    }
    for eval in [by_reference, by_lowering] {
        for (found, e) in run(optimizer, 6, eval).iter().zip(&expected) {
            assert_close(found, e, 2e-5);
        }
    }
}

#[test]
fn sgd_with_all_its_options() {
    for (mu, nesterov, decay) in [(0.0, false, 0.0), (0.0, false, 0.1), (0.9, false, 0.0), (0.9, true, 0.01)]
    {
        let config = SgdConfig { momentum: mu, nesterov, weight_decay: decay, ..SgdConfig::default() };
        let mut buffer: [Option<f64>; 3] = [None; 3];
        expect(&Optimizer::Sgd(config), |i, _, lr, w, g| {
            let mut d = g + decay * w;
            if mu != 0.0 {
                // torch.optim.SGD starts the buffer as the first gradient.
                let b = buffer[i].map_or(d, |b| mu * b + d);
                buffer[i] = Some(b);
                d = if nesterov { d + mu * b } else { b };
            }
            w - lr * d
        });
    }
}

#[test]
fn adam_and_adamw() {
    let coupled = AdamConfig { weight_decay: 0.1, ..AdamConfig::default() };
    let adamw = AdamConfig { weight_decay: 0.1, ..AdamConfig::adamw() };
    for c in [AdamConfig::default(), coupled, adamw] {
        let mut moments = [(0.0, 0.0); 3];
        expect(&Optimizer::Adam(c), |i, t, lr, mut w, mut g| {
            if c.decoupled {
                w *= 1.0 - lr * c.weight_decay;
            } else {
                g += c.weight_decay * w;
            }
            let (m, v) = &mut moments[i];
            *m += (1.0 - c.beta1) * (g - *m);
            *v = c.beta2 * *v + (1.0 - c.beta2) * g * g;
            let (bias1, bias2) = (1.0 - c.beta1.powf(t), 1.0 - c.beta2.powf(t));
            let denominator = v.sqrt() / bias2.sqrt() + c.eps;
            w - lr / bias1 * *m / denominator
        });
    }
}

#[test]
fn the_first_adam_step_is_the_learning_rate() {
    let first = run(&Optimizer::adam(0.05), 1, by_lowering).remove(0);
    assert_close(&first, &[0.45, -1.45, 2.05], 1e-6);
}

#[test]
fn corrections_are_right_for_early_and_late_steps() {
    let adam = Optimizer::adam(1e-3);
    let at = |t: u64| step_scalars(&adam, t, 0.25).into_iter().map(|(_, x)| x).collect::<Vec<f32>>();
    assert_eq!(at(1), [0.25, 10.0, 1000.0]);
    assert_eq!(at(0), at(1));
    assert_eq!(at(u64::MAX), [0.25, 1.0, 1.0]);
    let slow = Optimizer::Adam(AdamConfig { beta1: 0.0, beta2: 1.0 - 1e-12, ..AdamConfig::default() });
    let scalars = step_scalars(&slow, 1, 0.1);
    assert_eq!(scalars[1].1, 1.0);
    assert!((f64::from(scalars[2].1) / 1e12 - 1.0).abs() < 1e-3, "{scalars:?}");
    assert_eq!(step_scalars(&Optimizer::sgd(0.1), 7, 0.5), [("optimizer.learning_rate", 0.5)]);
}

#[test]
fn defaults_are_pytorchs() {
    let Optimizer::Adam(adam) = Optimizer::adam(1e-3) else { unreachable!() };
    assert_eq!((adam.beta1, adam.beta2, adam.eps, adam.weight_decay), (0.9, 0.999, 1e-8, 0.0));
    assert_eq!(adam, AdamConfig::default());
    let Optimizer::Adam(adamw) = Optimizer::adamw(1e-3) else { unreachable!() };
    assert_eq!((adamw.weight_decay, adamw.decoupled), (1e-2, true));
    for o in [Optimizer::Adam(adamw), Optimizer::momentum(0.1, 0.9)] {
        let text = serde_json::to_string(&o).unwrap();
        assert_eq!(serde_json::from_str::<Optimizer>(&text).unwrap(), o);
    }
}

#[test]
fn state_mirrors_parameters_and_updates_are_equal_maps() {
    let mut g = Graph::new();
    let sum = [("a", vec![1, 3]), ("b", vec![5, 1])].map(|(n, dims)| {
        let p = g.parameter(n, dims, Init::ONES);
        sum_all(&mut g, p)
    });
    let loss = g.add(sum[0], sum[1]);
    let before = g.nodes().len();
    let attached = attach(&mut g, &Optimizer::adamw(1e-3), loss).unwrap();
    assert_eq!(attached.gradients.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let names: Vec<&str> = g.leaves().map(|(_, l)| l.name.as_str()).filter(|n| !n.is_empty()).collect();
    let scalars = ["optimizer.learning_rate", "optimizer.correction1", "optimizer.correction2"];
    assert_eq!(names[2..], [&scalars[..], &["a.adam_m", "a.adam_v", "b.adam_m", "b.adam_v"]].concat());
    let moment = g.as_leaf(g.leaf("b.adam_v").unwrap().node()).unwrap();
    let LeafKind::State { mirrors, .. } = &moment.kind else { panic!("{moment:?}") };
    assert_eq!(mirrors, &Some(("adam_v".into(), "b".into())));
    assert_eq!(g.updates().len(), 6);
    let bodies: Vec<_> = g
        .ids()
        .skip(before)
        .filter(|id| g.node(*id).region() == Region::Update && g.as_leaf(*id).is_none())
        .map(|id| match g.lowering(id) {
            Lowering::Loop(l) => match l.kind {
                LoopKind::Map(m) => {
                    assert!(
                        m.stores.iter().all(|s| s.coords == griffinfly_ir::index::Access::identity(2).coords)
                    );
                    m.body
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
}

#[test]
fn a_failed_attachment_leaves_the_graph_as_it_was() {
    let adam = |c: AdamConfig| Optimizer::Adam(c);
    let base = AdamConfig::default();
    let bad = [
        adam(AdamConfig { beta1: 1.0, ..base }),
        adam(AdamConfig { beta2: -0.1, ..base }),
        adam(AdamConfig { beta2: f64::NAN, ..base }),
        adam(AdamConfig { eps: 0.0, ..base }),
        adam(AdamConfig { eps: 1e-60, ..base }),
        adam(AdamConfig { weight_decay: f64::INFINITY, ..base }),
        Optimizer::momentum(0.1, 1.5),
        Optimizer::Sgd(SgdConfig { nesterov: true, ..SgdConfig::default() }),
    ];
    let mut g = Graph::new();
    let w = g.parameter("w", [3], Init::ONES);
    let loss = sum_all(&mut g, w);
    let before = g.clone();
    for optimizer in bad {
        let error = attach(&mut g, &optimizer, loss).unwrap_err();
        assert!(matches!(error, AutodiffError::Build(_)), "{error}");
        assert_eq!(g, before);
    }
    assert!(matches!(attach(&mut g, &Optimizer::sgd(0.1), w), Err(AutodiffError::Loss(_))));
    assert_eq!(g, before);
    attach(&mut g, &Optimizer::adam(0.1), loss).unwrap();
    let once = g.clone();
    assert!(matches!(attach(&mut g, &Optimizer::adam(0.1), loss), Err(AutodiffError::Build(_))));
    assert_eq!(g, once);
}

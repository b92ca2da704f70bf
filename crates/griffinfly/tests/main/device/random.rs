//! Random numbers of a step: the same on every device, new each step, and those of the checkpoint's step when going on.

use super::tested;
use crate::fixtures::{ROWS, Scratch, batch, bits};
use griffinfly::ir::array::Array;
use griffinfly::ir::eval::eval;
use griffinfly::ir::random::{RANDOM_KEY, random_key};
use griffinfly::{
    Device, Graph, GraphExt, InferenceGraph, Input, Optimizer, Session, Trainer, TrainingGraph, nn,
};
use std::collections::HashMap;

fn dropping() -> (TrainingGraph, InferenceGraph) {
    let mut g = Graph::new();
    let (x, class) = (g.input("x", [ROWS, 3]), g.input_ids("class", [ROWS]));
    let h = nn::Linear::new("hidden", 3, 64).apply(&mut g, x).relu(&mut g);
    let h = g.dropout(h, 0.5);
    let logits = nn::Linear::new("head", 64, 5).apply(&mut g, h);
    let loss = g.cross_entropy(logits, class);
    (g.training(loss).unwrap(), g.inference([("logits", logits)]).unwrap())
}

fn trainer(device: &Device) -> Trainer {
    Trainer::new(device, dropping().0, Optimizer::sgd(0.0)).unwrap()
}

#[test]
fn dropout_changes_each_step_and_goes_on_from_a_checkpoint() {
    let (tested, scratch) = (tested(), Scratch::new("device-random"));
    let mut straight = trainer(&tested.device);
    straight.set_seed(5);
    let expected: Vec<f32> = (0..6).map(|_| straight.step(&batch()).unwrap()).collect();
    assert!(expected.windows(2).all(|w| w[0] != w[1]), "the weights stay, the mask does not: {expected:?}");
    let mut first = trainer(&tested.device);
    let other = first.step(&batch()).unwrap();
    assert_ne!(other, expected[0], "another seed");
    first = trainer(&tested.device);
    first.set_seed(5);
    (0..3).for_each(|i| assert_eq!(first.step(&batch()).unwrap(), expected[i]));
    first.save(scratch.file("c")).unwrap();
    let mut second = trainer(&tested.device);
    second.load(scratch.file("c")).unwrap();
    assert_eq!(second.seed(), 5);
    (3..6).for_each(|i| assert_eq!(second.step(&batch()).unwrap(), expected[i]));
    assert_eq!(bits(second.weights()), bits(straight.weights()));
}

#[test]
fn inference_drops_nothing() {
    let tested = tested();
    let trainer = trainer(&tested.device);
    let mut session = Session::with_weights(dropping().1, trainer.weights()).unwrap();
    let x = [("x", batch()[0].1)];
    let first = session.run(&x).unwrap();
    assert_eq!(session.run(&x).unwrap(), first);
}

/// Uniform numbers are the oracle's to the bit, normal ones to the error of the scalar functions.
#[test]
fn noise_of_a_session_is_the_oracles() {
    let tested = tested();
    let mut g = Graph::new();
    let x = g.input("x", [7, 31]);
    let (u, z) = (g.rand_like(x), g.randn_like(x));
    let graph = g.inference([("u", u), ("z", z)]).unwrap();
    let mut session = Session::new(&tested.device, graph).unwrap();
    let zeros = vec![0.0f32; 7 * 31];
    let run = |session: &mut Session| {
        let out = session.run(&[("x", Input::f32(&zeros))]).unwrap();
        ["u", "z"].map(|name| out.f32(name).unwrap().to_vec())
    };
    for (seed, runs) in [(0, 1..3), (99, 1..2)] {
        if seed != 0 {
            session.set_seed(seed);
        }
        for step in runs {
            let key = g.ty(g.leaf(RANDOM_KEY).unwrap()).unwrap().clone();
            let words = random_key(seed, step).map(f64::from).to_vec();
            let input = Array { ty: g.ty(x).unwrap().clone(), data: vec![0.0; 7 * 31] };
            let fed = HashMap::from([
                ("x".to_string(), input),
                (RANDOM_KEY.to_string(), Array { ty: key, data: words }),
            ]);
            let oracle = eval::<f64>(&g, &fed).unwrap();
            let [found_u, found_z] = run(&mut session);
            assert!(oracle.get(u).data.iter().zip(&found_u).all(|(a, b)| *a == f64::from(*b)));
            for (a, b) in oracle.get(z).data.iter().zip(&found_z) {
                assert!((a - f64::from(*b)).abs() < 5e-6, "{a} {b}");
            }
        }
    }
}

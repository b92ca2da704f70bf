//! Steps over resident inputs, and gradients without an optimizer.

use crate::fixtures::{NUMBERS, batch, small};
use griffinfly::{Device, Graph, GraphExt, Init, Input, Optimizer, Session, Trainer, Weights};

#[test]
fn a_session_runs_again_over_the_inputs_it_has() {
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    let sum = g.state("sum", [3], 0.0);
    let next = g.add(sum, x);
    g.update(sum, next);
    let mut session = Session::new(&Device::host(), g.inference([("y", next)]).unwrap()).unwrap();
    let text = session.submit_again().unwrap_err().to_string();
    assert!(text.contains("run a step with inputs first"), "{text}");
    let first = session.run(&[("x", Input::f32(&[1.0, 2.0, 3.0]))]).unwrap();
    assert_eq!(first.f32("y").unwrap(), [1.0, 2.0, 3.0]);
    for _ in 0..5 {
        let step = session.submit_again().unwrap();
        session.wait(step).unwrap();
    }
    let last = session.run(&[("x", Input::f32(&[0.0; 3]))]).unwrap();
    assert_eq!(last.f32("y").unwrap(), [6.0, 12.0, 18.0]);
}

#[test]
fn a_step_with_inputs_may_leave_its_outputs_on_the_device() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let sum = g.state("sum", [2], 0.0);
    let next = g.add(sum, x);
    g.update(sum, next);
    let mut session = Session::new(&Device::host(), g.inference([("y", next)]).unwrap()).unwrap();
    for x in [[1.0, 2.0], [10.0, 20.0]] {
        let step = session.submit(&[("x", Input::f32(&x))]).unwrap();
        session.wait(step).unwrap();
    }
    let last = session.run(&[("x", Input::f32(&[0.0; 2]))]).unwrap();
    assert_eq!(last.f32("y").unwrap(), [11.0, 22.0]);
    let text = session.submit(&[("z", Input::f32(&[0.0; 2]))]).unwrap_err().to_string();
    assert!(text.contains('z'), "{text}");
    let again = session.run(&[("x", Input::f32(&[0.0; 2]))]).unwrap();
    assert_eq!(again.f32("y").unwrap(), [11.0, 22.0], "a refused step is none");
}

#[test]
fn weights_that_change_are_seen_by_the_next_step() {
    let weights = Weights::init(&Device::host(), small().training.graph(), 9).unwrap();
    let mut session = Session::with_weights(small().inference, &weights).unwrap();
    session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    weights.set("head.bias", &[100.0; 5]).unwrap();
    let step = session.submit_again().unwrap();
    session.wait(step).unwrap();
    let after = session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    assert!(after.f32("logits").unwrap().iter().all(|x| *x > 90.0));
}

#[test]
fn gradients_are_those_an_optimizer_uses() {
    let device = Device::host();
    let weights = Weights::init(&device, small().training.graph(), 4).unwrap();
    let mut session = Session::with_weights(small().training.gradients().unwrap(), &weights).unwrap();
    let outputs = session.run(&batch()).unwrap();
    let before: Vec<(String, Vec<f32>)> =
        weights.names().map(|n| (n.to_owned(), weights.get(n).unwrap())).collect();
    let mut trainer = Trainer::with_weights(small().training, Optimizer::sgd(0.5), &weights).unwrap();
    let loss = trainer.step(&batch()).unwrap();
    assert_eq!(outputs.f32("loss").unwrap(), [loss]);
    for (name, old) in before {
        let gradient = outputs.f32(&format!("grad.{name}")).unwrap();
        assert!(gradient.iter().any(|x| *x != 0.0), "{name}");
        let expected: Vec<f32> = old.iter().zip(gradient).map(|(p, g)| p - 0.5 * g).collect();
        let found = weights.get(&name).unwrap();
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
        assert!(found.iter().zip(&expected).all(close), "{name}: {found:?} {expected:?}");
    }
}

#[test]
fn a_parameter_without_influence_has_no_gradient() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let (used, _unused) = (g.parameter("used", [2], Init::ONES), g.parameter("unused", [2], Init::ONES));
    let y = g.mul(x, used);
    let loss = g.mean_all(y);
    let mut session = {
        let gradients = g.training(loss).unwrap().gradients().unwrap();
        let weights = Weights::init(&Device::host(), gradients.graph(), 0).unwrap();
        Session::with_weights(gradients, &weights).unwrap()
    };
    let outputs = session.run(&[("x", Input::f32(&[3.0, 5.0]))]).unwrap();
    assert_eq!(outputs.f32("grad.used").unwrap(), [1.5, 2.5]);
    assert!(outputs.get("grad.unused").is_err());
}

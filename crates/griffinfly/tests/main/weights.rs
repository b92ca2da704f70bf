//! Weights: initial values, access by name, files, sharing.

use crate::fixtures::{NUMBERS, Scratch, bits, small};
use griffinfly::{Device, Error, Graph, GraphExt, Init, Input, Session, Weights};

#[test]
fn initial_values_do_not_depend_on_the_order_of_declaration() {
    let device = Device::host();
    let graph = |names: [&str; 2]| {
        let mut g = Graph::new();
        names.iter().for_each(|n| {
            g.parameter(n, [5], Init::Normal(1.0.into()));
        });
        g
    };
    let (a, b) = (graph(["u", "v"]), graph(["v", "u"]));
    let (a, b) = (Weights::init(&device, &a, 3).unwrap(), Weights::init(&device, &b, 3).unwrap());
    for name in ["u", "v"] {
        assert_eq!(a.get(name).unwrap(), b.get(name).unwrap());
    }
    assert_ne!(a.get("u").unwrap(), a.get("v").unwrap());
}

#[test]
fn linear_layers_start_like_those_of_pytorch() {
    let weights = Weights::init(&Device::host(), small().training.graph(), 1).unwrap();
    for (name, fan_in) in
        [("hidden.weight", 3.0_f32), ("hidden.bias", 3.0), ("head.weight", 7.0), ("head.bias", 7.0)]
    {
        let values = weights.get(name).unwrap();
        let bound = 1.0 / fan_in.sqrt();
        assert!(values.iter().all(|x| x.abs() <= bound), "{name} {values:?}");
        assert!(values.iter().any(|x| x.abs() > bound / 4.0), "{name} {values:?}");
    }
}

#[test]
fn access_is_by_name_and_checked() {
    let weights = Weights::init(&Device::host(), small().training.graph(), 1).unwrap();
    weights.set("head.bias", &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert_eq!(weights.get("head.bias").unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    let text = weights.set("head.bias", &[1.0]).unwrap_err().to_string();
    assert!(text.contains("'head.bias' is f32[5], given 1 values"), "{text}");
    let text = weights.get("head").unwrap_err().to_string();
    assert!(text.contains("'head'") && text.contains("head.weight"), "{text}");
    assert!(weights.dims("nothing").is_err());
}

#[test]
fn weights_without_values_do_not_run() {
    let device = Device::host();
    let mut session = Session::new(&device, small().inference).unwrap();
    let error = session.run(&[("x", Input::f32(&NUMBERS))]).unwrap_err();
    assert!(matches!(&error, Error::Unset(names) if names.len() == 4), "{error}");
    let scratch = Scratch::new("unset");
    assert!(session.weights().save(scratch.file("w.safetensors")).is_err());
    let names: Vec<String> = session.weights().names().map(Into::into).collect();
    for name in &names {
        let count = session.weights().dims(name).unwrap().iter().product();
        session.weights().set(name, &vec![0.5; count]).unwrap();
    }
    session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
}

#[test]
fn files_round_trip() {
    let (device, scratch) = (Device::host(), Scratch::new("weights"));
    let graph = small().training;
    let weights = Weights::init(&device, graph.graph(), 9).unwrap();
    let file = scratch.file("w.safetensors");
    weights.save(&file).unwrap();
    let other = Weights::empty(&device, graph.graph()).unwrap();
    other.load(&file).unwrap();
    assert_eq!(bits(&weights), bits(&other));
}

#[test]
fn sessions_see_what_is_set() {
    let device = Device::host();
    let weights = Weights::init(&device, small().training.graph(), 9).unwrap();
    let mut session = Session::with_weights(small().inference, &weights).unwrap();
    let run = |session: &mut Session| session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    let before = run(&mut session);
    weights.set("head.bias", &[100.0; 5]).unwrap();
    let after = run(&mut session);
    assert!(
        before.f32("logits").unwrap().iter().zip(after.f32("logits").unwrap()).all(|(a, b)| b - a > 90.0)
    );
}

#[test]
fn a_graph_with_other_parameters_is_refused() {
    let weights = Weights::init(&Device::host(), small().training.graph(), 9).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let w = g.parameter("hidden.weight", [3, 7], Init::ONES);
    let y = g.matmul(x, w);
    let text = Session::with_weights(g.inference([("y", y)]).unwrap(), &weights).unwrap_err().to_string();
    assert!(text.contains("'hidden.weight' is f32[3,7], the weights have f32[7,3]"), "{text}");
    assert!(text.contains("the weights have 'head.bias'"), "{text}");
}

#[test]
fn a_model_without_parameters_runs() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let y = g.relu(x);
    let mut session = Session::new(&Device::host(), g.inference([("y", y)]).unwrap()).unwrap();
    let out = session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    assert_eq!(out.f32("y").unwrap()[1], 0.0);
    assert!(out.f32("z").is_err() && out.i32("y").is_err());
}

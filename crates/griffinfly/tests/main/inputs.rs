//! Inputs that do not fit are refused before anything is uploaded, and change nothing.

use crate::fixtures::{CLASSES, NUMBERS, batch, bits, small, trainer};
use griffinfly::{DType, Device, Error, Graph, GraphExt, Input, InputError, Optimizer, Session, nn};

/// What a training step says to these inputs; the model must be as before.
fn refusal(inputs: &[(&str, Input<'_>)]) -> InputError {
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.1));
    trainer.step(&batch()).unwrap();
    let before = bits(trainer.weights());
    let Err(Error::Input(error)) = trainer.step(inputs) else {
        panic!("these inputs do not fit: {inputs:?}")
    };
    assert!(trainer.submit(inputs).is_err());
    assert_eq!((bits(trainer.weights()), trainer.steps()), (before, 1));
    trainer.step(&batch()).unwrap();
    error
}

#[test]
fn names() {
    let [x, class] = batch();
    let unset = |names: &[&str]| InputError::Unset(names.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(refusal(&[]), unset(&["x", "class"]));
    assert_eq!(refusal(&[x]), unset(&["class"]));
    assert_eq!(refusal(&[x, class, x]), InputError::Twice("x".into()));
    let known = vec!["x".to_owned(), "class".to_owned()];
    assert_eq!(refusal(&[x, class, ("y", x.1)]), InputError::Unknown { name: "y".into(), known });
    // The trainer sets these itself.
    assert!(matches!(
        refusal(&[x, class, ("optimizer.learning_rate", Input::f32(&[1.0]))]),
        InputError::Unknown { .. }
    ));
}

#[test]
fn dtypes_and_lengths() {
    let [x, class] = batch();
    let dtype = refusal(&[x, ("class", Input::f32(&[0.0; 4]))]);
    assert!(
        matches!(&dtype, InputError::Dtype { name, given: DType::F32, .. } if name == "class"),
        "{dtype}"
    );
    let length = refusal(&[("x", Input::f32(&NUMBERS[..11])), class]);
    assert_eq!(length.to_string(), "input 'x' is f32[4,3] of 12 values, given 11");
    assert!(matches!(refusal(&[("x", Input::f32(&[])), class]), InputError::Length { given: 0, .. }));
}

#[test]
fn class_ids_out_of_range() {
    let [x, _] = batch();
    for wrong in [5, -1, i32::MAX, i32::MIN] {
        let mut ids = CLASSES;
        ids[2] = wrong;
        let error = refusal(&[x, ("class", Input::ids(&ids))]);
        let expected =
            InputError::Id { name: "class".into(), position: 2, value: wrong, limit: 5, ignore: None };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(&format!("position 2 is {wrong}, allowed is 0..5")));
    }
}

#[test]
fn an_ignored_id_is_allowed_and_others_are_not() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 5]);
    let class = g.input_ids("class", [4]);
    let (loss, count) = g.cross_entropy_ignoring(x, class, -100);
    let mut session =
        Session::new(&Device::host(), g.inference([("loss", loss), ("count", count)]).unwrap()).unwrap();
    let mut run = |ids: [i32; 4]| session.run(&[("x", Input::f32(&[0.5; 20])), ("class", Input::ids(&ids))]);
    let out = run([1, -100, 3, -100]).unwrap();
    assert_eq!(out.f32("count").unwrap(), [2.0]);
    assert!((out.f32("loss").unwrap()[0] - 5_f32.ln()).abs() < 1e-6);
    let none = run([-100; 4]).unwrap();
    assert_eq!((none.f32("count").unwrap(), none.f32("loss").unwrap()), ([0.0].as_slice(), [0.0].as_slice()));
    let text = run([1, -1, 3, 0]).unwrap_err().to_string();
    assert!(text.contains("position 1 is -1, allowed is 0..5 or -100"), "{text}");
}

#[test]
fn token_ids_out_of_range() {
    let mut g = Graph::new();
    let tokens = g.input_ids("tokens", [6]);
    let e = nn::Embedding::new("embed", 100, 4).apply(&mut g, tokens);
    let device = Device::host();
    let weights = griffinfly::Weights::init(&device, &g, 0).unwrap();
    let mut session = Session::with_weights(g.inference([("e", e)]).unwrap(), &weights).unwrap();
    let out = session.run(&[("tokens", Input::ids(&[0, 99, 5, 5, 7, 1]))]).unwrap();
    assert_eq!(out.f32("e").unwrap()[4..8], weights.get("embed.weight").unwrap()[396..]);
    let text = session.run(&[("tokens", Input::ids(&[0, 99, 5, 100, 7, 1]))]).unwrap_err().to_string();
    assert!(text.contains("'tokens'") && text.contains("position 3 is 100"), "{text}");
}

#[test]
fn inputs_the_outputs_do_not_need_may_be_left_out() {
    let device = Device::host();
    let trainer = trainer(&device, Optimizer::sgd(0.1));
    let mut session = Session::with_weights(small().inference, trainer.weights()).unwrap();
    session.run(&batch()).unwrap();
    session.run(&batch()[..1]).unwrap();
    assert!(session.run(&batch()[1..]).is_err());
}

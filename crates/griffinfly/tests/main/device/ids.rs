//! Ids that the device computes: one out of range is an error of its step, and nothing is updated from there on.

use super::tested;
use crate::fixtures::{Scratch, bits};
use griffinfly::{
    Device, Error, Graph, GraphExt, InferenceGraph, Input, Optimizer, Session, Trainer, TrainingGraph, nn,
};

const A: [i32; 4] = [0, 1, 2, 3];
const GOOD: [i32; 4] = [0, 1, 2, 1];
const BAD: [i32; 4] = [0, 1, 4, 1];

/// Rows are looked up by the sum of two inputs, of which there are six.
fn model() -> (TrainingGraph, InferenceGraph) {
    let mut g = Graph::new();
    let (a, b) = (g.input_ids("a", [4]), g.input_ids("b", [4]));
    let class = g.input_ids("class", [4]);
    let sum = g.add(a, b);
    let rows = nn::Embedding::new("rows", 6, 5).apply(&mut g, sum);
    let logits = nn::Linear::new("head", 5, 3).apply(&mut g, rows);
    let loss = g.cross_entropy(logits, class);
    (g.training(loss).unwrap(), g.inference([("logits", logits)]).unwrap())
}

fn trainer(device: &Device) -> Trainer {
    Trainer::new(device, model().0, Optimizer::adam(0.01)).unwrap()
}

fn batch(b: &[i32; 4]) -> [(&str, Input<'_>); 3] {
    [("a", Input::ids(&A)), ("b", Input::ids(b)), ("class", Input::ids(&[0, 1, 2, 0]))]
}

fn assert_told(error: &Error) {
    let Error::DeviceId { operation, limit, ignore } = error else { panic!("{error}") };
    assert_eq!((operation.as_str(), *limit, *ignore), ("rows.embedding", 6, None));
    assert!(error.to_string().contains("is not in 0..6"), "{error}");
}

#[test]
fn a_bad_step_and_those_in_flight_after_it_change_nothing() {
    let (tested, scratch) = (tested(), Scratch::new("device-ids"));
    let mut straight = trainer(&tested.device);
    let expected: Vec<f32> = (0..5).map(|_| straight.step(&batch(&GOOD)).unwrap()).collect();

    let mut trainer = trainer(&tested.device);
    let mut losses: Vec<f32> = (0..2).map(|_| trainer.step(&batch(&GOOD)).unwrap()).collect();
    let before = bits(trainer.weights());
    trainer.submit(&batch(&BAD)).unwrap();
    assert_told(&trainer.save(scratch.file("c")).unwrap_err());
    assert!(!scratch.file("c").exists());
    let error = trainer.submit(&batch(&GOOD)).and_then(|_| trainer.finish()).unwrap_err();
    assert_told(&error);
    assert_eq!((trainer.steps(), bits(trainer.weights())), (2, before));

    assert_told(&trainer.step(&batch(&BAD)).unwrap_err());
    losses.push(trainer.step(&batch(&GOOD)).unwrap());
    trainer.save(scratch.file("c")).unwrap();
    assert_told(&trainer.step_outputs(&batch(&BAD)).unwrap_err());
    trainer.load(scratch.file("c")).unwrap();
    losses.extend((0..2).map(|_| trainer.step(&batch(&GOOD)).unwrap()));
    assert_eq!(losses, expected);
    assert_eq!((trainer.steps(), bits(trainer.weights())), (5, bits(straight.weights())));
}

#[test]
fn loading_forgets_what_was_in_flight() {
    let (tested, scratch) = (tested(), Scratch::new("device-ids-load"));
    let mut trainer = trainer(&tested.device);
    trainer.save(scratch.file("c")).unwrap();
    let expected = trainer.step(&batch(&GOOD)).unwrap();
    trainer.submit(&batch(&BAD)).unwrap();
    trainer.load(scratch.file("c")).unwrap();
    assert_eq!(trainer.step(&batch(&GOOD)).unwrap(), expected);
    assert_eq!(trainer.steps(), 1);
}

#[test]
fn a_session_goes_on_after_a_bad_run() {
    let (tested, scratch) = (tested(), Scratch::new("device-ids-session"));
    trainer(&tested.device).save(scratch.file("c")).unwrap();
    let mut session = Session::new(&tested.device, model().1).unwrap();
    session.load(scratch.file("c")).unwrap();
    let inputs = |b| batch(b)[..2].to_vec();
    let expected = session.run(&inputs(&GOOD)).unwrap();
    assert_eq!(expected.all().len(), 1, "the flag is no output of the user's");
    assert_told(&session.run(&inputs(&BAD)).unwrap_err());
    assert_told(&session.run(&inputs(&BAD)).unwrap_err());
    assert_eq!(session.run(&inputs(&GOOD)).unwrap(), expected);
}

//! Batch norm from training to inference: running averages, checkpoints, sessions beside a trainer, folding.

use crate::checkpoint::{parts, put};
use crate::fixtures::{Scratch, bits};
use griffinfly::{
    Device, Graph, GraphExt, InferenceGraph, Init, Input, Optimizer, Session, Trainer, Value, Weights, nn,
};
use std::path::Path;

const IMAGE: [f32; 16] =
    [0.5, 1.0, -1.0, 2.0, 3.0, 0.0, 0.25, 1.5, -2.0, 1.0, 0.5, 0.75, 4.0, -1.0, 2.0, 1.25];

fn norm(training: bool) -> nn::BatchNorm2d {
    nn::BatchNorm2d::new("bn", 3).training(training).momentum(0.5)
}

fn conv() -> nn::Conv2d {
    nn::Conv2d::new("conv", 2, 3, 2).bias(false)
}

fn trainer(device: &Device) -> Trainer {
    let mut g = Graph::new();
    let x = g.input("x", [2, 2, 2, 2]);
    let h = conv().padding(1).apply(&mut g, x);
    let y = norm(true).apply(&mut g, h);
    let target = g.splat(0.25, [2, 3, 3, 3]);
    let loss = g.mse(y, target);
    Trainer::new(device, g.training(loss).unwrap(), Optimizer::sgd(0.05)).unwrap()
}

/// Inference with the running averages as outputs, folded or not.
fn inference(folded: bool) -> InferenceGraph {
    let mut g = Graph::new();
    let x = g.input("x", [2, 2, 2, 2]);
    let y = if folded {
        conv().padding(1).apply_folded(&mut g, x, &norm(false))
    } else {
        let h = conv().padding(1).apply(&mut g, x);
        norm(false).apply(&mut g, h)
    };
    let [mean, variance] = ["bn.running_mean", "bn.running_var"].map(|n| g.leaf(n).unwrap());
    // Outputs of their own: state is given as a step leaves it.
    let own = |g: &mut Graph, v: Value| g.scale(v, 1.0);
    let (mean, variance) = (own(&mut g, mean), own(&mut g, variance));
    g.inference([("y", y), ("mean", mean), ("variance", variance)]).unwrap()
}

fn run(session: &mut Session) -> [Vec<f32>; 3] {
    let out = session.run(&[("x", Input::f32(&IMAGE))]).unwrap();
    ["y", "mean", "variance"].map(|n| out.f32(n).unwrap().to_vec())
}

fn close(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + b.abs()))
}

#[test]
fn running_averages_go_from_training_to_inference() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm"));
    let mut trainer = trainer(&device);
    trainer.set_learning_rate(0.0).unwrap();
    for _ in 0..2 {
        trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    }
    let path = scratch.file("c.safetensors");
    trainer.save(&path).unwrap();
    // What the averages follow, computed beside the norm.
    let mut g = Graph::new();
    let x = g.input("x", [2, 2, 2, 2]);
    let h = conv().padding(1).apply(&mut g, x);
    for (name, init) in [("bn.weight", Init::ONES), ("bn.bias", Init::ZEROS)] {
        g.parameter(name, [3], init);
    }
    let rows = g.permute(h, &[1, 0, 2, 3]);
    let rows = g.flatten(rows, 1);
    let mean = g.mean_keep(rows, &[1]);
    let d = g.sub(rows, mean);
    let dd = g.mul(d, d);
    let sum = g.sum(dd, &[1]);
    let (variance, mean) = (g.scale(sum, 1.0 / 17.0), g.drop_axes(mean, &[1]));
    let graph = g.inference([("mean", mean), ("variance", variance)]).unwrap();
    let mut beside = Session::with_weights(graph, trainer.weights()).unwrap();
    let batch = beside.run(&[("x", Input::f32(&IMAGE))]).unwrap();

    let mut plain = Session::new(&device, inference(false)).unwrap();
    plain.load(&path).unwrap();
    let [y, mean, variance] = run(&mut plain);
    let expected: Vec<f32> = batch.f32("mean").unwrap().iter().map(|m| 0.75 * m).collect();
    assert!(close(&mean, &expected), "{mean:?} {expected:?}");
    let expected: Vec<f32> = batch.f32("variance").unwrap().iter().map(|v| 0.25 + 0.75 * v).collect();
    assert!(close(&variance, &expected), "{variance:?} {expected:?}");
    let mut folded = Session::new(&device, inference(true)).unwrap();
    folded.load(&path).unwrap();
    let [z, ..] = run(&mut folded);
    assert!(close(&y, &z), "{y:?} {z:?}");
    assert!(run(&mut plain)[1] == mean, "inference leaves the averages alone");
}

/// The graph of training with what the norm gives, for both uses.
fn described_once() -> (Graph, Value, Value) {
    let mut g = Graph::new();
    let x = g.input("x", [2, 2, 2, 2]);
    let h = conv().padding(1).apply(&mut g, x);
    let y = norm(true).apply(&mut g, h);
    let squares = g.mul(y, y);
    let loss = g.mean_all(squares);
    (g, y, loss)
}

fn y(session: &mut Session) -> Vec<f32> {
    session.run(&[("x", Input::f32(&IMAGE))]).unwrap().f32("y").unwrap().to_vec()
}

#[test]
fn inference_of_the_training_graph_works_from_the_running_averages() {
    let (g, value, _) = described_once();
    let graph = g.inference([("y", value)]).unwrap();
    assert!(graph.graph().updates().is_empty());
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-once"));
    let mut trainer = trainer(&device);
    trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    let path = scratch.file("c.safetensors");
    trainer.save(&path).unwrap();
    let [mut once, mut written_out] =
        [graph, inference(false)].map(|graph| Session::new(&device, graph).unwrap());
    once.load(&path).unwrap();
    written_out.load(&path).unwrap();
    assert!(close(&y(&mut once), &run(&mut written_out)[0]));
}

#[test]
fn sessions_follow_the_running_averages_of_the_trainer() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-follow"));
    let path = scratch.file("c.safetensors");
    let mut trainer = trainer(&device);
    // The session of a checkpoint has what the trainer had when it was written.
    let saved = |trainer: &Trainer| {
        trainer.save(&path).unwrap();
        let mut session = Session::new(&device, inference(false)).unwrap();
        session.load(&path).unwrap();
        run(&mut session)
    };
    let before = saved(&trainer);
    let mut session = Session::with_weights(inference(false), trainer.weights()).unwrap();
    assert_eq!(run(&mut session), before);
    for _ in 0..2 {
        trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
        assert_eq!(run(&mut session), saved(&trainer));
        assert_ne!(run(&mut session)[1], before[1]);
    }
    // One made later, one of other dimensions, one that folds, one that outlives the trainer.
    let expected = saved(&trainer);
    let mut later = Session::with_weights(inference(false), trainer.weights()).unwrap();
    assert_eq!(run(&mut later), expected);
    let mut folded = Session::with_weights(inference(true), trainer.weights()).unwrap();
    assert!(close(&run(&mut folded)[0], &expected[0]));
    let mut one = session.rebind(&[("x", &[1, 2, 2, 2])]).unwrap();
    let out = one.run(&[("x", Input::f32(&IMAGE[..8]))]).unwrap();
    assert!(close(out.f32("y").unwrap(), &expected[0][..27]));
    let weights = trainer.weights().clone();
    drop(trainer);
    let mut last = Session::with_weights(inference(false), &weights).unwrap();
    assert_eq!(run(&mut last), expected);
}

#[test]
fn what_a_session_loads_stays_until_the_next_training_step() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-stay"));
    let path = scratch.file("c.safetensors");
    let mut trainer = trainer(&device);
    trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    trainer.save(&path).unwrap();
    let mut session = Session::with_weights(inference(false), trainer.weights()).unwrap();
    let first = run(&mut session);
    trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    assert_ne!(run(&mut session)[1], first[1]);
    session.load(&path).unwrap();
    assert_eq!(run(&mut session), first);
    let mut rebound = session.rebind(&[("x", &[2, 2, 2, 2])]).unwrap();
    assert_eq!(run(&mut rebound), first);
    trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    assert_ne!(run(&mut session)[1], first[1]);
    // A trainer that goes on from a checkpoint takes everybody back.
    trainer.load(&path).unwrap();
    assert_eq!([run(&mut session), run(&mut rebound)], [first.clone(), first]);
}

#[test]
fn another_trainer_goes_on_with_the_running_averages() {
    let device = Device::host();
    let step = |trainer: &mut Trainer| {
        trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    };
    let mut straight = trainer(&device);
    straight.set_learning_rate(0.0).unwrap();
    (0..2).for_each(|_| step(&mut straight));
    let mut expected = Session::with_weights(inference(false), straight.weights()).unwrap();

    let mut first = trainer(&device);
    let (g, _, loss) = described_once();
    let graph = g.training(loss).unwrap();
    let mut second = Trainer::with_weights(graph, Optimizer::sgd(0.0), first.weights()).unwrap();
    first.set_learning_rate(0.0).unwrap();
    step(&mut first);
    step(&mut second);
    let mut session = Session::with_weights(inference(false), first.weights()).unwrap();
    let [_, mean, variance] = run(&mut session);
    let [_, expected_mean, expected_variance] = run(&mut expected);
    assert!(close(&mean, &expected_mean) && close(&variance, &expected_variance));
}

fn count(header: &mut serde_json::Value, data: &mut Vec<u8>, name: &str) {
    let end = data.len() + 8;
    header[name] = serde_json::json!({"dtype": "I64", "shape": [], "data_offsets": [data.len(), end]});
    data.extend(1i64.to_le_bytes());
}

/// Rewrites a checkpoint as PyTorch writes one.
fn as_pytorch(path: &Path) {
    let (mut header, mut data) = parts(path);
    count(&mut header, &mut data, "bn.num_batches_tracked");
    header.as_object_mut().unwrap().remove("__metadata__");
    put(path, &header, &data);
}

/// PyTorch marks no tensor as state and counts batches in an integer tensor.
#[test]
fn checkpoints_of_pytorch_load() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-pytorch"));
    let mut trainer = trainer(&device);
    trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    let path = scratch.file("c.safetensors");
    trainer.save(&path).unwrap();
    let mut session = Session::new(&device, inference(false)).unwrap();
    session.load(&path).unwrap();
    let expected = run(&mut session);
    let (mut header, mut data) = parts(&path);
    count(&mut header, &mut data, "bn.num_batches_tracked");
    header.as_object_mut().unwrap().remove("__metadata__");
    put(&path, &header, &data);
    let mut session = Session::new(&device, inference(true)).unwrap();
    session.load(&path).unwrap();
    assert!(run(&mut session).iter().zip(&expected).all(|(a, b)| close(a, b)));
    // A count that belongs to no batch norm of the model is as unexpected as any tensor.
    count(&mut header, &mut data, "other.num_batches_tracked");
    put(&path, &header, &data);
    assert!(session.load(&path).unwrap_err().to_string().contains("other.num_batches_tracked"));
}

#[test]
fn weights_of_a_file_come_with_its_running_averages() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-weights"));
    let path = scratch.file("c.safetensors");
    let mut trained = trainer(&device);
    trained.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    trained.save(&path).unwrap();
    as_pytorch(&path);
    let mut session = Session::new(&device, inference(false)).unwrap();
    session.load(&path).unwrap();
    let expected = run(&mut session);
    let (g, _, loss) = described_once();
    let training = g.training(loss).unwrap();
    for graph in [training.graph(), inference(true).graph()] {
        let weights = Weights::init(&device, graph, 3).unwrap();
        let mut before = Session::with_weights(inference(false), &weights).unwrap();
        assert_eq!(run(&mut before)[1..], [vec![0.0; 3], vec![1.0; 3]]);
        weights.load(&path).unwrap();
        let mut after = Session::with_weights(inference(false), &weights).unwrap();
        assert_eq!([run(&mut before), run(&mut after)], [expected.clone(), expected.clone()]);
        // A trainer goes on from them, as the one that wrote the file does.
        let mut next = Trainer::with_weights(training.clone(), Optimizer::sgd(0.0), &weights).unwrap();
        next.step(&[("x", Input::f32(&IMAGE))]).unwrap();
        let [_, mean, variance] = run(&mut after);
        let mut straight = Session::with_weights(inference(false), trained.weights()).unwrap();
        trained.weights().load(&path).unwrap();
        trained.set_learning_rate(0.0).unwrap();
        trained.step(&[("x", Input::f32(&IMAGE))]).unwrap();
        assert_eq!(run(&mut straight)[1..], [mean, variance]);
    }
}

#[test]
fn a_file_without_running_averages_is_refused() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-without"));
    let path = scratch.file("c.safetensors");
    let weights = trainer(&device).weights().clone();
    weights.save(&path).unwrap();
    let (mut header, data) = parts(&path);
    let mean = header.as_object_mut().unwrap().remove("bn.running_mean").unwrap();
    header["bn.other"] = mean;
    put(&path, &header, &data);
    let before = bits(&weights);
    let text = weights.load(&path).unwrap_err().to_string();
    assert!(text.contains("'bn.running_mean' f32[3] is missing"), "{text}");
    assert_eq!(bits(&weights), before);
}

#[test]
fn weights_are_saved_with_their_running_averages() {
    let (device, scratch) = (Device::host(), Scratch::new("batch-norm-save"));
    let (checkpoint, path) = (scratch.file("c.safetensors"), scratch.file("w.safetensors"));
    let mut trainer = trainer(&device);
    let again = |weights: &Weights| {
        weights.save(&path).unwrap();
        let other = Weights::empty(&device, inference(false).graph()).unwrap();
        other.load(&path).unwrap();
        run(&mut Session::with_weights(inference(false), &other).unwrap())
    };
    let mut session = Session::with_weights(inference(false), trainer.weights()).unwrap();
    let first = run(&mut session);
    assert_eq!(again(trainer.weights()), first);
    trainer.save(&checkpoint).unwrap();
    trainer.step(&[("x", Input::f32(&IMAGE))]).unwrap();
    let second = run(&mut session);
    assert_ne!(second[1], first[1]);
    assert_eq!(again(trainer.weights()), second);
    // What a session loads is that of the weights, for other sessions too.
    let mut other = Session::with_weights(inference(true), trainer.weights()).unwrap();
    session.load(&checkpoint).unwrap();
    assert_eq!(again(trainer.weights()), first);
    assert_eq!(run(&mut other)[1..], first[1..]);
}

//! Faults of whole trainings that released systems had: memory that held NaN, weights that change under steps in flight, updates
//! in place that a reader sees, what was prepared from weights that were replaced since.

use super::{is_tested, options, tested};
use crate::fixtures::{NUMBERS, Scratch, batch, bits, small};
use griffinfly::gpu::{host, vulkan};
use griffinfly::{Device, Graph, GraphExt, Input, Optimizer, Session, Trainer, Weights, nn};

/// A NaN that no computation makes.
const POISON: u32 = 0x7fc0_dead;

/// The device under test, whose fresh memory holds this word where a program does not say what it holds.
fn filled(fill: u32) -> Device {
    #[cfg(feature = "webgpu")]
    if is_tested("webgpu") {
        use griffinfly::gpu::{Selector, webgpu};
        let options = webgpu::OpenOptions { fill, ..Default::default() };
        return Device::from_backend(webgpu::open_with(&Selector::Best, &options).unwrap());
    }
    if !is_tested("vulkan") {
        return Device::from_backend(host::open_with(&host::HostOptions { fill, ..Default::default() }));
    }
    let options = vulkan::OpenOptions { fill, ..options() };
    Device::from_backend(vulkan::open_with(&vulkan::Selector::Best, &options).unwrap())
}

/// Convolution, norms and dropout, with extents that fill no tile, no row and no alignment.
fn model() -> (Graph, griffinfly::Value) {
    let mut g = Graph::new();
    let x = g.input("x", [3, 2, 5, 7]);
    let h = nn::Conv2d::new("conv", 2, 5, 3).padding(1).apply(&mut g, x);
    let h = nn::BatchNorm2d::new("bn", 5).apply(&mut g, h);
    let h = nn::GroupNorm::new("gn", 5, 5).apply(&mut g, h).relu(&mut g);
    let h = nn::MaxPool2d::new(2).apply(&mut g, h);
    let h = g.flatten(h, 1);
    let h = g.dropout(h, 0.25);
    let y = nn::Linear::new("head", 30, 3).apply(&mut g, h);
    let y = nn::LayerNorm::new("ln", 3).apply(&mut g, y);
    let squares = g.mul(y, y);
    let kept = g.scale(squares, 0.5);
    let curved = g.exp(kept);
    let loss = g.mean_all(curved);
    (g, loss)
}

fn image() -> Vec<f32> {
    (0..210).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect()
}

/// Padding and tails that reach a norm, an update or a checkpoint.
#[test]
fn memory_that_held_nan_changes_no_training_and_no_checkpoint() {
    let scratch = Scratch::new("poison");
    let trained = |fill: u32| {
        let (g, loss) = model();
        let device = filled(fill);
        let mut trainer = Trainer::new(&device, g.training(loss).unwrap(), Optimizer::adamw(0.01)).unwrap();
        let x = image();
        let losses: Vec<u32> =
            (0..3).map(|_| trainer.step(&[("x", Input::f32(&x))]).unwrap().to_bits()).collect();
        let path = scratch.file(&format!("{fill}"));
        trainer.save(&path).unwrap();
        (losses, bits(trainer.weights()), std::fs::read(path).unwrap())
    };
    let clean = trained(0);
    assert!(clean.0.iter().all(|loss| f32::from_bits(*loss).is_finite()));
    assert!(trained(POISON) == clean);
}

/// A write by the host that overtakes steps in flight, or that the next step does not see.
#[test]
fn weights_set_while_steps_are_in_flight_wait_for_them() {
    let tested = tested();
    let trainer = || Trainer::new(&tested.device, small().training, Optimizer::sgd(0.1)).unwrap();
    let (mut waiting, mut hasty) = (trainer(), trainer());
    let mut expected: Vec<f32> = (0..3).map(|_| waiting.step(&batch()).unwrap()).collect();
    let mut losses: Vec<f32> = (0..3).filter_map(|_| hasty.submit(&batch()).unwrap()).collect();
    for trainer in [&waiting, &hasty] {
        trainer.weights().set("head.bias", &[3.0, -1.0, 0.0, 2.0, 1.0]).unwrap();
    }
    expected.push(waiting.step(&batch()).unwrap());
    losses.extend(hasty.submit(&batch()).unwrap());
    losses.extend(hasty.finish().unwrap());
    assert_eq!(losses, expected);
    assert_eq!(bits(hasty.weights()), bits(waiting.weights()));
}

/// State updated in the bytes it lies in, next to those who read what it was.
#[test]
fn updates_in_place_are_never_seen_by_other_readers() {
    let tested = tested();
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    let [a, b] = ["a", "b"].map(|name| g.state(name, [3], 1.0));
    let before = g.scale(a, 10.0);
    let sum = g.add(a, x);
    g.update(a, sum);
    // The two change places: each reads what the other was.
    let difference = g.sub(b, a);
    g.update(b, a);
    let active = g.relu(x);
    let again = g.add(active, x);
    let outputs =
        [("before", before), ("difference", difference), ("x", x), ("active", active), ("again", again)];
    let mut session = Session::new(&tested.device, g.inference(outputs).unwrap()).unwrap();
    let steps: [[f32; 3]; 3] = [[1.0, -2.0, 3.0], [0.5, 0.25, -4.0], [8.0, 0.0, -1.0]];
    let (mut a, mut b) = ([1.0_f32; 3], [1.0_f32; 3]);
    for x in steps {
        let out = session.run(&[("x", Input::f32(&x))]).unwrap();
        let each = |f: &dyn Fn(usize) -> f32| [f(0), f(1), f(2)];
        assert_eq!(out.f32("before").unwrap(), each(&|i| 10.0 * a[i]));
        assert_eq!(out.f32("difference").unwrap(), each(&|i| b[i] - a[i]));
        assert_eq!(out.f32("x").unwrap(), x);
        assert_eq!(out.f32("active").unwrap(), each(&|i| x[i].max(0.0)));
        assert_eq!(out.f32("again").unwrap(), each(&|i| x[i].max(0.0) + x[i]));
        (a, b) = (each(&|i| a[i] + x[i]), a);
    }
}

/// What a program prepared from weights, or staged for them, must not outlive them.
#[test]
fn what_was_prepared_from_weights_does_not_outlive_them() {
    let (tested, scratch) = (tested(), Scratch::new("stale"));
    let folded = || {
        let mut g = Graph::new();
        let x = g.input("x", [1, 2, 4, 4]);
        let norm = nn::BatchNorm2d::new("bn", 3).training(false);
        let y = nn::Conv2d::new("conv", 2, 3, 2).bias(false).apply_folded(&mut g, x, &norm);
        g.inference([("y", y)]).unwrap()
    };
    let files = [1, 2].map(|seed| {
        let path = scratch.file(&format!("{seed}"));
        Weights::init(&tested.device, folded().graph(), seed).unwrap().save(&path).unwrap();
        path
    });
    let x: Vec<f32> = (0..32).map(|i| i as f32 / 16.0 - 1.0).collect();
    let run = |session: &mut Session| session.run(&[("x", Input::f32(&x))]).unwrap();
    let fresh = files.each_ref().map(|path| {
        let mut session = Session::new(&tested.device, folded()).unwrap();
        session.load(path).unwrap();
        run(&mut session)
    });
    assert_ne!(fresh[0], fresh[1]);
    let mut session = Session::new(&tested.device, folded()).unwrap();
    for turn in [0, 1, 0] {
        session.load(&files[turn]).unwrap();
        assert_eq!(run(&mut session), fresh[turn], "by the session, {turn}");
    }
    session.weights().load(&files[1]).unwrap();
    assert_eq!(run(&mut session), fresh[1], "by the weights");
}

/// A batch of which no target counts: its loss is 0, the caller can read how many counted, and nothing moves.
#[test]
fn a_batch_without_targets_trains_nothing_and_says_so() {
    let tested = tested();
    let mut g = Graph::new();
    let (x, class) = (g.input("x", [4, 3]), g.input_ids("class", [4]));
    let logits = nn::Linear::new("head", 3, 5).apply(&mut g, x);
    let (loss, count) = g.cross_entropy_ignoring(logits, class, -100);
    g.output("count", count);
    let graph = g.training(loss).unwrap();
    let mut trainer = Trainer::new(&tested.device, graph, Optimizer::sgd(0.5)).unwrap();
    let before = bits(trainer.weights());
    let mut step = |class: &[i32; 4]| {
        let out = trainer.step_outputs(&[("x", Input::f32(&NUMBERS)), ("class", Input::ids(class))]).unwrap();
        ([out.f32("loss").unwrap()[0], out.f32("count").unwrap()[0]], bits(trainer.weights()))
    };
    assert_eq!(step(&[-100; 4]), ([0.0, 0.0], before.clone()));
    let ([loss, count], after) = step(&[-100, 4, -100, 0]);
    assert!(loss > 0.0 && count == 2.0 && after != before, "{loss} {count}");
}

//! Whole trainings on the device under test, against stated results on held-out data and against the curves of PyTorch.
//!
//! Software drivers make the first few steps, which takes them long enough; the host and hardware all of them. The curves are those of `bench/pytorch/curves.py`, which says how to make them anew; what it reads is written by
//! `GRIFFINFLY_STARTS=FOLDER cargo test --workspace --test main write_the_starts -- --ignored`.

mod fixture;
mod tasks;

use super::{is_tested, tested};
use fixture::Fixture;
use griffinfly::{AdamConfig, Device};
use tasks::{HeldOut, Task};

/// Trains a task, follows its curve, and gives what it makes of the held-out data in the end, with the number of steps made.
fn trained(task: &Task) -> (usize, HeldOut) {
    let tested = tested();
    let info = tested.device.info();
    let software = info.backend != "host" && !info.is_hardware_gpu;
    let fixture = Fixture::of(task.name);
    let mut trainer = task.trainer(&tested.device, task.optimizer);
    let mut losses = Vec::new();
    let mut ask_after = |steps| {
        losses.extend(task.train(&mut trainer, steps));
        fixture.follows(&losses).unwrap();
        let found = task.ask(trainer.weights());
        fixture.agrees(steps, found, task.questions()).unwrap();
        (steps, found)
    };
    let [first, all] = task.asked;
    let early = ask_after(first);
    if software { early } else { ask_after(all) }
}

#[test]
fn a_language_model_of_characters_follows_pytorch_and_learns() {
    let (steps, found) = trained(&tasks::characters());
    // Knowing nothing costs 4.17 nats per character; knowing how often each comes, 3.1.
    let stated = if steps == 300 { 2.0 } else { 2.95 };
    assert!(
        found.loss < stated,
        "{found:?} after {steps} steps, expected less than {stated} nats per character"
    );
}

#[test]
fn a_resnet_of_the_digits_follows_pytorch_and_learns() {
    let (steps, found) = trained(&tasks::digits());
    let stated = if steps == 320 { 0.97 } else { 0.5 };
    assert!(found.accuracy >= stated, "{found:?} after {steps} steps, expected {stated} of 1");
}

/// Whether a training with this optimizer follows the curve of the right one until this step.
fn follows(task: &Task, optimizer: AdamConfig, until: usize) -> Result<(), String> {
    let mut trainer = task.trainer(&Device::host(), optimizer);
    Fixture::of(task.name).follows(&task.train(&mut trainer, until))
}

#[test]
fn trainings_that_are_a_little_wrong_do_not_follow() {
    if is_tested("vulkan") || is_tested("webgpu") {
        println!("skipped: the comparison with a curve is the same on every device");
        return;
    }
    for task in [tasks::characters(), tasks::digits()] {
        let right = task.optimizer;
        for wrong in [
            AdamConfig { learning_rate: 1.01 * right.learning_rate, ..right },
            AdamConfig { beta1: right.beta1 - 0.01, ..right },
            AdamConfig { beta2: right.beta2 - 0.001, ..right },
            AdamConfig { weight_decay: right.weight_decay + 0.01, ..right },
        ] {
            assert_eq!(follows(&task, right, 5), Ok(()));
            assert!(follows(&task, wrong, 5).is_err(), "{}: {wrong:?} follows", task.name);
        }
    }
}

/// Batch norms whose averages, or weights, are those of another step answer otherwise.
#[test]
fn answers_of_another_step_do_not_agree() {
    let (task, device) = (tasks::digits(), Device::host());
    let fixture = Fixture::of(task.name);
    let mut trainer = task.trainer(&device, task.optimizer);
    let [first, _] = task.asked;
    task.train(&mut trainer, first - 1);
    let early = task.ask(trainer.weights());
    assert!(fixture.agrees(first, early, task.questions()).is_err());
    task.train(&mut trainer, first);
    assert_eq!(fixture.agrees(first, task.ask(trainer.weights()), task.questions()), Ok(()));
}

/// The band is as narrow as rounding is small: of the characters all the way, of the digits until, around step 90, an activation
/// falls on the other side of zero in one run than in another, from where on the runs of PyTorch part, too.
#[test]
fn the_band_is_narrow() {
    for (name, until, band) in [("characters", 300, 2e-4), ("digits", 80, 5e-6)] {
        let fixture = Fixture::of(name);
        let widest = (0..until).map(|step| fixture.band(step)).fold(0.0, f64::max);
        assert!(widest < band, "{name}: {widest:e} until step {until}");
        assert_eq!(fixture.follows(&fixture.moved(0.0)[..until]), Ok(()));
        for step in 0..until {
            let mut losses = fixture.moved(0.0);
            losses[step] = fixture.moved(band)[step];
            let text = fixture.follows(&losses).unwrap_err();
            assert!(text.starts_with(&format!("step {step}:")), "{text}");
        }
        assert!(fixture.follows(&[f32::NAN]).is_err());
    }
}

#[test]
#[ignore = "writes what bench/pytorch/curves.py reads"]
fn write_the_starts() {
    let folder = std::env::var_os("GRIFFINFLY_STARTS").expect("GRIFFINFLY_STARTS names a folder");
    std::fs::create_dir_all(&folder).unwrap();
    for task in [tasks::characters(), tasks::digits()] {
        fixture::write(&task, folder.as_ref());
    }
}

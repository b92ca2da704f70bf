//! Trainers: steps in flight, learning rate, failures, going on from a checkpoint.

use crate::fixtures::{CLASSES, NUMBERS, Scratch, batch, bits, small, trainer};
use griffinfly::gpu::host::{FaultPlan, HostOptions, open_with};
use griffinfly::{Device, Error, Input, Memory, Optimizer, Session, Trainer, Weights};

/// A device and the failures it can be told to have.
fn faulty() -> (Device, FaultPlan) {
    let options = HostOptions::default();
    let faults = options.faults.clone();
    (Device::from_backend(open_with(&options)), faults)
}

#[test]
fn steps_in_flight_give_the_same_losses() {
    let device = Device::host();
    let (mut one, mut many) =
        (trainer(&device, Optimizer::adam(0.01)), trainer(&device, Optimizer::adam(0.01)));
    let expected: Vec<f32> = (0..12).map(|_| one.step(&batch()).unwrap()).collect();
    let mut losses = Vec::new();
    for _ in 0..12 {
        losses.extend(many.submit(&batch()).unwrap());
    }
    assert!(losses.len() < 12);
    losses.extend(many.finish().unwrap());
    assert_eq!(losses, expected);
    assert_eq!(bits(one.weights()), bits(many.weights()));
    assert!(many.finish().unwrap().is_empty());
}

#[test]
fn waiting_for_one_step_keeps_the_losses_of_others() {
    let device = Device::host();
    let (mut one, mut many) = (trainer(&device, Optimizer::sgd(0.1)), trainer(&device, Optimizer::sgd(0.1)));
    let expected: Vec<f32> = (0..3).map(|_| one.step(&batch()).unwrap()).collect();
    many.submit(&batch()).unwrap();
    many.submit(&batch()).unwrap();
    let last = many.step(&batch()).unwrap();
    let mut losses = many.finish().unwrap();
    losses.push(last);
    assert_eq!(losses, expected);
}

#[test]
fn all_outputs_of_a_step_can_be_read() {
    let mut trainer = trainer(&Device::host(), Optimizer::sgd(0.1));
    let out = trainer.step_outputs(&batch()).unwrap();
    assert_eq!(out.all().len(), 1);
    assert!(out.f32("loss").unwrap()[0] > 0.0);
}

#[test]
fn the_learning_rate_changes_without_a_new_program() {
    let device = Device::host();
    let mut trainer = trainer(&device, Optimizer::sgd(0.5));
    let before = bits(trainer.weights());
    trainer.set_learning_rate(0.0).unwrap();
    let first = trainer.step(&batch()).unwrap();
    assert_eq!(bits(trainer.weights()), before);
    trainer.set_learning_rate(0.5).unwrap();
    assert_eq!(trainer.step(&batch()).unwrap(), first);
    assert_ne!(bits(trainer.weights()), before);
    assert!(trainer.step(&batch()).unwrap() < first);
    for wrong in [f64::NAN, f64::INFINITY, -0.1] {
        assert!(trainer.set_learning_rate(wrong).is_err());
    }
    assert_eq!(trainer.learning_rate(), 0.5);
}

#[test]
fn a_trainer_and_a_session_share_weights() {
    let device = Device::host();
    let mut trainer = trainer(&device, Optimizer::sgd(0.5));
    let mut session = Session::with_weights(small().inference, trainer.weights()).unwrap();
    let run = |session: &mut Session| session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    let before = run(&mut session);
    for _ in 0..200 {
        trainer.step(&batch()).unwrap();
    }
    let after = run(&mut session);
    assert_ne!(before, after);
    let rows = after.f32("logits").unwrap().chunks(5);
    assert!(rows.zip(CLASSES).all(|(row, class)| row.iter().all(|x| *x <= row[class as usize])));
}

#[test]
fn a_failed_submission_changes_nothing() {
    let (device, faults) = faulty();
    let mut undisturbed = trainer(&device, Optimizer::adam(0.01));
    let mut trainer = trainer(&device, Optimizer::adam(0.01));
    let expected: Vec<f32> = (0..6).map(|_| undisturbed.step(&batch()).unwrap()).collect();
    let mut losses = Vec::new();
    for i in 0..6 {
        if i % 2 == 1 {
            faults.fail_submit(1);
            let error = trainer.submit(&batch()).unwrap_err();
            assert!(matches!(error, Error::Gpu(_)) && !error.is_device_lost(), "{error}");
            assert_eq!(trainer.steps(), i);
        }
        losses.extend(trainer.submit(&batch()).unwrap());
    }
    losses.extend(trainer.finish().unwrap());
    assert_eq!(losses, expected);
    assert_eq!(bits(trainer.weights()), bits(undisturbed.weights()));
}

#[test]
fn a_failed_allocation_is_an_error_at_every_place() {
    for nth in 1..40 {
        let (device, faults) = faulty();
        faults.fail_allocation(nth);
        // Memory first: with no smaller plan to go to, every failure is final.
        let made = Weights::init(&device, small().training.graph(), 0).and_then(|weights| {
            Trainer::with_settings(small().training, Optimizer::adam(0.01), &weights, Memory::first())
        });
        match made {
            Err(error) => assert!(error.to_string().contains("out of device memory"), "{error}"),
            Ok(mut trainer) => {
                assert!(nth > 3, "nothing was allocated");
                trainer.step(&batch()).unwrap();
                return;
            }
        }
    }
    panic!("a small trainer makes fewer than 40 allocations");
}

#[test]
fn going_on_from_a_checkpoint_is_as_if_nothing_happened() {
    let optimizers =
        [Optimizer::sgd(0.1), Optimizer::momentum(0.1, 0.9), Optimizer::adam(0.01), Optimizer::adamw(0.01)];
    for (i, optimizer) in optimizers.into_iter().enumerate() {
        let scratch = Scratch::new(&format!("resume{i}"));
        let mut straight = trainer(&Device::host(), optimizer);
        let mut first = trainer(&Device::host(), optimizer);
        let mut expected: Vec<f32> = (0..4).map(|_| straight.step(&batch()).unwrap()).collect();
        straight.set_learning_rate(0.02).unwrap();
        expected.extend((0..4).map(|_| straight.step(&batch()).unwrap()));

        let mut losses: Vec<f32> = (0..4).map(|_| first.step(&batch()).unwrap()).collect();
        first.set_learning_rate(0.02).unwrap();
        first.save(scratch.file("c")).unwrap();
        drop(first);
        let mut second = trainer(&Device::host(), optimizer);
        second.step(&batch()).unwrap();
        second.load(scratch.file("c")).unwrap();
        assert_eq!((second.steps(), second.learning_rate()), (4, 0.02));
        losses.extend((0..4).map(|_| second.step(&batch()).unwrap()));
        assert_eq!(losses, expected, "{optimizer:?}");
        assert_eq!(bits(second.weights()), bits(straight.weights()), "{optimizer:?}");
    }
}

#[test]
fn a_checkpoint_holds_the_steps_in_flight() {
    let scratch = Scratch::new("in-flight");
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.01));
    for _ in 0..3 {
        trainer.submit(&batch()).unwrap();
    }
    trainer.save(scratch.file("c")).unwrap();
    let mut other = crate::fixtures::trainer(&Device::host(), Optimizer::adam(0.01));
    other.load(scratch.file("c")).unwrap();
    trainer.finish().unwrap();
    assert_eq!((other.steps(), bits(other.weights())), (3, bits(trainer.weights())));
}

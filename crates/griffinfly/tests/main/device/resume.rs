//! Going on from a checkpoint, also after the device was lost, gives the bits of a training that never stopped.

use super::{is_tested, options, tested};
use crate::fixtures::{Scratch, batch, bits, trainer};
use griffinfly::gpu::vulkan::{self, Selector, SubmitFault};
use griffinfly::{Device, Optimizer};

#[test]
fn resumed_training_gives_the_same_bits() {
    let (tested, scratch) = (tested(), Scratch::new("device-resume"));
    let mut straight = trainer(&tested.device, Optimizer::adam(0.01));
    let expected: Vec<f32> = (0..10).map(|_| straight.step(&batch()).unwrap()).collect();
    let mut first = trainer(&tested.device, Optimizer::adam(0.01));
    for _ in 0..5 {
        first.submit(&batch()).unwrap();
    }
    first.save(scratch.file("c")).unwrap();
    let mut losses = vec![];
    let mut second = trainer(&tested.device, Optimizer::adam(0.01));
    second.load(scratch.file("c")).unwrap();
    for _ in 0..5 {
        losses.extend(second.submit(&batch()).unwrap());
    }
    losses.extend(second.finish().unwrap());
    assert_eq!(losses, expected[5..]);
    assert_eq!(bits(second.weights()), bits(straight.weights()));
}

#[test]
fn a_lost_device_is_replaced() {
    if !is_tested("vulkan") {
        println!("skipped: failures are injected into the Vulkan device");
        return;
    }
    let (tested, scratch) = (tested(), Scratch::new("device-lost"));
    let mut straight = trainer(&tested.device, Optimizer::adam(0.01));
    let expected: Vec<f32> = (0..6).map(|_| straight.step(&batch()).unwrap()).collect();

    let options = options();
    let faults = options.faults.clone();
    let vulkan = vulkan::open_with(&Selector::Best, &options).unwrap();
    let log = vulkan.validation_log();
    let device = Device::from_backend(vulkan);
    let mut first = trainer(&device, Optimizer::adam(0.01));
    let mut losses: Vec<f32> = (0..3).map(|_| first.step(&batch()).unwrap()).collect();
    first.save(scratch.file("c")).unwrap();
    faults.fail_submit(1, SubmitFault::DeviceLost);
    assert!(first.step(&batch()).unwrap_err().is_device_lost());
    assert_eq!(first.steps(), 3);
    let old = std::fs::read(scratch.file("c")).unwrap();
    assert!(first.save(scratch.file("c")).unwrap_err().is_device_lost());
    assert_eq!(std::fs::read(scratch.file("c")).unwrap(), old);
    assert!(first.step(&batch()).unwrap_err().is_device_lost());
    drop((first, device));
    assert_eq!(log.messages(), Vec::<String>::new());

    let mut second = trainer(&tested.device, Optimizer::adam(0.01));
    second.load(scratch.file("c")).unwrap();
    losses.extend((0..3).map(|_| second.step(&batch()).unwrap()));
    assert_eq!(losses, expected);
    assert_eq!(bits(second.weights()), bits(straight.weights()));
}

#[test]
fn a_failed_submission_changes_nothing() {
    if !is_tested("vulkan") {
        println!("skipped: failures are injected into the Vulkan device");
        return;
    }
    let options = options();
    let faults = options.faults.clone();
    let device = Device::from_backend(vulkan::open_with(&Selector::Best, &options).unwrap());
    let mut undisturbed = trainer(&device, Optimizer::adam(0.01));
    let expected: Vec<f32> = (0..6).map(|_| undisturbed.step(&batch()).unwrap()).collect();
    let mut trainer = trainer(&device, Optimizer::adam(0.01));
    let mut losses = Vec::new();
    for i in 0..6 {
        if i % 2 == 1 {
            faults.fail_submit(1, SubmitFault::OutOfHostMemory);
            assert!(!trainer.submit(&batch()).unwrap_err().is_device_lost());
            assert_eq!(trainer.steps(), i);
        }
        losses.extend(trainer.submit(&batch()).unwrap());
    }
    losses.extend(trainer.finish().unwrap());
    assert_eq!(losses, expected);
    assert_eq!(bits(trainer.weights()), bits(undisturbed.weights()));
}

//! Training on the device and on the host agrees step by step, and repeats to the bit.

use super::tested;
use crate::fixtures::bits;
use griffinfly::{Device, Optimizer, Trainer, data, models};

const STEPS: usize = 50;

fn losses(device: &Device, optimizer: Optimizer) -> (Vec<f32>, Vec<Vec<u32>>) {
    let digits = data::digits();
    let mut trainer = Trainer::new(device, models::digits(64).training().unwrap(), optimizer).unwrap();
    let losses = trainer.fit(digits.train.batches(64, 3).unwrap().take(STEPS), &mut |_, _| {}).unwrap();
    (losses, bits(trainer.weights()))
}

fn agree(optimizer: Optimizer, tolerance: f32) {
    let tested = tested();
    let (got, first) = losses(&tested.device, optimizer);
    let (expected, _) = losses(&Device::host(), optimizer);
    assert_eq!((got.len(), expected.len()), (STEPS, STEPS));
    for (step, (a, b)) in got.iter().zip(&expected).enumerate() {
        let difference = (a - b).abs() / b.abs();
        assert!(difference <= tolerance, "step {step}: {a} and {b} differ by {difference:e}");
    }
    assert!(got[STEPS - 1] < got[0]);
    let (again, second) = losses(&tested.device, optimizer);
    assert_eq!(got, again);
    assert!(first == second, "the same seed gave other parameters");
}

#[test]
fn with_sgd() {
    agree(Optimizer::sgd(0.05), 1e-5);
}

#[test]
fn with_adam() {
    agree(Optimizer::adam(1e-3), 1e-4);
}

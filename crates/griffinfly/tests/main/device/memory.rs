//! Every way to plan memory gives the same training, to the bit.

use super::tested;
use crate::fixtures::{batch, bits, branches};
use griffinfly::{Device, Memory, Optimizer, Trainer, Weights};

fn trained(device: &Device, memory: Memory) -> (u64, Vec<f32>, Vec<Vec<u32>>) {
    let weights = Weights::init(device, branches().graph(), 1).unwrap();
    let mut trainer = Trainer::with_settings(branches(), Optimizer::adamw(1e-2), &weights, memory).unwrap();
    let losses = (0..4).map(|_| trainer.step(&batch()).unwrap()).collect();
    (trainer.program().memory.physical_bytes, losses, bits(&weights))
}

#[test]
fn less_memory_is_the_same_training() {
    let tested = tested();
    let (most, losses, parameters) = trained(&tested.device, Memory::default());
    let (least, ..) = trained(&tested.device, Memory::first());
    assert!(least < most, "{least} bytes memory first, {most} speed first");
    for memory in [Memory::first(), Memory::within((least + most) / 2), Memory::within(least)] {
        let (bytes, other, others) = trained(&tested.device, memory);
        assert!(memory.budget.is_none_or(|budget| bytes <= budget), "{bytes} for {memory:?}");
        assert_eq!(other, losses, "{memory:?}");
        assert!(others == parameters, "{memory:?}");
    }
}

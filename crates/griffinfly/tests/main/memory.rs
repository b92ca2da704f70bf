//! Budgets for memory, and a device that has no room.

use crate::fixtures::branches;
use griffinfly::compile::CompileError;
use griffinfly::gpu::host::{HostOptions, open_with};
use griffinfly::{Device, Error, Memory, MemoryMode, Optimizer, Session, Trainer, Weights, models};

fn trainer(device: &Device, memory: Memory) -> Result<Trainer, Error> {
    let weights = Weights::init(device, branches().graph(), 0)?;
    Trainer::with_settings(branches(), Optimizer::adam(1e-3), &weights, memory)
}

#[test]
fn a_budget_that_no_plan_meets_is_refused_with_the_numbers() {
    let device = Device::host();
    let least = trainer(&device, Memory::first()).unwrap().program().memory.physical_bytes;
    match trainer(&device, Memory::within(least / 2)).unwrap_err() {
        Error::Compile(CompileError::Budget { needed, budget, .. }) => {
            assert_eq!((needed, budget), (least, least / 2));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_session_for_other_shapes_keeps_the_wish() {
    let device = Device::host();
    let graph = models::digits(8).inference().unwrap();
    let weights = Weights::init(&device, graph.graph(), 0).unwrap();
    let session = Session::with_settings(graph, &weights, Memory::first()).unwrap();
    let other = session.rebind(&[("image", &[4, 1, 8, 8])]).unwrap();
    assert_eq!(other.program().memory.mode, MemoryMode::Memory);
}

/// The most a device may hold for the trainer to be made is between the bytes of the two plans.
#[test]
fn where_the_device_has_no_room_memory_goes_first() {
    let bytes = |memory| trainer(&Device::host(), memory).unwrap().program().memory.physical_bytes;
    let (least, most) = (bytes(Memory::first()), bytes(Memory::default()));
    let with_room = |bytes| {
        let device = open_with(&HostOptions { memory_bytes: Some(bytes), ..HostOptions::default() });
        trainer(&Device::from_backend(device), Memory::default())
    };
    let roomy = with_room(2 * most).unwrap();
    assert_eq!(roomy.program().memory.mode, MemoryMode::Speed);
    // Beside the program the host holds nothing, so the larger plan needs its bytes exactly.
    let tight = with_room(most - 1).unwrap();
    assert_eq!(tight.program().memory.mode, MemoryMode::Memory);
    assert_eq!(tight.program().memory.physical_bytes, least);
    let error = with_room(least - 1).unwrap_err();
    assert!(error.to_string().contains("out of device memory"), "{error}");
}

//! Injected failures: what fails says so, what was there stays.

use super::with_device;
use crate::device_executing::{Adding, accumulating, adding};
use crate::device_executing::{LONG, bind, to_bytes};
use griffinfly_gpu::vulkan::{SubmitFault, VulkanDevice};
use griffinfly_gpu::{Device, Executor, GpuError, Sections};
use std::sync::Arc;

fn instantiate(device: &VulkanDevice, length: usize) -> (Adding, Result<Box<dyn Executor>, GpuError>) {
    let made = adding(device.target(), length);
    let executor = device.instantiate(Arc::new(made.program.clone()), &[]);
    (made, executor)
}

#[test]
fn each_allocation_may_fail() {
    with_device(|device, options| {
        options.faults.fail_allocation(1);
        let error = device.buffer(1000).err().unwrap();
        assert_eq!(error, GpuError::OutOfMemory { what: "a buffer".into(), bytes: 1000 });
        let mut failures = 0;
        for nth in 1.. {
            options.faults.fail_allocation(nth);
            match instantiate(device, 1000).1 {
                Err(GpuError::OutOfMemory { what, bytes }) => {
                    assert!(bytes >= 4000 && !what.is_empty(), "{what} {bytes}");
                    failures += 1;
                }
                Err(error) => panic!("{error}"),
                Ok(_) => break,
            }
        }
        options.faults.clear();
        // Two inputs per slot, one output; staging is there or not.
        assert!((7..=8).contains(&failures), "{failures}");
        device.buffer(1000).unwrap();
    });
}

#[test]
fn outputs_without_a_place_on_the_host_change_nothing() {
    with_device(|device, options| {
        let made = accumulating(device.target(), 8, 1);
        let bound = bind(device.as_ref(), &[(made.state_arena, 256)]);
        let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
        executor.write(made.scalar, &1.0_f32.to_ne_bytes()).unwrap();
        executor.write(made.x, &to_bytes(&[2.0; 8])).unwrap();
        options.faults.fail_allocation(1);
        // Outputs that stay on the device need no place.
        let apart = executor.submit(Sections { outputs: false, ..Sections::STEP }).unwrap();
        executor.wait(apart, LONG).unwrap();
        let error = executor.submit(Sections::STEP).unwrap_err();
        assert!(matches!(&error, GpuError::OutOfMemory { what, .. } if what.contains("readback")), "{error}");
        options.faults.clear();
        for step in 2..9 {
            let ticket = executor.submit(Sections::STEP).unwrap();
            assert_eq!(ticket.0, step);
            let mut bytes = [0; 4];
            executor.read(ticket, made.result, &mut bytes).unwrap();
            assert_eq!(f32::from_ne_bytes(bytes), 16.0 * step as f32);
        }
    });
}

#[test]
fn a_failed_pipeline_names_its_kernel() {
    with_device(|device, options| {
        options.faults.fail_pipeline(1);
        let error = instantiate(device, 10).1.err().unwrap();
        assert!(
            matches!(&error, GpuError::Driver { call: "vkCreateComputePipelines", result } if result.contains("test 0")),
            "{error}"
        );
        instantiate(device, 10).1.unwrap();
    });
}

#[test]
fn a_failed_submission_changes_nothing() {
    with_device(|device, options| {
        let made = accumulating(device.target(), 8, 1);
        let bound = bind(device.as_ref(), &[(made.state_arena, 256)]);
        let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
        executor.write(made.scalar, &1.0_f32.to_ne_bytes()).unwrap();
        let (mut expected, mut tickets) = (0.0, 0);
        for step in 0..9 {
            executor.write(made.x, &to_bytes(&[step as f32; 8])).unwrap();
            if step % 2 == 1 {
                options.faults.fail_submit(1, SubmitFault::OutOfHostMemory);
                let error = executor.submit(Sections::STEP).unwrap_err();
                assert!(matches!(error, GpuError::Driver { call: "vkQueueSubmit", .. }), "{error}");
            }
            let ticket = executor.submit(Sections::STEP).unwrap();
            tickets += 1;
            assert_eq!(ticket.0, tickets);
            expected += step as f32 * 8.0;
            let mut bytes = [0; 4];
            executor.read(ticket, made.result, &mut bytes).unwrap();
            assert_eq!(f32::from_ne_bytes(bytes), expected);
        }
    });
}

#[test]
fn a_failed_transfer_changes_nothing() {
    with_device(|device, options| {
        let buffer = device.buffer(64).unwrap();
        device.write(&buffer, 0, &[1; 64]).unwrap();
        options.faults.fail_submit(1, SubmitFault::OutOfHostMemory);
        assert!(matches!(device.write(&buffer, 0, &[2; 64]), Err(GpuError::Driver { .. })));
        options.faults.fail_submit(1, SubmitFault::OutOfHostMemory);
        let mut bytes = [9; 64];
        assert!(matches!(device.read(&buffer, 0, &mut bytes), Err(GpuError::Driver { .. })));
        assert_eq!(bytes, [9; 64]);
        device.read(&buffer, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [1; 64]);
    });
}

#[test]
fn a_lost_device_stays_lost() {
    with_device(|device, options| {
        let buffer = device.buffer(64).unwrap();
        let (made, executor) = instantiate(device, 1000);
        let mut executor = executor.unwrap();
        let ticket = executor.submit(Sections::STEP).unwrap();
        options.faults.fail_submit(1, SubmitFault::DeviceLost);
        let lost = |result: Result<(), GpuError>| {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, GpuError::DeviceLost { device: name, .. } if *name == device.info().name),
                "{error}"
            );
        };
        lost(executor.submit(Sections::STEP).map(drop));
        lost(executor.submit(Sections::STEP).map(drop));
        lost(executor.write(made.a, &[0; 4000]));
        lost(executor.wait(ticket, LONG));
        lost(executor.is_done(ticket).map(drop));
        lost(executor.read(ticket, made.y, &mut [0; 4000]));
        lost(executor.profile(Sections::STEP).map(drop));
        lost(device.write(&buffer, 0, &[0; 64]));
        lost(device.read(&buffer, 0, &mut [0; 64]));
        lost(device.buffer(64).map(drop));
        lost(instantiate(device, 10).1.map(drop));
    });
}

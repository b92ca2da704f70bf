//! Steps in flight.

use super::programs::{accumulating, adding};
use super::{LONG, bind, to_bytes, with_device};
use crate::under_test::with_slots;
use griffinfly_gpu::{Device, Executor, GpuError, Sections, Ticket};
use std::sync::Arc;
use std::time::Duration;

const LENGTH: usize = 257;

fn value(executor: &mut dyn Executor, ticket: Ticket, external: usize) -> f32 {
    let mut bytes = [0; 4];
    executor.read(ticket, external, &mut bytes).unwrap();
    f32::from_ne_bytes(bytes)
}

#[test]
fn overlapping_uploads_reach_their_own_step() {
    with_device(|device| check_overlap(device, 40));
}

#[test]
fn two_and_four_slots_work_too() {
    for slots in [2, 4] {
        with_slots((0, slots), |device| check_overlap(device.as_ref(), 10));
    }
}

/// Submits as many steps as there are slots before waiting for the first, each with its own inputs.
fn check_overlap(device: &dyn Device, steps: usize) {
    let made = accumulating(device.target(), LENGTH, 1);
    let bound = bind(device, &[(made.state_arena, 256)]);
    let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
    let slots = executor.slots();
    let (mut expected, mut state) = (Vec::new(), 0.0_f32);
    for step in 0..steps {
        let (x, scalar) = (step as f32 + 1.0, if step % 3 == 0 { 0.5_f32 } else { -0.25 });
        executor.write(made.x, &to_bytes(&[x; LENGTH])).unwrap();
        executor.write(made.scalar, &scalar.to_ne_bytes()).unwrap();
        let ticket = executor.submit(Sections::STEP).unwrap();
        assert_eq!(ticket, Ticket(step as u64 + 1));
        state = state * scalar + x * LENGTH as f32;
        expected.push(state);
        if step + 1 >= slots {
            let oldest = step + 1 - slots;
            assert_eq!(value(&mut *executor, Ticket(oldest as u64 + 1), made.result), expected[oldest]);
        }
    }
    for (step, expected) in expected.iter().enumerate().skip(steps - slots) {
        assert_eq!(value(&mut *executor, Ticket(step as u64 + 1), made.result), *expected);
    }
}

#[test]
fn inputs_keep_their_last_value_in_every_slot() {
    with_device(|device| {
        let made = adding(device.target(), 4);
        let mut executor = device.instantiate(Arc::new(made.program), &[]).unwrap();
        let (mut a, mut b) = (0.0_f32, 0.0_f32);
        for step in 0..16 {
            if step % 5 == 1 {
                a = step as f32;
                executor.write(made.a, &to_bytes(&[-1.0; 4])).unwrap();
                executor.write(made.a, &to_bytes(&[a; 4])).unwrap();
            }
            if step % 7 == 2 {
                b = step as f32;
                executor.write(made.b, &to_bytes(&[b; 4])).unwrap();
            }
            let ticket = executor.submit(Sections::STEP).unwrap();
            let mut bytes = [0; 16];
            executor.read(ticket, made.y, &mut bytes).unwrap();
            assert_eq!(bytes.to_vec(), to_bytes(&[a + 3.0 * b; 4]), "step {step}");
        }
    });
}

#[test]
fn a_running_step_times_out_and_still_finishes() {
    with_device(|device| {
        let made = accumulating(device.target(), LENGTH, 500);
        let bound = bind(device, &[(made.state_arena, 256)]);
        let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
        executor.write(made.x, &to_bytes(&[1.0; LENGTH])).unwrap();
        let ticket = executor.submit(Sections::STEP).unwrap();
        let error = executor.wait(ticket, Duration::from_micros(10)).unwrap_err();
        assert!(matches!(error, GpuError::Timeout { ticket: 1, .. }), "{error}");
        executor.wait(ticket, LONG).unwrap();
        assert_eq!(value(&mut *executor, ticket, made.result), LENGTH as f32);
    });
}

#[test]
fn old_and_unknown_tickets_are_refused() {
    with_device(|device| {
        let made = adding(device.target(), 4);
        let mut executor = device.instantiate(Arc::new(made.program), &[]).unwrap();
        let mut bytes = [0; 16];
        assert!(matches!(executor.wait(Ticket(1), LONG), Err(GpuError::Usage { .. })));
        assert!(matches!(executor.is_done(Ticket(0)), Err(GpuError::Usage { .. })));
        let first = executor.submit(Sections::STEP).unwrap();
        for _ in 1..executor.slots() {
            executor.submit(Sections::STEP).unwrap();
        }
        executor.read(first, made.y, &mut bytes).unwrap();
        executor.submit(Sections::STEP).unwrap();
        assert!(matches!(executor.read(first, made.y, &mut bytes), Err(GpuError::Usage { .. })));
        executor.wait(first, LONG).unwrap();
        assert!(executor.is_done(first).unwrap());
    });
}

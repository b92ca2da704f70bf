//! What is awaited: steps, reads; and copies between buffers.

use super::programs::{accumulating, adding};
use super::{LONG, bind, to_bytes, to_floats, with_device};
use griffinfly_gpu::{Buffer, GpuError, Sections, Ticket};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The result of a future, which is asked again and again.
pub(crate) fn awaited<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let start = Instant::now();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => assert!(start.elapsed() < LONG, "it is never done"),
        }
    }
}

#[test]
fn awaited_steps_can_be_read_at_once() {
    with_device(|device| {
        let made = accumulating(device.target(), 257, 1);
        let bound = bind(device, &[(made.state_arena, 256)]);
        let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
        executor.write(made.scalar, &1.0_f32.to_ne_bytes()).unwrap();
        executor.write(made.x, &to_bytes(&[1.0; 257])).unwrap();
        for step in 1..=7_u64 {
            let ticket = executor.submit(Sections::STEP).unwrap();
            awaited(executor.wait_async(ticket)).unwrap();
            assert!(executor.is_done(ticket).unwrap());
            let mut bytes = [0; 4];
            executor.read(ticket, made.result, &mut bytes).unwrap();
            assert_eq!(f32::from_ne_bytes(bytes), 257.0 * step as f32);
        }
        // Done long ago, its outputs overwritten.
        awaited(executor.wait_async(Ticket(1))).unwrap();
        for unknown in [0, 8] {
            let error = awaited(executor.wait_async(Ticket(unknown))).unwrap_err();
            assert!(matches!(error, GpuError::Usage { .. }), "{error}");
        }
    });
}

#[test]
fn an_awaited_step_without_outputs_is_done() {
    with_device(|device| {
        let made = adding(device.target(), 4);
        let mut executor = device.instantiate(Arc::new(made.program), &[]).unwrap();
        let ticket = executor.submit(Sections { outputs: false, ..Sections::STEP }).unwrap();
        awaited(executor.wait_async(ticket)).unwrap();
        assert!(executor.is_done(ticket).unwrap());
    });
}

#[test]
fn an_awaited_read_has_what_was_there_when_it_was_asked_for() {
    with_device(|device| {
        let buffer = device.buffer(1027).unwrap();
        let before: Vec<u8> = (0..1027).map(|i| (i * 7 % 251) as u8).collect();
        device.write(&buffer, 0, &before).unwrap();
        let ranges = [(0, 1027), (0, 4), (4, 1020), (1, 2), (3, 6), (1023, 4), (1026, 1), (512, 0)];
        let reads = ranges.map(|(offset, bytes)| device.read_async(&buffer, offset, bytes));
        device.write(&buffer, 0, &[255; 1027]).unwrap();
        for ((offset, bytes), read) in ranges.into_iter().zip(reads) {
            let offset = offset as usize;
            assert_eq!(awaited(read).unwrap(), before[offset..offset + bytes], "{bytes} at {offset}");
        }
        let error = awaited(device.read_async(&buffer, 1020, 8)).unwrap_err();
        assert!(error.to_string().contains("bytes 1020 to 1028 of 1027"), "{error}");
    });
}

#[test]
fn copies_move_words_and_nothing_else() {
    with_device(|device| {
        let (from, to) = (device.buffer(64).unwrap(), device.buffer(32).unwrap());
        let numbers: Vec<f32> = (0..16).map(|i| i as f32).collect();
        device.write(&from, 0, &to_bytes(&numbers)).unwrap();
        device.write(&to, 0, &to_bytes(&[-1.0; 8])).unwrap();
        device.copy((&from, 20), (&to, 4), 12).unwrap();
        device.copy((&from, 64), (&to, 32), 0).unwrap();
        let mut bytes = [0; 32];
        device.read(&to, 0, &mut bytes).unwrap();
        assert_eq!(to_floats(&bytes), [-1.0, 5.0, 6.0, 7.0, -1.0, -1.0, -1.0, -1.0]);

        let refused = |from: (&Arc<dyn Buffer>, u64), to: (&Arc<dyn Buffer>, u64), bytes, part: &str| {
            let error = device.copy(from, to, bytes).unwrap_err();
            assert!(matches!(error, GpuError::Usage { .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        };
        refused((&from, 0), (&from, 32), 4, "from a buffer to itself");
        refused((&from, 2), (&to, 0), 4, "4 bytes at 2 to 0 are no words");
        refused((&from, 0), (&to, 0), 6, "6 bytes");
        refused((&from, 60), (&to, 0), 8, "the source of a copy: bytes 60 to 68 of 64");
        refused((&from, 0), (&to, 28), 8, "the target of a copy: bytes 28 to 36 of 32");
        refused((&from, u64::MAX - 3), (&to, 0), 8, "the source of a copy");
        let mut after = [0; 32];
        device.read(&to, 0, &mut after).unwrap();
        assert_eq!(after, bytes);
    });
}

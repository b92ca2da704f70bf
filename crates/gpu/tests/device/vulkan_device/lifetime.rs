//! Creation and destruction, in any order and on several threads.

use super::{enabled, options};
use crate::device_executing::{accumulating, adding};
use crate::device_executing::{bind, to_bytes};
use griffinfly_gpu::vulkan::{OpenOptions, Selector, open_with};
use griffinfly_gpu::{Device, Sections};
use std::sync::Arc;

#[test]
fn executors_and_buffers_outlive_their_device() {
    if !enabled() {
        return;
    }
    let device = open_with(&Selector::Best, &options()).unwrap();
    let log = device.validation_log();
    let made = accumulating(device.target(), 64, 50);
    let bound = bind(device.as_ref(), &[(made.state_arena, 256)]);
    let buffer = bound[0].1.clone();
    let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
    drop((device, bound));
    executor.write(made.x, &to_bytes(&[2.0; 64])).unwrap();
    let ticket = executor.submit(Sections::STEP).unwrap();
    let mut bytes = [0; 4];
    executor.read(ticket, made.result, &mut bytes).unwrap();
    assert_eq!(f32::from_ne_bytes(bytes), 128.0);
    // Goes while steps are in flight.
    executor.submit(Sections::STEP).unwrap();
    executor.submit(Sections::STEP).unwrap();
    drop(executor);
    assert_eq!(buffer.bytes(), 256);
    drop(buffer);
    assert_eq!(log.messages(), Vec::<String>::new());
}

#[test]
fn many_devices_come_and_go() {
    if !enabled() {
        return;
    }
    for _ in 0..25 {
        let device = open_with(&Selector::Best, &options()).unwrap();
        let log = device.validation_log();
        device.write(&device.buffer(64).unwrap(), 0, &[1; 64]).unwrap();
        drop(device);
        assert_eq!(log.messages(), Vec::<String>::new());
    }
}

#[test]
fn many_executors_come_and_go() {
    if !enabled() {
        return;
    }
    let device = open_with(&Selector::Best, &options()).unwrap();
    let made = adding(device.target(), 100);
    let program = Arc::new(made.program);
    for _ in 0..100 {
        let mut executor = device.instantiate(program.clone(), &[]).unwrap();
        executor.submit(Sections::STEP).unwrap();
    }
    assert_eq!(device.validation_messages(), Vec::<String>::new());
}

#[test]
fn threads_use_one_device_at_once() {
    if !enabled() {
        return;
    }
    let shared = open_with(&Selector::Best, &options()).unwrap();
    on_four_threads(|thread, round| use_device(shared.as_ref(), thread, round));
    assert_eq!(shared.validation_messages(), Vec::<String>::new());
}

/// Without validation: the layer changes its table of devices while others read it, see [`OpenOptions::validation`].
#[test]
fn threads_open_and_use_devices_at_once() {
    if !enabled() {
        return;
    }
    let options = OpenOptions { validation: false, ..options() };
    let shared = open_with(&Selector::Best, &options).unwrap();
    on_four_threads(|thread, round| {
        let own = open_with(&Selector::Best, &options).unwrap();
        use_device(own.as_ref(), thread, round);
        use_device(shared.as_ref(), thread, round);
    });
}

fn on_four_threads(test: impl Fn(u8, u8) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let test = &test;
            scope.spawn(move || (0..3).for_each(|round| test(thread, round)));
        }
    });
}

/// A buffer and a program of its own, with numbers that no other thread and round has.
fn use_device(device: &dyn Device, thread: u8, round: u8) {
    let mine = thread * 16 + round;
    let buffer = device.buffer(1000).unwrap();
    device.write(&buffer, 0, &[mine; 1000]).unwrap();
    let made = adding(device.target(), 4);
    let mut executor = device.instantiate(Arc::new(made.program), &[]).unwrap();
    executor.write(made.a, &to_bytes(&[f32::from(mine); 4])).unwrap();
    let ticket = executor.submit(Sections::STEP).unwrap();
    let mut sum = [0; 16];
    executor.read(ticket, made.y, &mut sum).unwrap();
    assert_eq!(sum.to_vec(), to_bytes(&[f32::from(mine); 4]));
    let mut bytes = [0; 1000];
    device.read(&buffer, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [mine; 1000]);
}

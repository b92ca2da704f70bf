//! Steps, slots, inputs and outputs, buffers and injected failures.

use super::harness::{STATE, bind, buffer_of, device, empty_program, push, to_bytes, to_words};
use griffinfly_compile::program::{
    Arena, ArenaId, ConstantData, External, ExternalKind, Place, Program, Role, SectionKind,
};
use griffinfly_gpu::host::{FaultPlan, HostOptions, open, open_with};
use griffinfly_gpu::{Device, Executor, GpuError, Sections, Ticket};
use griffinfly_ir::index::{Access, Store};
use griffinfly_ir::loops::{Body, Loop, LoopKind, Map};
use griffinfly_ir::types::TensorType;
use std::sync::Arc;
use std::time::Duration;

/// Elements of every tensor here.
const N: usize = 5;

/// `z = x + y`.
fn add() -> Loop {
    let ty = TensorType::f32([N]);
    let mut body = Body::new();
    let (x, y) = (body.load(0, &ty, Access::identity(1)), body.load(1, &ty, Access::identity(1)));
    let z = body.expr.add(x, y);
    body.output(z);
    let kind = LoopKind::Map(Map { domain: vec![N], body, stores: vec![Store::identity(0, 1)] });
    Loop { operands: vec![ty.clone(), ty.clone()], results: vec![ty], kind }
}

/// `state += input` in place, then `output = state + constant`.
pub(super) fn accumulator() -> Program {
    let arena = |role| Arena { role, chunk: 0, bytes: 256 };
    let roles = [Role::State, Role::Inputs, Role::Constants, Role::Outputs];
    let mut program = empty_program(roles.into_iter().map(arena).collect());
    let ty = TensorType::f32([N]);
    let at = |arena: u32, written| bind(ArenaId(arena), 0, &ty, written);
    push(&mut program, add(), vec![at(0, false), at(1, false), at(0, true)]);
    push(&mut program, add(), vec![at(0, false), at(2, false), at(3, true)]);
    let external = |name: &str, kind, arena| External {
        name: name.into(),
        kind,
        ty: TensorType::f32([N]),
        place: Place { arena: ArenaId(arena), offset: 0 },
    };
    program.externals = vec![
        external("x", ExternalKind::Input { id_limit: None, ignore: None }, 1),
        external("y", ExternalKind::Output, 3),
        external("s", ExternalKind::State, 0),
    ];
    let words = vec![100f32.to_bits(); N];
    program.constants = vec![ConstantData { place: Place { arena: ArenaId(2), offset: 0 }, words }];
    program
}

fn start(device: &dyn Device) -> Box<dyn Executor> {
    let state = buffer_of(device, &[0; 64]);
    device.instantiate(Arc::new(accumulator()), &[(STATE, state)]).expect("a sound program")
}

fn write(executor: &mut dyn Executor, value: f32) -> Result<(), GpuError> {
    executor.write(0, &to_bytes(&[value.to_bits(); N]))
}

fn read(executor: &mut dyn Executor, ticket: Ticket) -> Result<f32, GpuError> {
    let mut bytes = vec![0; 4 * N];
    executor.read(ticket, 1, &mut bytes)?;
    let words = to_words(&bytes);
    assert!(words.iter().all(|w| *w == words[0]));
    Ok(f32::from_bits(words[0]))
}

#[test]
fn host_runs_steps_and_keeps_their_outputs() {
    let device = open();
    assert_eq!(device.info().backend, "host");
    assert!(!device.info().is_hardware_gpu);
    let mut executor = start(device.as_ref());
    let executor = executor.as_mut();
    assert_eq!(executor.slots(), 2);
    write(executor, 1.0).unwrap();
    let first = executor.submit(Sections::ALL).unwrap();
    write(executor, 10.0).unwrap();
    let second = executor.submit(Sections::ALL).unwrap();
    assert_eq!((first, second), (Ticket(1), Ticket(2)));
    assert_eq!(read(executor, first), Ok(101.0));
    assert_eq!(read(executor, second), Ok(111.0));
    // Nothing written: the input keeps its value.
    let third = executor.submit(Sections::ALL).unwrap();
    executor.wait(third, Duration::from_secs(1)).unwrap();
    assert_eq!(executor.is_done(third), Ok(true));
    assert_eq!(read(executor, third), Ok(121.0));
    assert!(matches!(read(executor, first), Err(GpuError::Usage { .. })), "overwritten");
    assert_eq!(read(executor, second), Ok(111.0));
    assert!(executor.is_done(Ticket(4)).is_err());
    assert!(executor.wait(Ticket(0), Duration::ZERO).is_err());
}

#[test]
fn host_runs_only_the_sections_asked_for() {
    let device = device(1);
    let mut program = accumulator();
    let mut update = program.sections[0].clone();
    update.kind = SectionKind::Update;
    update.levels.remove(0);
    program.sections[0].levels.truncate(1);
    program.sections.push(update);
    let state = buffer_of(device.as_ref(), &[0; 64]);
    let mut executor = device.instantiate(Arc::new(program), &[(STATE, state)]).unwrap();
    write(executor.as_mut(), 1.0).unwrap();
    let only = |forward_backward, update| Sections { forward_backward, update, ..Sections::STEP };
    let first = executor.submit(only(true, false)).unwrap();
    assert_eq!(read(executor.as_mut(), first), Ok(0.0));
    let second = executor.submit(only(false, true)).unwrap();
    assert_eq!(read(executor.as_mut(), second), Ok(101.0));
}

#[test]
fn host_leaves_outputs_where_they_are_when_asked_to() {
    let device = open();
    let mut executor = start(device.as_ref());
    let executor = executor.as_mut();
    write(executor, 1.0).unwrap();
    let first = executor.submit(Sections::ALL).unwrap();
    let second = executor.submit(Sections { outputs: false, ..Sections::ALL }).unwrap();
    let refused = read(executor, second).unwrap_err().to_string();
    assert!(refused.contains("step 2") && refused.contains("without copying its outputs"), "{refused}");
    assert_eq!(read(executor, first), Ok(101.0));
    let third = executor.submit(Sections::ALL).unwrap();
    assert_eq!(read(executor, third), Ok(103.0));
}

#[test]
fn host_profiles_every_dispatch_apart_from_the_ring() {
    let device = device(2);
    let mut executor = start(device.as_ref());
    let timing = executor.profile(Sections::ALL).unwrap();
    assert_eq!(timing.dispatch_ns.iter().map(|d| d.0).collect::<Vec<_>>(), [0, 1]);
    assert!(timing.total_ns >= timing.dispatch_ns.iter().map(|d| d.1).sum());
    assert_eq!(executor.submit(Sections::ALL), Ok(Ticket(1)));
}

#[test]
fn host_buffers_start_zeroed_and_check_their_ranges() {
    let device = device(1);
    let buffer = device.buffer(12).unwrap();
    assert_eq!(buffer.bytes(), 12);
    let mut bytes = [1; 12];
    device.read(&buffer, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 12]);
    device.write(&buffer, 7, &[1, 2, 3]).unwrap();
    device.read(&buffer, 6, &mut bytes[..4]).unwrap();
    assert_eq!(bytes[..4], [0, 1, 2, 3]);
    for (offset, len) in [(12, 1), (0, 13), (u64::MAX, 2)] {
        assert!(device.write(&buffer, offset, &vec![0; len]).is_err(), "{offset} {len}");
        assert!(device.read(&buffer, offset, &mut vec![0; len]).is_err(), "{offset} {len}");
    }
    assert!(matches!(device.buffer(1 << 40), Err(GpuError::Limit { .. })));
    let other = super::harness::device(1);
    assert!(other.write(&buffer, 0, &[0]).is_err(), "a buffer of another device");
}

#[test]
fn host_keeps_to_its_memory_budget() {
    let options = HostOptions { memory_bytes: Some(1000), ..HostOptions::default() };
    let device = open_with(&options);
    assert_eq!(device.info().memory_bytes, 1000);
    let first = device.buffer(600).unwrap();
    let refused = GpuError::OutOfMemory { what: "buffer".into(), bytes: 600 };
    assert_eq!(device.buffer(600).err(), Some(refused));
    drop(first);
    let state = device.buffer(256).unwrap();
    // Three arenas of 256 bytes do not fit besides the state; what was taken is given back.
    for _ in 0..3 {
        let made = device.instantiate(Arc::new(accumulator()), &[(STATE, state.clone())]);
        assert!(matches!(made.err(), Some(GpuError::OutOfMemory { .. })));
    }
    device.buffer(700).unwrap();
}

#[test]
fn host_failures_leave_everything_as_it_was() {
    let faults = FaultPlan::default();
    let device =
        open_with(&HostOptions { threads: Some(1), faults: faults.clone(), ..HostOptions::default() });
    faults.fail_allocation(2);
    device.buffer(4).unwrap();
    assert!(matches!(device.buffer(4).err(), Some(GpuError::OutOfMemory { .. })));
    let mut executor = start(device.as_ref());
    write(executor.as_mut(), 1.0).unwrap();
    executor.submit(Sections::ALL).unwrap();
    faults.fail_submit(1);
    assert!(matches!(executor.submit(Sections::ALL), Err(GpuError::Driver { .. })));
    assert_eq!(read(executor.as_mut(), Ticket(1)), Ok(101.0));
    let second = executor.submit(Sections::ALL).unwrap();
    assert_eq!(second, Ticket(2));
    assert_eq!(read(executor.as_mut(), second), Ok(102.0), "the failed step did not count");
}

#[test]
fn host_executors_of_several_threads_share_a_device() {
    let device = device(2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut executor = start(device.as_ref());
                write(executor.as_mut(), 1.0).unwrap();
                for step in 1..50u16 {
                    let ticket = executor.submit(Sections::ALL).unwrap();
                    assert_eq!(read(executor.as_mut(), ticket), Ok(100.0 + f32::from(step)));
                }
            });
        }
    });
}

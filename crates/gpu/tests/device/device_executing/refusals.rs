//! What does not fit is refused with the numbers, before anything runs.

use super::programs::{ADD, Accumulating, Adding, Builder, READ, WRITE, accumulating, adding};
use super::{bind, with_device};
use crate::under_test::with_kernels;
use griffinfly_compile::program::{
    Arena, ArenaId, BindingAccess, DispatchId, ExternalKind, KernelId, Place, Program, Role, SectionKind,
    Work,
};
use griffinfly_gpu::{Buffer, Device, GpuError, Sections};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;

/// Makes a program inconsistent.
type Damage = fn(&mut Program);

fn refusal(device: &dyn Device, program: Program) -> GpuError {
    device.instantiate(Arc::new(program), &[]).err().expect("the program is refused")
}

fn assert_usage(error: &GpuError, text: &str) {
    let shown = error.to_string();
    assert!(matches!(error, GpuError::Usage { .. }) && shown.contains(text), "{shown:?} has no {text:?}");
}

#[test]
fn buffers_over_the_limit() {
    with_device(|device| {
        let limit = device.target().max_buffer_bytes;
        for bytes in [limit.saturating_add(1), u64::MAX] {
            match device.buffer(bytes).err().unwrap() {
                GpuError::Limit { value, limit: most, .. } => assert_eq!((value, most), (bytes, limit)),
                error => panic!("{error}"),
            }
        }
        let mut made = adding(device.target(), 8);
        made.program.arenas.push(Arena { role: Role::Scratch, chunk: 0, bytes: limit + 256 });
        assert!(matches!(refusal(device, made.program), GpuError::Limit { .. }));
    });
}

#[test]
fn ranges_outside_a_buffer() {
    with_device(|device| {
        let buffer = device.buffer(100).unwrap();
        for (offset, length) in [(0, 101), (100, 1), (96, 5), (u64::MAX, 1), (101, 0)] {
            let mut bytes = vec![0; length];
            assert_usage(&device.write(&buffer, offset, &bytes).unwrap_err(), "of 100");
            assert_usage(&device.read(&buffer, offset, &mut bytes).unwrap_err(), "of 100");
        }
        device.write(&buffer, 100, &[]).unwrap();
    });
}

#[test]
fn programs_for_another_target() {
    with_device(|device| {
        let changes: [fn(&mut Target); 6] = [
            |target| target.name.push('x'),
            |target| target.subgroup_size += 1,
            |target| target.compute_units += 1,
            |target| target.max_binding_bytes -= 1,
            |target| target.is_hardware = !target.is_hardware,
            |target| *target = Target::host(),
        ];
        for change in changes {
            let mut made = adding(device.target(), 8);
            change(&mut made.program.target);
            let error = refusal(device, made.program);
            assert!(matches!(error, GpuError::WrongTarget { .. }), "{error}");
        }
        let mut made = adding(device.target(), 8);
        made.program.format += 1;
        assert_usage(&refusal(device, made.program), "format");
    });
}

#[test]
fn inconsistent_programs() {
    with_device(|device| {
        let cases: [(&str, Damage); 15] = [
            ("bytes at", |p| p.dispatches[0].bindings[2].bytes = 260),
            ("bytes at", |p| p.dispatches[0].bindings[0].offset = 256),
            ("arena 9", |p| p.dispatches[0].bindings[0].arena = ArenaId(9)),
            ("positive number of words", |p| p.dispatches[0].bindings[1].bytes = 0),
            ("positive number of words", |p| p.dispatches[0].bindings[1].bytes = 6),
            ("not a multiple", |p| {
                (p.dispatches[0].bindings[1].offset, p.dispatches[0].bindings[1].bytes) = (2, 8)
            }),
            ("the kernel's is", |p| p.dispatches[0].bindings[0].access = BindingAccess::Write),
            ("only the host may write", |p| p.dispatches[0].bindings[2].arena = ArenaId(0)),
            ("2 bindings", |p| p.dispatches[0].bindings.truncate(2)),
            ("parameter words", |p| set_work(p, |parameters, _| parameters.truncate(1))),
            ("no workgroups", |p| set_work(p, |_, groups| groups[1] = 0)),
            ("it is a loop", |p| p.dispatches[0].work = Work::Loop),
            ("dispatch 3", |p| p.sections[0].levels.push(vec![DispatchId(3)])),
            ("code", |p| {
                p.kernels[0].wgsl.clear();
                p.kernels[0].spirv.clear();
            }),
            ("external `y`", |p| p.externals[2].place = Place { arena: ArenaId(2), offset: 240 }),
        ];
        for (text, damage) in cases {
            let mut made = adding(device.target(), 8);
            damage(&mut made.program);
            assert_usage(&refusal(device, made.program), text);
        }
        let mut made = adding(device.target(), 8);
        made.program.dispatches[0].work =
            Work::Kernel { kernel: KernelId(1), parameters: vec![0; 2], groups: [1; 3] };
        assert_usage(&refusal(device, made.program), "kernel 1 of 1");
    });
}

fn set_work(program: &mut Program, change: impl FnOnce(&mut Vec<u32>, &mut [u32; 3])) {
    if let Work::Kernel { parameters, groups, .. } = &mut program.dispatches[0].work {
        change(parameters, groups);
    }
}

#[test]
fn programs_over_the_limits() {
    with_device(|device| {
        let target = device.target().clone();
        let mut cases: Vec<Program> = Vec::new();
        let mut case = |change: &dyn Fn(&mut Program)| {
            let mut made = adding(&target, 8);
            change(&mut made.program);
            cases.push(made.program);
        };
        if let Some(groups) = target.max_groups[2].checked_add(1) {
            case(&|p| set_work(p, |_, count| count[2] = groups));
        }
        case(&|p| p.kernels[0].bindings = vec![READ; target.max_bindings as usize + 1]);
        case(&|p| p.kernels[0].parameter_words = target.max_parameter_bytes / 4 + 1);
        case(&|p| p.kernels[0].workgroup_bytes = target.max_workgroup_bytes + 1);
        case(&|p| p.kernels[0].workgroup_size = [target.max_invocations, 2, 1]);
        case(&|p| p.kernels[0].workgroup_size = [1, 1, target.max_workgroup_size[2] + 1]);
        for program in cases {
            let error = refusal(device, program);
            assert!(matches!(error, GpuError::Limit { .. }), "{error}");
        }
    });
}

#[test]
fn wrong_bindings_of_arenas() {
    with_device(|device| {
        let Accumulating { program, state_arena, .. } = accumulating(device.target(), 8, 1);
        let program = Arc::new(program);
        let try_with =
            |bound: &[(ArenaId, Arc<dyn Buffer>)]| device.instantiate(program.clone(), bound).err();
        let bound = bind(device, &[(state_arena, 256)]);
        assert!(try_with(&bound).is_none());
        assert_usage(&try_with(&[]).unwrap(), "no buffer of 256 bytes");
        assert_usage(&try_with(&bind(device, &[(state_arena, 252)])).unwrap(), "252 bytes");
        assert_usage(&try_with(&[bound.clone(), bound.clone()].concat()).unwrap(), "bound twice");
        let further = bind(device, &[(ArenaId(0), 4096), (ArenaId(99), 256)]);
        assert_usage(&try_with(&[bound[0].clone(), further[0].clone()]).unwrap(), "cannot be bound");
        assert_usage(&try_with(&[bound[0].clone(), further[1].clone()]).unwrap(), "99");
        with_kernels(0, |other| {
            assert_usage(&try_with(&bind(other.as_ref(), &[(state_arena, 256)])).unwrap(), "another device");
            assert_usage(&other.read(&bound[0].1, 0, &mut []).unwrap_err(), "another device");
        });
    });
}

#[test]
fn wrong_inputs_and_outputs() {
    with_device(|device| {
        let Adding { program, a, y, .. } = adding(device.target(), 8);
        let mut executor = device.instantiate(Arc::new(program), &[]).unwrap();
        assert_usage(&executor.write(a, &[0; 31]).unwrap_err(), "31 bytes, not 32");
        assert_usage(&executor.write(y, &[0; 32]).unwrap_err(), "not an input");
        assert_usage(&executor.write(3, &[0; 32]).unwrap_err(), "not an input");
        let ticket = executor.submit(Sections::STEP).unwrap();
        assert_usage(&executor.read(ticket, y, &mut [0; 36]).unwrap_err(), "36 bytes, not 32");
        assert_usage(&executor.read(ticket, a, &mut [0; 32]).unwrap_err(), "not an output");
        assert_usage(&executor.read(ticket, 3, &mut [0; 32]).unwrap_err(), "not an output");
    });
}

#[test]
fn ids_out_of_range() {
    with_device(|device| {
        let mut builder = Builder::new(device.target());
        let arena = builder.arena(Role::Inputs, 16);
        let kind = ExternalKind::Input { id_limit: Some(10), ignore: Some(-100) };
        let ids = builder.external("ids", kind, (arena, 4));
        builder.0.externals[ids].ty = TensorType::new(DType::I32, [4]);
        let mut executor = device.instantiate(Arc::new(builder.0), &[]).unwrap();
        let mut write = |values: [i32; 4]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            executor.write(ids, &bytes)
        };
        write([0, 9, -100, 5]).unwrap();
        for bad in [10, -1, i32::MIN, i32::MAX] {
            assert_usage(
                &write([0, 9, bad, 5]).unwrap_err(),
                &format!("id {bad} at position 2 is not in 0..10"),
            );
        }
    });
}

#[test]
fn bindings_over_the_range() {
    with_device(|device| {
        let target = device.target();
        let bytes = (target.max_binding_bytes / 256 + 1) * 256;
        if bytes > target.max_buffer_bytes {
            return;
        }
        let mut builder = Builder::new(target);
        let arena = builder.arena(Role::Scratch, bytes);
        let kernel = builder.kernel(ADD, &[READ, READ, WRITE], 2);
        let length = (bytes / 4) as usize;
        let dispatch =
            builder.dispatch(kernel, (&[0, 0], 1), &[(arena, length), (arena, length), (arena, length)]);
        builder.section(SectionKind::Update, vec![vec![dispatch]]);
        assert!(matches!(refusal(device, builder.0), GpuError::Limit { value, .. } if value == bytes));
    });
}

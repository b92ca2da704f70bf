//! Buffers, kernels, levels, sections and profiles.

use super::programs::{ADD, Builder, READ, STEP, WRITE, adding};
use super::{LONG, bind, to_bytes, to_floats, with_device};
use griffinfly_compile::program::{ArenaId, ConstantData, ExternalKind, Place, Role, SectionKind};
use griffinfly_gpu::{Buffer, GpuError, Sections};
use griffinfly_ir::target::{Backend, Target};
use std::sync::Arc;

#[test]
fn buffers_are_zeroed_written_and_read() {
    with_device(|device| {
        for bytes in [0_usize, 1, 3, 4, 255, 4096, 100_001] {
            let buffer = device.buffer(bytes as u64).unwrap();
            let mut read = vec![7; bytes];
            device.read(&buffer, 0, &mut read).unwrap();
            assert_eq!(read, vec![0; bytes]);
            let data: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
            device.write(&buffer, 0, &data).unwrap();
            if bytes > 8 {
                device.write(&buffer, 5, &[1, 2, 3]).unwrap();
                let mut part = [0; 5];
                device.read(&buffer, 4, &mut part).unwrap();
                assert_eq!(part, [data[4], 1, 2, 3, data[8]]);
            }
            device.read(&buffer, 0, &mut read).unwrap();
            assert_eq!(read[bytes.min(8)..], data[bytes.min(8)..]);
        }
    });
}

#[test]
fn copies_larger_than_the_staging_buffer_are_cut() {
    with_device(|device| {
        let bytes = (32 << 20) + 12_345;
        let buffer = device.buffer(bytes as u64).unwrap();
        let data: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        device.write(&buffer, 0, &data).unwrap();
        let mut read = vec![0; bytes];
        device.read(&buffer, 0, &mut read).unwrap();
        assert!(read == data);
    });
}

#[test]
fn adds_over_every_tail() {
    with_device(|device| {
        for length in [1, 2, 63, 64, 65, 127, 1000, 4099, 1 << 16] {
            let adding = adding(device.target(), length);
            let mut executor = device.instantiate(Arc::new(adding.program), &[]).unwrap();
            let a: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let b: Vec<f32> = (0..length).map(|i| 0.5 - i as f32).collect();
            executor.write(adding.a, &to_bytes(&a)).unwrap();
            executor.write(adding.b, &to_bytes(&b)).unwrap();
            let ticket = executor.submit(Sections::STEP).unwrap();
            executor.wait(ticket, LONG).unwrap();
            assert!(executor.is_done(ticket).unwrap());
            let mut bytes = vec![0; length * 4];
            executor.read(ticket, adding.y, &mut bytes).unwrap();
            let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + 3.0 * b).collect();
            assert_eq!(to_floats(&bytes), expected);
        }
    });
}

/// `levels` dependent steps `a = 2 a + 1` on a parameter, then one copy into a mirror by addition of a constant.
fn chain(target: &Target, levels: usize) -> (Builder, [ArenaId; 2]) {
    let mut builder = Builder::new(target);
    let length = 1000;
    let parameters = builder.arena(Role::Parameters, length as u64 * 4);
    let mirror = builder.arena(Role::Mirror("copy".into()), length as u64 * 4);
    let constants = builder.arena(Role::Constants, length as u64 * 4);
    let scratch = builder.arena(Role::Scratch, length as u64 * 4);
    let words = (0..length).map(|i| (i as f32).to_bits()).collect();
    builder.0.constants.push(ConstantData { place: Place { arena: constants, offset: 0 }, words });
    let (step, add) = (builder.kernel(STEP, &[WRITE], 0), builder.kernel(ADD, &[READ, READ, WRITE], 2));
    let steps: Vec<_> =
        (0..levels).map(|_| vec![builder.dispatch(step, (&[], 16), &[(parameters, length)])]).collect();
    builder.section(SectionKind::Prepare, steps);
    let words = [length as u32, 1.0_f32.to_bits()];
    let add_to = |builder: &mut Builder, to| {
        builder.dispatch(add, (&words, 16), &[(parameters, length), (constants, length), (to, length)])
    };
    let first = vec![add_to(&mut builder, scratch), add_to(&mut builder, mirror)];
    builder.section(SectionKind::ForwardBackward, vec![vec![], first]);
    builder.external("sum", ExternalKind::Output, (scratch, length));
    (builder, [parameters, mirror])
}

#[test]
fn levels_see_what_earlier_levels_wrote() {
    with_device(|device| {
        let (builder, [parameters, mirror]) = chain(device.target(), 12);
        let bound = bind(device, &[(parameters, 4096), (mirror, 5000)]);
        let mut executor = device.instantiate(Arc::new(builder.0), &bound).unwrap();
        let mut value = 0.0;
        for round in 0..3 {
            let ticket = executor.submit(Sections::ALL).unwrap();
            let mut bytes = vec![0; 4000];
            executor.read(ticket, 0, &mut bytes).unwrap();
            value = (0..12).fold(value, |value, _| 2.0 * value + 1.0_f32);
            let expected: Vec<f32> = (0..1000).map(|i| value + i as f32).collect();
            assert_eq!(to_floats(&bytes), expected, "round {round}");
            device.read(&bound[1].1, 0, &mut bytes).unwrap();
            assert_eq!(to_floats(&bytes), expected, "mirror, round {round}");
        }
    });
}

#[test]
fn sections_run_alone() {
    with_device(|device| {
        let (builder, [parameters, mirror]) = chain(device.target(), 1);
        let bound = bind(device, &[(parameters, 4096), (mirror, 4096)]);
        let mut executor = device.instantiate(Arc::new(builder.0), &bound).unwrap();
        let first = |buffer: &Arc<dyn Buffer>| {
            let mut bytes = [0; 4];
            device.read(buffer, 0, &mut bytes).unwrap();
            f32::from_ne_bytes(bytes)
        };
        let none = Sections { prepare: false, forward_backward: false, update: false, outputs: false };
        let ticket = executor.submit(Sections { prepare: true, ..none }).unwrap();
        executor.wait(ticket, LONG).unwrap();
        assert_eq!((first(&bound[0].1), first(&bound[1].1)), (1.0, 0.0));
        executor.submit(Sections { forward_backward: true, ..none }).unwrap();
        assert_eq!((first(&bound[0].1), first(&bound[1].1)), (1.0, 1.0));
        let ticket = executor.submit(none).unwrap();
        executor.wait(ticket, LONG).unwrap();
        device.write(&bound[0].1, 0, &5.0_f32.to_ne_bytes()).unwrap();
        executor.submit(Sections::ALL).unwrap();
        assert_eq!((first(&bound[0].1), first(&bound[1].1)), (11.0, 11.0));
    });
}

#[test]
fn outputs_stay_on_the_device_when_asked_to() {
    with_device(|device| {
        let (builder, [parameters, mirror]) = chain(device.target(), 1);
        let bound = bind(device, &[(parameters, 4096), (mirror, 4096)]);
        let mut executor = device.instantiate(Arc::new(builder.0), &bound).unwrap();
        let mut bytes = vec![0; 4000];
        let first = executor.submit(Sections::ALL).unwrap();
        let second = executor.submit(Sections { outputs: false, ..Sections::ALL }).unwrap();
        let refused = executor.read(second, 0, &mut bytes).unwrap_err().to_string();
        assert!(refused.contains("step 2") && refused.contains("without copying its outputs"), "{refused}");
        executor.wait(second, LONG).unwrap();
        executor.read(first, 0, &mut bytes).unwrap();
        assert_eq!(to_floats(&bytes)[0], 1.0);
        let third = executor.submit(Sections::ALL).unwrap();
        executor.read(third, 0, &mut bytes).unwrap();
        assert_eq!(to_floats(&bytes)[0], 7.0);
    });
}

#[test]
fn programs_share_bound_buffers_in_order() {
    with_device(|device| {
        let (builder, [parameters, mirror]) = chain(device.target(), 3);
        let bound = bind(device, &[(parameters, 4096), (mirror, 4096)]);
        let program = Arc::new(builder.0);
        let mut first = device.instantiate(program.clone(), &bound).unwrap();
        let mut second = device.instantiate(program, &bound).unwrap();
        for _ in 0..3 {
            first.submit(Sections::ALL).unwrap();
            second.submit(Sections::ALL).unwrap();
        }
        let ticket = second.submit(Sections { prepare: false, ..Sections::ALL }).unwrap();
        let mut bytes = vec![0; 4000];
        second.read(ticket, 0, &mut bytes).unwrap();
        assert_eq!(to_floats(&bytes)[0], (0..18).fold(0.0, |value, _| 2.0 * value + 1.0_f32));
    });
}

#[test]
fn profiles_every_dispatch() {
    with_device(|device| {
        let (builder, [parameters, mirror]) = chain(device.target(), 4);
        let bound = bind(device, &[(parameters, 4096), (mirror, 4096)]);
        let mut executor = device.instantiate(Arc::new(builder.0), &bound).unwrap();
        match executor.profile(Sections::ALL) {
            Ok(timing) => {
                println!("{timing:?}");
                let order: Vec<u32> = timing.dispatch_ns.iter().map(|(id, _)| *id).collect();
                assert_eq!(order, [0, 1, 2, 3, 4, 5]);
                let sum: f64 = timing.dispatch_ns.iter().map(|(_, time)| time).sum();
                // Dispatches in passes of their own have time between them.
                let between = timing.total_ns - sum;
                let has_passes = device.target().backend == Backend::WebGpu;
                assert!(between.abs() <= 1e-6 * timing.total_ns || has_passes && between > 0.0, "{timing:?}");
                let one = executor.repeat(Sections::ALL, 3).unwrap();
                assert!(one > 0.0 && one.is_finite(), "{one}");
            }
            Err(error) => {
                assert!(matches!(&error, GpuError::Usage { what, .. } if what == "profiling"), "{error}")
            }
        }
        let costs = executor.kernel_costs().unwrap();
        let told = costs.len() == executor.program().kernels.len();
        assert!(told && costs.iter().all(|c| !c.statistics.is_empty()) || costs.is_empty(), "{costs:?}");
        executor.submit(Sections::ALL).unwrap();
    });
}

#[test]
fn a_repeated_step_runs_so_often() {
    with_device(|device| {
        let (builder, [parameters, mirror]) = chain(device.target(), 1);
        let bound = bind(device, &[(parameters, 4096), (mirror, 4096)]);
        let mut executor = device.instantiate(Arc::new(builder.0), &bound).unwrap();
        let mut bytes = vec![0; 4000];
        let mut expected = 0.0;
        for times in [3, 0, 1, 2] {
            let Ok(_) = executor.repeat(Sections::ALL, times) else { return };
            expected = (0..times.max(1)).fold(expected, |value, _| 2.0 * value + 1.0);
            device.read(&bound[0].1, 0, &mut bytes).unwrap();
            assert_eq!(to_floats(&bytes)[0], expected, "{times}");
        }
    });
}

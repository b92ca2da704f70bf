//! What only the WebGPU device has: limits to choose, the application's own device and buffers, loss at any time.

use crate::device_executing::{LONG, accumulating, adding, awaited, bind, to_bytes, to_floats};
use crate::under_test::{Wanted, wanted};
use griffinfly_gpu::webgpu::{OpenOptions, WebGpuDevice, enumerate, open_with, wgpu};
use griffinfly_gpu::{Device, GpuError, Sections, Selector};
use griffinfly_ir::target::{Backend, Target};
use std::sync::Arc;

/// Opens a device, if WebGPU is what is tested.
fn opened(options: &OpenOptions) -> Option<Arc<WebGpuDevice>> {
    (wanted() == Wanted::WebGpu).then(|| open_with(&Selector::Best, options).unwrap())
}

/// `a + 3 b` of a few numbers on a device.
fn adds(device: &dyn Device) -> Result<Vec<f32>, GpuError> {
    let made = adding(device.target(), 4);
    let mut executor = device.instantiate(Arc::new(made.program), &[])?;
    executor.write(made.a, &to_bytes(&[1.0, 2.0, 3.0, 4.0]))?;
    executor.write(made.b, &to_bytes(&[1.0, -1.0, 0.5, 0.0]))?;
    let ticket = executor.submit(Sections::ALL)?;
    executor.wait(ticket, LONG)?;
    let mut bytes = [0; 16];
    executor.read(ticket, made.y, &mut bytes)?;
    Ok(to_floats(&bytes))
}

const SUMS: [f32; 4] = [4.0, -1.0, 4.5, 4.0];

#[test]
fn lists_usable_adapters_first_and_selects_among_them() {
    if wanted() != Wanted::WebGpu {
        return;
    }
    let all = enumerate().unwrap();
    assert!(all[0].unusable.is_none(), "{all:?}");
    let place = |unusable: bool| all.iter().position(|info| info.unusable.is_some() == unusable);
    assert!(place(true).is_none_or(|first| first > 0), "{all:?}");
    let named = Selector::NameContains(all[0].name.to_uppercase());
    assert_eq!(open_with(&named, &OpenOptions::default()).unwrap().info().name, all[0].name);
    for missing in [Selector::Index(99), Selector::NameContains("no such card".into())] {
        let error = open_with(&missing, &OpenOptions::default()).err().unwrap();
        assert!(matches!(error, GpuError::NoDevice { backend: "WebGPU", .. }), "{error}");
        assert!(error.to_string().contains(&all[0].name), "{error}");
    }
}

#[test]
fn default_limits_are_those_of_the_smallest_target() {
    let options = OpenOptions { default_limits: true, ..OpenOptions::default() };
    let Some(device) = opened(&options) else { return };
    let least = Target::minimal_webgpu();
    let target = device.target();
    assert_eq!(target.backend, Backend::WebGpu);
    let limits = |target: &Target| {
        let bytes = [target.max_binding_bytes, target.max_buffer_bytes];
        (bytes, target.max_bindings, target.max_workgroup_bytes, target.max_invocations, target.max_groups)
    };
    assert_eq!(limits(target), limits(&least));
    assert_eq!(adds(device.as_ref()).unwrap(), SUMS);
}

#[test]
fn runs_on_the_devices_of_an_application() {
    let Some(ours) = opened(&OpenOptions::default()) else { return };
    let (raw, queue) = ours.below();
    let device = WebGpuDevice::of(raw.clone(), queue.clone(), &OpenOptions::default()).unwrap();
    assert_eq!(device.info().name, ours.info().name);
    assert_eq!(adds(device.as_ref()).unwrap(), SUMS);
    // Each keeps to its own buffers, though the device below is the same.
    let buffer = ours.buffer(16).unwrap();
    assert!(device.write(&buffer, 0, &[1]).is_err());
}

/// A buffer that the application fills is a program's state, and one of ours is the source of the application's copy.
#[test]
fn buffers_are_shared_both_ways() {
    let Some(device) = opened(&OpenOptions::default()) else { return };
    let (raw, queue) = device.below();
    let usages = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let theirs = |usage| {
        raw.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 256,
            usage,
            mapped_at_creation: false,
        })
    };
    let (state, copy) = (theirs(usages), theirs(usages));
    queue.write_buffer(&state, 0, &10.0_f32.to_ne_bytes());
    let made = accumulating(device.target(), 5, 1);
    let bound = [(made.state_arena, device.import(state.clone()).unwrap())];
    let mut executor = device.instantiate(Arc::new(made.program), &bound).unwrap();
    executor.write(made.x, &to_bytes(&[1.0; 5])).unwrap();
    executor.write(made.scalar, &2.0_f32.to_ne_bytes()).unwrap();
    executor.submit(Sections::ALL).unwrap();
    let mut encoder = raw.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&state, 0, &copy, 0, 4);
    queue.submit([encoder.finish()]);
    let copy = device.import(copy).unwrap();
    let mut bytes = [0; 4];
    device.read(&copy, 0, &mut bytes).unwrap();
    assert_eq!(f32::from_ne_bytes(bytes), 25.0);

    let ours = device.buffer(256).unwrap();
    device.write(&ours, 4, &7.0_f32.to_ne_bytes()).unwrap();
    let exported = device.export(&ours).unwrap();
    assert_eq!(exported.size(), 256);
    let second = theirs(usages);
    let mut encoder = raw.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&exported, 4, &second, 8, 4);
    queue.submit([encoder.finish()]);
    device.read(&device.import(second).unwrap(), 8, &mut bytes).unwrap();
    assert_eq!(f32::from_ne_bytes(bytes), 7.0, "the application's commands read what was written here");
    let refused = device.import(theirs(wgpu::BufferUsages::COPY_DST)).err().unwrap();
    assert!(matches!(&refused, GpuError::Usage { detail, .. } if detail.contains("STORAGE")), "{refused}");
}

#[test]
fn a_lost_device_stays_lost() {
    let Some(device) = opened(&OpenOptions::default()) else { return };
    let made = accumulating(device.target(), 64, 1);
    let bound = bind(device.as_ref(), &[(made.state_arena, 256)]);
    let mut executor = device.instantiate(Arc::new(made.program.clone()), &bound).unwrap();
    let ticket = executor.submit(Sections::ALL).unwrap();
    executor.wait(ticket, LONG).unwrap();
    let reading = device.read_async(&bound[0].1, 0, 4);
    device.below().0.destroy();
    let is_lost = |error: GpuError| matches!(error, GpuError::DeviceLost { .. });
    // While something is on its way, the loss is told with its end.
    let cut_off = awaited(reading);
    assert!(cut_off.clone().is_err_and(is_lost), "{cut_off:?}");
    let refused = executor.submit(Sections::ALL);
    assert!(refused.clone().is_err_and(is_lost), "{refused:?}");
    assert!(executor.read(ticket, made.result, &mut [0; 4]).is_err_and(is_lost));
    assert!(executor.write(made.x, &[0; 256]).is_err_and(is_lost));
    assert!(executor.wait(ticket, LONG).is_err_and(is_lost));
    // What is awaited ends too.
    assert!(awaited(executor.wait_async(ticket)).is_err_and(is_lost));
    assert!(awaited(device.read_async(&bound[0].1, 0, 4)).is_err_and(is_lost));
    assert!(executor.is_done(ticket).is_err_and(is_lost));
    assert!(executor.profile(Sections::ALL).is_err_and(is_lost));
    assert!(device.buffer(16).err().is_some_and(is_lost));
    assert!(device.write(&bound[0].1, 0, &[1]).is_err_and(is_lost));
    assert!(device.read(&bound[0].1, 0, &mut [1]).is_err_and(is_lost));
    assert!(device.instantiate(Arc::new(made.program), &bound).err().is_some_and(is_lost));
    // Another one works.
    assert_eq!(adds(opened(&OpenOptions::default()).unwrap().as_ref()).unwrap(), SUMS);
}

#[test]
fn code_that_the_api_refuses_names_its_kernel() {
    let Some(device) = opened(&OpenOptions::default()) else { return };
    let mut program = adding(device.target(), 4).program;
    program.kernels[0].wgsl = program.kernels[0].wgsl.replace("p.factor", "p.no_such_member");
    let error = device.instantiate(Arc::new(program), &[]).err().unwrap();
    assert!(error.to_string().contains(&adding(device.target(), 4).program.kernels[0].name), "{error}");
    assert!(matches!(error, GpuError::Validation(_)), "{error}");
    assert_eq!(adds(device.as_ref()).unwrap(), SUMS, "the device works on");
}

#[test]
fn parts_outlive_the_device_and_threads_share_it() {
    let Some(device) = opened(&OpenOptions::default()) else { return };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..3).for_each(|_| assert_eq!(adds(device.as_ref()).unwrap(), SUMS)));
        }
    });
    let made = adding(device.target(), 4);
    let buffer = device.buffer(16).unwrap();
    let mut executor = device.instantiate(Arc::new(made.program), &[]).unwrap();
    drop(device);
    let ticket = executor.submit(Sections::ALL).unwrap();
    drop(buffer);
    executor.wait(ticket, LONG).unwrap();
    drop(executor);
}

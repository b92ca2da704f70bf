//! Whether the device below has matrices of f32 that kernels can use: what it says, and what it then computes.
//!
//! Input: an opened device. Output: whether the results of [`griffinfly_compile::kernel::probe`] are right. `wgpu` offers matrices as an
//! experiment and does not tell how wide subgroups are, so nothing is believed that was not computed. A device that refuses the kernel
//! or computes something else works on without.

use super::context::{caught, ready};
use griffinfly_compile::kernel::print::{self, ParameterBlock, PrintOptions};
use griffinfly_compile::kernel::probe::{Probe, f32_matrices};
use wgpu::{BufferUsages, CooperativeScalarType as Scalar, ErrorFilter, Features};

/// What kernels with matrices need.
const NEEDED: Features =
    Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(Features::SUBGROUP).union(Features::SUBGROUP_BARRIER);
/// How long a probe may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The features to ask for, if the adapter says that it has such matrices.
pub(super) fn wanted(adapter: &wgpu::Adapter) -> Features {
    let is_there = |p: wgpu::CooperativeMatrixProperties| {
        let types = [p.ab_type, p.cr_type];
        [p.m_size, p.n_size, p.k_size] == [8; 3] && types == [Scalar::F32; 2]
    };
    let has =
        is_known(&adapter.get_info()) && adapter.cooperative_matrix_properties().into_iter().any(is_there);
    if has && adapter.features().contains(NEEDED) { NEEDED } else { Features::empty() }
}

/// What lies below has to read our WGSL as Metal's writer does: it is what the kernels are tested with.
fn is_known(info: &wgpu::AdapterInfo) -> bool {
    info.backend == wgpu::Backend::Metal
}

/// Whether an opened device with the features computes with matrices what it should.
pub(super) fn has_f32_matrices(device: &wgpu::Device, queue: &wgpu::Queue) -> bool {
    if cfg!(target_arch = "wasm32")
        || !device.features().contains(NEEDED)
        || !is_known(&device.adapter_info())
    {
        return false;
    }
    let answer = f32_matrices().map_err(|error| error.to_string());
    match answer.and_then(|probe| results((device, queue), &probe).map(|y| y == probe.expected)) {
        Ok(true) => true,
        Ok(false) => {
            tracing::warn!("the device's matrices compute something else: they are not used");
            false
        }
        Err(reason) => {
            tracing::warn!(%reason, "the device's matrices are not used");
            false
        }
    }
}

/// What the probe's kernel writes.
fn results((device, queue): (&wgpu::Device, &wgpu::Queue), probe: &Probe) -> Result<Vec<f32>, String> {
    let filters = [ErrorFilter::OutOfMemory, ErrorFilter::Internal, ErrorFilter::Validation];
    let scopes = filters.map(|filter| device.push_error_scope(filter));
    let bytes = 4 * probe.expected.len() as u64;
    let staging = caught(|| submit((device, queue), probe, bytes));
    let errors = scopes.into_iter().rev().filter_map(|scope| ready(scope.pop()).flatten());
    let error = errors.map(|error| error.to_string()).last();
    let (Some((staging, submission)), None) = (staging, &error) else {
        return Err(error.unwrap_or_else(|| "the device failed".into()));
    };
    let slice = staging.slice(..);
    let (sender, answer) = std::sync::mpsc::channel();
    slice.map_async(wgpu::MapMode::Read, move |result| drop(sender.send(result)));
    let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(PATIENCE) };
    caught(|| device.poll(wait)).ok_or("the device failed")?.map_err(|error| error.to_string())?;
    let mapped = answer.try_recv().map_err(|_| "the device does not answer")?;
    mapped.map_err(|error| error.to_string())?;
    let view = slice.get_mapped_range().map_err(|error| error.to_string())?;
    Ok(view.chunks_exact(4).map(|word| f32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Submits the kernel and the copy of its results to what the host can map.
fn submit(
    (device, queue): (&wgpu::Device, &wgpu::Queue),
    probe: &Probe,
    bytes: u64,
) -> (wgpu::Buffer, wgpu::SubmissionIndex) {
    let buffer = |size: u64, usage: BufferUsages| {
        let label = Some("griffinfly probe");
        device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })
    };
    let operand: Vec<u8> = probe.operand.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let x = buffer(operand.len() as u64, BufferUsages::STORAGE | BufferUsages::COPY_DST);
    let y = buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    let staging = buffer(bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    queue.write_buffer(&x, 0, &operand);
    let parameters = ParameterBlock::Uniform { binding: probe.kernel.bindings.len() as u32 };
    let text = print::wgsl(&probe.kernel, &PrintOptions { parameters });
    let source = wgpu::ShaderSource::Wgsl(text.into());
    let descriptor = wgpu::ShaderModuleDescriptor { label: Some("griffinfly probe"), source };
    // SAFETY: the kernel's indices are below the lengths of its bindings: 256 and 128 elements, 64 invocations.
    let module =
        unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("griffinfly probe"),
        layout: None,
        module: &module,
        entry_point: Some(print::ENTRY),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("griffinfly probe"),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[entry(0, &x), entry(1, &y)],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&y, 0, &staging, 0, bytes);
    (staging, queue.submit([encoder.finish()]))
}

fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }
}

#[cfg(test)]
mod device_tests {
    use super::*;
    use crate::webgpu::{OpenOptions, open_with};
    use griffinfly_compile::kernel::kir::{Builder, Type};

    /// `y = 3 x`, for 64 elements.
    fn tripled() -> Probe {
        let b = Builder::new("tripled", [64, 1, 1]);
        let (x, y) = (b.read("x", Type::F32), b.read_write("y", Type::F32));
        let i = b.local_index();
        y.store(i, x.load(i) * 3.0_f32);
        let operand: Vec<f32> = (0..64_u8).map(f32::from).collect();
        let expected = operand.iter().map(|x| 3.0 * x).collect();
        Probe { kernel: b.finish().unwrap(), operand, expected }
    }

    #[test]
    fn what_is_refused_or_wrong_leaves_the_device_as_it_was() {
        if std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_none_or(|value| value != "webgpu") {
            println!("skipped: GRIFFINFLY_TEST_DEVICE is not webgpu");
            return;
        }
        let device = open_with(&crate::Selector::Best, &OpenOptions::default()).unwrap();
        let below = device.below();
        assert_eq!(results(below, &tripled()), Ok(tripled().expected));
        // A device that is opened without the features refuses the kernel, and is not even asked.
        if !below.0.features().contains(NEEDED) {
            let refused = results(below, &f32_matrices().unwrap()).unwrap_err();
            assert!(!refused.is_empty());
            assert!(!has_f32_matrices(below.0, below.1));
        }
        assert_eq!(results(below, &tripled()), Ok(tripled().expected));
        assert!(!crate::Device::target(device.as_ref()).has_f32_matrices);
        device.below().0.destroy();
        assert!(results(below, &tripled()).is_err());
    }
}

//! From the limits of a WebGPU device to a [`Target`].
//!
//! Source: W3C WebGPU, section 3.6.2 (limits). WebGPU tells neither compute units nor the width of subgroups in a way one can
//! count on; where Vulkan lies below, its adapter is asked for the units.

use griffinfly_ir::target::{Backend, LEAST_ITERATIONS, NumericClass, TENSOR_ALIGNMENT, Target};
use wgpu::{AdapterInfo, DeviceType, Limits};

/// More storage bindings than this are not offered to the compiler.
const MAX_BINDINGS: u32 = 32;
/// Parameter bytes of a dispatch: they lie in a uniform buffer, at offsets of this.
pub(super) const PARAMETER_BYTES: u32 = 256;

/// What limits do not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Compute units, if the API below tells.
    pub(super) compute_units: Option<u32>,
    /// Whether matrices of f32 computed what they should.
    pub(super) has_f32_matrices: bool,
}

/// What programs for a device with these limits are compiled for.
pub(super) fn target(info: &AdapterInfo, limits: &Limits, found: Found) -> Target {
    let is_hardware = is_hardware(info);
    let groups = limits.max_compute_workgroups_per_dimension;
    Target {
        backend: Backend::WebGpu,
        name: name(info),
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffer_bytes: limits.max_buffer_size,
        binding_alignment: alignment(limits.min_storage_buffer_offset_alignment),
        max_bindings: bindings(limits),
        max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_invocations: limits.max_compute_invocations_per_workgroup,
        max_workgroup_size: [
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ],
        max_groups: [groups; 3],
        max_parameter_bytes: PARAMETER_BYTES,
        subgroup_size: info.subgroup_min_size.max(1),
        max_iterations: max_iterations(info),
        is_hardware,
        compute_units: found.compute_units.unwrap_or_else(|| guess(info, is_hardware)).max(1),
        numeric_classes: NumericClass::ALL.to_vec(),
        matrix_formats: Vec::new(),
        has_f32_matrices: found.has_f32_matrices,
    }
}

/// Storage bindings of a kernel, besides which it has a uniform buffer of parameters.
fn bindings(limits: &Limits) -> u32 {
    let together = limits.max_buffers_and_acceleration_structures_per_shader_stage.saturating_sub(1);
    limits.max_storage_buffers_per_shader_stage.min(together).min(MAX_BINDINGS)
}

/// Why a device with these limits cannot run our programs, if so: less than the defaults of WebGPU.
pub(super) fn unusable(limits: &Limits) -> Option<String> {
    let least = Limits::default();
    let wants: [(&str, u64, u64); 5] = [
        (
            "storage buffers per stage",
            limits.max_storage_buffers_per_shader_stage.into(),
            least.max_storage_buffers_per_shader_stage.into(),
        ),
        (
            "bytes of workgroup memory",
            limits.max_compute_workgroup_storage_size.into(),
            least.max_compute_workgroup_storage_size.into(),
        ),
        (
            "invocations per workgroup",
            limits.max_compute_invocations_per_workgroup.into(),
            least.max_compute_invocations_per_workgroup.into(),
        ),
        (
            "bytes of a storage binding",
            limits.max_storage_buffer_binding_size,
            least.max_storage_buffer_binding_size,
        ),
        (
            "workgroups per dimension",
            limits.max_compute_workgroups_per_dimension.into(),
            least.max_compute_workgroups_per_dimension.into(),
        ),
    ];
    let missing = wants.into_iter().find(|(_, has, wanted)| has < wanted);
    missing.map(|(what, has, wanted)| format!("{has} {what}, {wanted} are needed"))
}

/// Browsers may tell no name.
pub(super) fn name(info: &AdapterInfo) -> String {
    if info.name.is_empty() { "WebGPU adapter".into() } else { info.name.clone() }
}

/// Software drivers say that they are CPUs; browsers say nothing unless they fall back to one.
pub(super) fn is_hardware(info: &AdapterInfo) -> bool {
    info.device_type != DeviceType::Cpu && !mentions(info, "swiftshader") && !mentions(info, "llvmpipe")
}

/// Lavapipe ends an invocation after this many loop iterations and says nothing; in a browser it may lie below without a name.
fn max_iterations(info: &AdapterInfo) -> u32 {
    let is_lavapipe = mentions(info, "llvmpipe") || mentions(info, "lavapipe");
    let is_unknown = info.driver.is_empty() && !is_hardware(info);
    if is_lavapipe || is_unknown { LEAST_ITERATIONS } else { u32::MAX }
}

fn mentions(info: &AdapterInfo, text: &str) -> bool {
    [&info.name, &info.driver, &info.driver_info].iter().any(|said| said.to_lowercase().contains(text))
}

fn guess(info: &AdapterInfo, is_hardware: bool) -> u32 {
    if !is_hardware {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        return u32::try_from(cpus).unwrap_or(1);
    }
    // Unknown: a middle-sized card, or a small integrated GPU.
    if info.device_type == DeviceType::DiscreteGpu { 32 } else { 8 }
}

/// The specification caps this at 256.
fn alignment(bytes: u32) -> u32 {
    bytes.clamp(1, TENSOR_ALIGNMENT as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_limits_are_enough_and_less_is_named() {
        assert_eq!(unusable(&Limits::default()), None);
        let few = Limits { max_storage_buffers_per_shader_stage: 4, ..Limits::default() };
        assert_eq!(unusable(&few).as_deref(), Some("4 storage buffers per stage, 8 are needed"));
        let small = Limits { max_compute_workgroup_storage_size: 8192, ..Limits::default() };
        assert_eq!(unusable(&small).as_deref(), Some("8192 bytes of workgroup memory, 16384 are needed"));
    }

    /// Metal has 29 places for buffers of every kind.
    #[test]
    fn parameters_take_the_place_of_a_buffer() {
        let limits = |storage, all| Limits {
            max_storage_buffers_per_shader_stage: storage,
            max_buffers_and_acceleration_structures_per_shader_stage: all,
            ..Limits::default()
        };
        assert_eq!([(29, 29), (8, 28), (500, u32::MAX)].map(|(s, a)| bindings(&limits(s, a))), [28, 8, 32]);
    }

    #[test]
    fn the_smallest_target_is_that_of_the_default_limits() {
        let least = Target::minimal_webgpu();
        let limits = Limits::default();
        assert_eq!(least.max_buffer_bytes, limits.max_buffer_size);
        assert_eq!(least.max_binding_bytes, limits.max_storage_buffer_binding_size);
        assert_eq!(least.max_workgroup_bytes, limits.max_compute_workgroup_storage_size);
        assert_eq!(least.max_invocations, limits.max_compute_invocations_per_workgroup);
        assert_eq!(least.max_bindings, limits.max_storage_buffers_per_shader_stage);
        assert_eq!(least.binding_alignment, limits.min_storage_buffer_offset_alignment);
        assert_eq!(least.max_groups, [limits.max_compute_workgroups_per_dimension; 3]);
    }
}

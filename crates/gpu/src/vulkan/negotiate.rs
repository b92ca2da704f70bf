//! From a driver's limits to a [`Target`].
//!
//! Source: Vulkan specification, chapters Limits and Features. Nothing optional is asked for besides timeline semaphores
//! and, where they are, matrix units and statistics of kernels for profiles.

use super::adapter::target_name;
use super::instance::has_extension;
use ash::{amd, khr, nv, vk};
use griffinfly_ir::target::{Backend, LEAST_ITERATIONS, NumericClass, TENSOR_ALIGNMENT, Target};

/// Storage bindings every kernel may rely on.
pub(super) const MIN_BINDINGS: u32 = 8;
/// More storage bindings than this are not offered to the compiler.
const MAX_BINDINGS: u32 = 32;
/// More parameter bytes than this are not offered to the compiler.
const MAX_PARAMETER_BYTES: u32 = 256;

/// An adapter being asked.
pub(super) struct Query<'a> {
    pub(super) instance: &'a ash::Instance,
    pub(super) physical: vk::PhysicalDevice,
    pub(super) properties: &'a vk::PhysicalDeviceProperties,
    pub(super) available: &'a [vk::ExtensionProperties],
}

impl Query<'_> {
    pub(super) fn target(&self, is_hardware: bool) -> Target {
        let limits = &self.properties.limits;
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut memory = vk::PhysicalDeviceMaintenance3Properties::default();
        self.fill(vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup).push_next(&mut memory));
        let bindings = limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers)
            .min(limits.max_per_stage_resources);
        Target {
            backend: Backend::Vulkan,
            name: target_name(self.properties),
            max_binding_bytes: u64::from(limits.max_storage_buffer_range),
            max_buffer_bytes: memory.max_memory_allocation_size.min(self.max_buffer_size()),
            binding_alignment: alignment(limits.min_storage_buffer_offset_alignment),
            max_bindings: bindings.min(MAX_BINDINGS),
            max_workgroup_bytes: limits.max_compute_shared_memory_size,
            max_invocations: limits.max_compute_work_group_invocations,
            max_workgroup_size: limits.max_compute_work_group_size,
            max_groups: limits.max_compute_work_group_count,
            max_parameter_bytes: limits.max_push_constants_size.min(MAX_PARAMETER_BYTES),
            subgroup_size: subgroup.subgroup_size.max(1),
            max_iterations: self.max_iterations(),
            is_hardware,
            compute_units: self.compute_units(is_hardware),
            numeric_classes: NumericClass::ALL.to_vec(),
            matrix_formats: Vec::new(),
            has_f32_matrices: false,
        }
    }

    /// Lavapipe ends an invocation after this many loop iterations and says nothing.
    fn max_iterations(&self) -> u32 {
        let is_lavapipe =
            self.driver_properties().is_some_and(|d| d.driver_id == vk::DriverId::MESA_LLVMPIPE);
        if is_lavapipe { LEAST_ITERATIONS } else { u32::MAX }
    }

    fn driver_properties(&self) -> Option<vk::PhysicalDeviceDriverProperties<'static>> {
        let known = self.properties.api_version >= vk::API_VERSION_1_2
            || has_extension(self.available, khr::driver_properties::NAME);
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        known.then(|| {
            self.fill(vk::PhysicalDeviceProperties2::default().push_next(&mut driver));
            driver.p_next = std::ptr::null_mut();
            driver
        })
    }

    pub(super) fn driver(&self) -> String {
        let Some(driver) = self.driver_properties() else {
            return format!("version {}", self.properties.driver_version);
        };
        let text = |name: Result<&std::ffi::CStr, _>| match name {
            Ok(name) => name.to_string_lossy().into_owned(),
            Err(std::ffi::FromBytesUntilNulError { .. }) => String::new(),
        };
        let (name, info) = (text(driver.driver_name_as_c_str()), text(driver.driver_info_as_c_str()));
        format!("{name} {info}").trim().to_owned()
    }

    fn max_buffer_size(&self) -> u64 {
        let known = self.properties.api_version >= vk::API_VERSION_1_3
            || has_extension(self.available, khr::maintenance4::NAME);
        if !known {
            return u64::MAX;
        }
        let mut limits = vk::PhysicalDeviceMaintenance4Properties::default();
        self.fill(vk::PhysicalDeviceProperties2::default().push_next(&mut limits));
        if limits.max_buffer_size == 0 { u64::MAX } else { limits.max_buffer_size }
    }

    pub(super) fn compute_units(&self, is_hardware: bool) -> u32 {
        if !is_hardware {
            let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            return u32::try_from(cpus).unwrap_or(1);
        }
        if has_extension(self.available, nv::shader_sm_builtins::NAME) {
            let mut sm = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
            self.fill(vk::PhysicalDeviceProperties2::default().push_next(&mut sm));
            return sm.shader_sm_count.max(1);
        }
        if has_extension(self.available, amd::shader_core_properties::NAME) {
            let mut core = vk::PhysicalDeviceShaderCorePropertiesAMD::default();
            self.fill(vk::PhysicalDeviceProperties2::default().push_next(&mut core));
            let arrays = core.shader_engine_count.saturating_mul(core.shader_arrays_per_engine_count);
            return arrays.saturating_mul(core.compute_units_per_shader_array).max(1);
        }
        // Unknown: a middle-sized card, or a small integrated GPU.
        if self.properties.device_type == vk::PhysicalDeviceType::DISCRETE_GPU { 32 } else { 8 }
    }

    fn fill(&self, mut properties: vk::PhysicalDeviceProperties2<'_>) {
        // SAFETY: the adapter implements Vulkan 1.1; chained structs belong to versions or extensions it has.
        unsafe { self.instance.get_physical_device_properties2(self.physical, &mut properties) };
    }
}

/// The specification caps this at 256; a driver that says more would be wrong, and one that says 0 means 1.
fn alignment(bytes: u64) -> u32 {
    u32::try_from(bytes.clamp(1, TENSOR_ALIGNMENT)).unwrap_or(256)
}

/// Whether the adapter has timeline semaphores, in either form.
pub(super) fn has_timeline(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    available: &[vk::ExtensionProperties],
    version: u32,
) -> bool {
    if version < vk::API_VERSION_1_1 {
        return false;
    }
    if version < vk::API_VERSION_1_2 && !has_extension(available, khr::timeline_semaphore::NAME) {
        return false;
    }
    let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default();
    let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut timeline);
    // SAFETY: the adapter implements Vulkan 1.1 and knows the chained struct.
    unsafe { instance.get_physical_device_features2(physical, &mut features) };
    timeline.timeline_semaphore == vk::TRUE
}

/// Whether the adapter tells what its compiled kernels take.
pub(super) fn has_statistics(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    available: &[vk::ExtensionProperties],
    version: u32,
) -> bool {
    if version < vk::API_VERSION_1_1 || !has_extension(available, khr::pipeline_executable_properties::NAME) {
        return false;
    }
    let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
    let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut statistics);
    // SAFETY: the adapter implements Vulkan 1.1 and has the extension of the chained struct.
    unsafe { instance.get_physical_device_features2(physical, &mut features) };
    statistics.pipeline_executable_info == vk::TRUE
}

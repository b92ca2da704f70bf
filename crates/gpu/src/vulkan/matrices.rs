//! Matrix units (cooperative matrices): which formats an adapter multiplies, and the features that kernels with them need.
//!
//! Only 16x16x16 products with f32 sums in subgroups of 32 count, since that is what kernels are made for. An adapter that lacks
//! anything on the way has none, which costs speed and nothing else.
//!
//! Source: Vulkan specification, VK_KHR_cooperative_matrix, VK_KHR_shader_bfloat16 (newer than the bindings used here, so its
//! structure is written out).

use super::instance::has_extension;
use ash::{Entry, khr, vk};
use griffinfly_ir::target::HalfFormat;
use std::ffi::{CStr, c_void};

/// Subgroup size that kernels with matrices are made for.
const SUBGROUP: u32 = 32;
/// Rows, columns and products of a matrix.
const SIZE: u32 = 16;

const BFLOAT16: &CStr = c"VK_KHR_shader_bfloat16";
/// `VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR` and `VK_COMPONENT_TYPE_BFLOAT16_KHR`.
const BFLOAT16_NUMBER: i32 = 1_000_141_000;

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR`.
#[repr(C)]
pub(super) struct Bfloat16Features {
    s_type: vk::StructureType,
    p_next: *mut c_void,
    shader_bfloat16_type: vk::Bool32,
    shader_bfloat16_dot_product: vk::Bool32,
    shader_bfloat16_cooperative_matrix: vk::Bool32,
}

impl Bfloat16Features {
    const fn new(enabled: bool) -> Self {
        let value = if enabled { vk::TRUE } else { vk::FALSE };
        Self {
            s_type: vk::StructureType::from_raw(BFLOAT16_NUMBER),
            p_next: std::ptr::null_mut(),
            shader_bfloat16_type: value,
            shader_bfloat16_dot_product: vk::FALSE,
            shader_bfloat16_cooperative_matrix: value,
        }
    }
}

// SAFETY: the layout and the structure type are those of the specification.
unsafe impl vk::TaggedStructure for Bfloat16Features {
    const STRUCTURE_TYPE: vk::StructureType = vk::StructureType::from_raw(BFLOAT16_NUMBER);
}
// SAFETY: the specification lets it extend both.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for Bfloat16Features {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for Bfloat16Features {}

/// The features of a device with matrix units, to be chained to its creation.
pub(super) struct Features {
    matrices: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>,
    model: vk::PhysicalDeviceVulkanMemoryModelFeatures<'static>,
    float16: vk::PhysicalDeviceShaderFloat16Int8Features<'static>,
    bfloat16: Bfloat16Features,
    formats: Vec<HalfFormat>,
}

impl Features {
    /// What kernels of these formats need.
    pub(super) fn of(formats: &[HalfFormat]) -> Self {
        Self {
            matrices: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true),
            model: vk::PhysicalDeviceVulkanMemoryModelFeatures::default()
                .vulkan_memory_model(true)
                .vulkan_memory_model_device_scope(true),
            float16: vk::PhysicalDeviceShaderFloat16Int8Features::default()
                .shader_float16(formats.contains(&HalfFormat::F16)),
            bfloat16: Bfloat16Features::new(true),
            formats: formats.to_vec(),
        }
    }

    /// Adds them to the creation of a device; nothing without formats.
    pub(super) fn chain<'a>(&'a mut self, info: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        if self.formats.is_empty() {
            return info;
        }
        let info = info.push_next(&mut self.matrices).push_next(&mut self.model).push_next(&mut self.float16);
        if self.formats.contains(&HalfFormat::Bf16) { info.push_next(&mut self.bfloat16) } else { info }
    }
}

/// The extensions that kernels of these formats need.
pub(super) fn extensions(formats: &[HalfFormat]) -> Vec<&'static CStr> {
    let mut names = Vec::new();
    if !formats.is_empty() {
        names.push(khr::cooperative_matrix::NAME);
    }
    if formats.contains(&HalfFormat::Bf16) {
        names.push(BFLOAT16);
    }
    names
}

/// An adapter being asked.
pub(super) struct Query<'a> {
    pub(super) entry: &'a Entry,
    pub(super) instance: &'a ash::Instance,
    pub(super) physical: vk::PhysicalDevice,
    pub(super) available: &'a [vk::ExtensionProperties],
    /// The lower one of the versions of instance and adapter.
    pub(super) version: u32,
    pub(super) subgroup_size: u32,
}

impl Query<'_> {
    /// Formats the adapter multiplies.
    pub(super) fn formats(&self) -> Vec<HalfFormat> {
        let known = self.version >= vk::API_VERSION_1_3
            && self.subgroup_size == SUBGROUP
            && has_extension(self.available, khr::cooperative_matrix::NAME);
        if !known {
            return Vec::new();
        }
        let has_bfloat16 = has_extension(self.available, BFLOAT16);
        let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
        let mut model = vk::PhysicalDeviceVulkanMemoryModelFeatures::default();
        let mut float16 = vk::PhysicalDeviceShaderFloat16Int8Features::default();
        let mut bfloat16 = Bfloat16Features::new(false);
        let mut features = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut matrices)
            .push_next(&mut model)
            .push_next(&mut float16);
        if has_bfloat16 {
            features = features.push_next(&mut bfloat16);
        }
        // SAFETY: the adapter has the versions and extensions of the chained structures.
        unsafe { self.instance.get_physical_device_features2(self.physical, &mut features) };
        let all =
            [matrices.cooperative_matrix, model.vulkan_memory_model, model.vulkan_memory_model_device_scope];
        if all.contains(&vk::FALSE) {
            return Vec::new();
        }
        let bfloat16 = bfloat16.shader_bfloat16_type & bfloat16.shader_bfloat16_cooperative_matrix;
        let mut formats = Vec::new();
        if float16.shader_float16 == vk::TRUE && self.multiplies(vk::ComponentTypeKHR::FLOAT16) {
            formats.push(HalfFormat::F16);
        }
        if bfloat16 == vk::TRUE && self.multiplies(vk::ComponentTypeKHR::from_raw(BFLOAT16_NUMBER)) {
            formats.push(HalfFormat::Bf16);
        }
        formats
    }

    /// Whether compute kernels multiply matrices of this type with sums in f32.
    fn multiplies(&self, component: vk::ComponentTypeKHR) -> bool {
        let calls = khr::cooperative_matrix::Instance::new(self.entry, self.instance);
        // SAFETY: the adapter has the extension.
        let shapes = unsafe { calls.get_physical_device_cooperative_matrix_properties(self.physical) };
        shapes.unwrap_or_default().iter().any(|shape| {
            [shape.m_size, shape.n_size, shape.k_size] == [SIZE; 3]
                && [shape.a_type, shape.b_type] == [component; 2]
                && [shape.c_type, shape.result_type] == [vk::ComponentTypeKHR::FLOAT32; 2]
                && shape.scope == vk::ScopeKHR::SUBGROUP
        })
    }
}

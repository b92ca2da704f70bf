//! What a program is compiled for: the limits and features of a device, as plain data.
//!
//! A [`Target`] is filled by a device (or written by hand for tests and cross-compilation) and recorded in every program; a
//! program is refused by a device whose target differs. Nothing here refers to a driver or an API object.

use serde::{Deserialize, Serialize};

/// How a program is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Loops executed on the CPU.
    Host,
    /// SPIR-V kernels through Vulkan.
    Vulkan,
}

/// Arithmetic a kernel uses for products; kernels without contractions are `F32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumericClass {
    /// f32 operands, f32 fused or separate multiply-add, f32 accumulation.
    F32,
}

impl NumericClass {
    /// Its name in plans and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NumericClass::F32 => "f32",
        }
    }
}

/// The precision contract of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contract {
    /// f32 storage, products and accumulation everywhere.
    #[default]
    Strict,
}

/// Limits and features of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// How programs are executed.
    pub backend: Backend,
    /// Device name, for reports and for keeping tuned choices apart.
    pub name: String,
    /// Largest byte range one storage binding may cover.
    pub max_binding_bytes: u64,
    /// Largest buffer in bytes.
    pub max_buffer_bytes: u64,
    /// Required alignment of binding offsets in bytes; a power of two, at most 256.
    pub binding_alignment: u32,
    /// Storage bindings one kernel may have.
    pub max_bindings: u32,
    /// Workgroup memory in bytes.
    pub max_workgroup_bytes: u32,
    /// Invocations per workgroup.
    pub max_invocations: u32,
    /// Workgroup size per dimension.
    pub max_workgroup_size: [u32; 3],
    /// Workgroups per dispatch dimension.
    pub max_groups: [u32; 3],
    /// Bytes of parameters (push constants) one dispatch may carry.
    pub max_parameter_bytes: u32,
    /// Invocations that run in lockstep.
    pub subgroup_size: u32,
    /// Loop iterations one invocation may run over all its loops; `u32::MAX` where there is no limit. Lavapipe ends an
    /// invocation there without an error.
    pub max_iterations: u32,
    /// Whether the device is hardware with its own memory bandwidth (tilings and split factors differ on software drivers).
    pub is_hardware: bool,
    /// Compute units, as far as known: how many workgroups fill the device.
    pub compute_units: u32,
    /// Numeric classes contractions may use.
    pub numeric_classes: Vec<NumericClass>,
}

/// Alignment of every tensor in every arena; a multiple of any binding alignment.
pub const TENSOR_ALIGNMENT: u64 = 256;

/// Iterations every device runs: the limit of lavapipe.
pub const LEAST_ITERATIONS: u32 = 65_535;

/// Largest chunk of an arena, whatever the device allows.
pub const MAX_CHUNK_BYTES: u64 = 1 << 30;

impl Target {
    /// The CPU backend.
    #[must_use]
    pub fn host() -> Self {
        Target {
            backend: Backend::Host,
            name: "host".into(),
            max_binding_bytes: MAX_CHUNK_BYTES,
            max_buffer_bytes: MAX_CHUNK_BYTES,
            binding_alignment: 4,
            max_bindings: u32::MAX,
            max_workgroup_bytes: 0,
            max_invocations: 1,
            max_workgroup_size: [1; 3],
            max_groups: [u32::MAX; 3],
            max_parameter_bytes: 0,
            subgroup_size: 1,
            max_iterations: u32::MAX,
            is_hardware: false,
            compute_units: 1,
            numeric_classes: vec![NumericClass::F32],
        }
    }

    /// The smallest device this project supports: what a Vulkan implementation must at least offer.
    #[must_use]
    pub fn minimal_vulkan() -> Self {
        Target {
            backend: Backend::Vulkan,
            name: "minimal vulkan".into(),
            max_binding_bytes: 128 << 20,
            max_buffer_bytes: MAX_CHUNK_BYTES,
            binding_alignment: 256,
            max_bindings: 8,
            max_workgroup_bytes: 32 << 10,
            max_invocations: 256,
            max_workgroup_size: [256, 256, 64],
            max_groups: [65_535; 3],
            max_parameter_bytes: 128,
            subgroup_size: 4,
            max_iterations: LEAST_ITERATIONS,
            is_hardware: false,
            compute_units: 2,
            numeric_classes: vec![NumericClass::F32],
        }
    }

    /// Bytes one arena chunk may have.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        let limit = self.max_binding_bytes.min(self.max_buffer_bytes).min(MAX_CHUNK_BYTES);
        limit / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT
    }
}

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
    /// WGSL kernels through WebGPU: Metal, DX12, Vulkan or a browser below it.
    WebGpu,
}

impl Backend {
    /// Whether programs are kernels (and not loops).
    #[must_use]
    pub const fn has_kernels(self) -> bool {
        match self {
            Backend::Host => false,
            Backend::Vulkan | Backend::WebGpu => true,
        }
    }

    /// Whether workgroups of one dispatch can read what others of it wrote: WGSL has no coherent storage.
    #[must_use]
    pub const fn has_exchange(self) -> bool {
        matches!(self, Backend::Vulkan)
    }

    /// Whether dispatches of one level run at the same time: WebGPU puts a barrier between any two that write one buffer.
    #[must_use]
    pub const fn overlaps_dispatches(self) -> bool {
        matches!(self, Backend::Vulkan)
    }
}

/// How the operands of products are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HalfFormat {
    /// IEEE 754 binary16: 11 significant bits, magnitudes from 6e-8 to 65504.
    F16,
    /// The upper half of an f32: 8 significant bits, the range of f32.
    Bf16,
}

/// Arithmetic a kernel uses for products; kernels without contractions and attention are `F32`. Sums are kept in f32 by all classes.
///
/// The classes other than `F32` write an operand as a sum of rounded *terms* and leave out the products of small terms. Errors
/// are relative (Frobenius norm over the result, random operands of either sign).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NumericClass {
    /// f32 operands, f32 fused or separate multiply-add: 6e-7.
    #[serde(rename = "f32")]
    F32,
    /// Three bf16 terms, six products: 2e-7 while sums are short, any range.
    #[serde(rename = "bf16x3/6")]
    Bf16x3,
    /// Two bf16 terms, three products: 5e-6, any range.
    #[serde(rename = "bf16x2/3")]
    Bf16x2,
    /// One f16 term, one product: 3e-4; operands beyond 65504 become infinite, below 6e-5 lose digits, below 3e-8 vanish.
    #[serde(rename = "f16x1")]
    F16,
    /// One bf16 term, one product: 2.4e-3, any range.
    #[serde(rename = "bf16x1")]
    Bf16,
}

impl NumericClass {
    /// All classes, the most exact first.
    pub const ALL: [Self; 5] = [Self::F32, Self::Bf16x3, Self::Bf16x2, Self::F16, Self::Bf16];

    /// Its name in plans and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NumericClass::F32 => "f32",
            NumericClass::Bf16x3 => "bf16x3/6",
            NumericClass::Bf16x2 => "bf16x2/3",
            NumericClass::F16 => "f16x1",
            NumericClass::Bf16 => "bf16x1",
        }
    }

    /// How its terms are rounded; `None` for unrounded operands.
    #[must_use]
    pub const fn format(self) -> Option<HalfFormat> {
        match self {
            NumericClass::F32 => None,
            NumericClass::F16 => Some(HalfFormat::F16),
            NumericClass::Bf16x3 | NumericClass::Bf16x2 | NumericClass::Bf16 => Some(HalfFormat::Bf16),
        }
    }

    /// Products of terms (left, right) that are summed, the smallest first.
    #[must_use]
    pub const fn products(self) -> &'static [(usize, usize)] {
        match self {
            NumericClass::F32 | NumericClass::F16 | NumericClass::Bf16 => &[(0, 0)],
            NumericClass::Bf16x2 => &[(0, 1), (1, 0), (0, 0)],
            NumericClass::Bf16x3 => &[(0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)],
        }
    }

    /// Terms of an operand.
    #[must_use]
    pub const fn terms(self) -> u32 {
        match self {
            NumericClass::F32 | NumericClass::F16 | NumericClass::Bf16 => 1,
            NumericClass::Bf16x2 => 2,
            NumericClass::Bf16x3 => 3,
        }
    }

    /// A bound on the relative error of a contraction of this class alone (Frobenius norm).
    #[must_use]
    pub const fn error(self) -> f64 {
        match self {
            NumericClass::F32 => 2e-6,
            NumericClass::Bf16x3 => 4e-6,
            NumericClass::Bf16x2 => 2e-5,
            NumericClass::F16 => 1e-3,
            NumericClass::Bf16 => 8e-3,
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
    /// f32 storage and accumulation; contractions and attention may round the operands of products: of large ones to f16 (11 bits;
    /// infinite from 65,520 on, fewer digits below 6e-5), in the derivative region to bf16 (8 bits, any range).
    Fast,
}

impl Contract {
    /// Its name in commands, records and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Contract::Strict => "strict",
            Contract::Fast => "fast",
        }
    }

    /// The numeric classes that contractions and attention may use, in the derivative region or outside it.
    #[must_use]
    pub const fn classes(self, is_derivative: bool) -> &'static [NumericClass] {
        match (self, is_derivative) {
            (Contract::Strict, _) => &[NumericClass::F32],
            // Gradients are too small for f16.
            (Contract::Fast, true) => {
                &[NumericClass::F32, NumericClass::Bf16x3, NumericClass::Bf16x2, NumericClass::Bf16]
            }
            (Contract::Fast, false) => {
                &[NumericClass::F32, NumericClass::Bf16x3, NumericClass::Bf16x2, NumericClass::F16]
            }
        }
    }
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
    /// Numeric classes contractions and attention may use.
    pub numeric_classes: Vec<NumericClass>,
    /// Formats that the matrix units multiply: 16x16x16 with f32 sums, by 32 invocations in lockstep. Classes of other formats are
    /// computed with ordinary arithmetic: to test the algorithm, not to be fast.
    pub matrix_formats: Vec<HalfFormat>,
    /// Whether matrix units multiply 8x8x8 in f32, by 32 invocations in lockstep: what Apple GPUs have. Strict programs use them.
    #[serde(default)]
    pub has_f32_matrices: bool,
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
            matrix_formats: Vec::new(),
            has_f32_matrices: false,
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
            numeric_classes: NumericClass::ALL.to_vec(),
            matrix_formats: Vec::new(),
            has_f32_matrices: false,
        }
    }

    /// A device with the default limits of WebGPU (W3C WebGPU, section 3.6.2), which every browser grants.
    #[must_use]
    pub fn minimal_webgpu() -> Self {
        Target {
            backend: Backend::WebGpu,
            name: "minimal webgpu".into(),
            max_buffer_bytes: 256 << 20,
            max_workgroup_bytes: 16 << 10,
            subgroup_size: 1,
            ..Target::minimal_vulkan()
        }
    }

    /// Bytes one arena chunk may have.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        let limit = self.max_binding_bytes.min(self.max_buffer_bytes).min(MAX_CHUNK_BYTES);
        limit / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT
    }
}

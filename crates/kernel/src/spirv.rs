//! WGSL text to SPIR-V words through naga: parse, validate (always), write.
//!
//! Invariants: validation is never skipped and knows exactly the capabilities our printer may use; the writer injects
//! nothing (no bounds checks, no workgroup zeroing, no loop bounds, no division guards), since the generator proves
//! its indices, initialises what it reads and divides by positive constants or extents. The output is SPIR-V 1.3: the
//! newest form that every Vulkan 1.1 driver reads, with storage buffers in their own storage class.
//!
//! Modules with matrices are SPIR-V 1.6 under the Vulkan memory model; what naga leaves out there is put in by `patch`.
//!
//! naga 30 accepts barriers under any condition; that they are reached by whole workgroups is checked by
//! [`crate::verify`], with the knowledge of the generator. So it is for matrices, which naga lets stand only where it sees that whole
//! workgroups arrive, though whole subgroups suffice.

mod patch;

use crate::print;
use naga::back::spv;
use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};

use crate::KernelError;

/// SPIR-V version of everything we write.
const SPIRV_VERSION: (u8, u8) = (1, 3);

/// What our printer may use besides the core of the language.
const CAPABILITIES: Capabilities = Capabilities::IMMEDIATES.union(Capabilities::MEMORY_DECORATION_COHERENT);

/// SPIR-V version of modules with matrices.
const MATRIX_VERSION: (u8, u8) = (1, 6);

/// What modules with matrices may use besides.
const MATRIX_CAPABILITIES: Capabilities =
    CAPABILITIES.union(Capabilities::SHADER_FLOAT16).union(Capabilities::COOPERATIVE_MATRIX).union(SUBGROUPS);

/// Barriers of subgroups.
const SUBGROUPS: Capabilities = Capabilities::SUBGROUP.union(Capabilities::SUBGROUP_BARRIER);

/// Translates one WGSL module and selects its compute entry point `entry`.
///
/// # Errors
/// Text that does not parse or validate, or an entry point that is not there.
pub fn compile(wgsl: &str, entry: &str) -> Result<Vec<u32>, KernelError> {
    let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| KernelError::Parse {
        message: error.emit_to_string(wgsl),
        line: error.location(wgsl).map(|at| at.line_number),
        wgsl: wgsl.to_owned(),
    })?;
    let has_matrices = wgsl.lines().any(|line| line == print::MATRICES);
    let (version, capabilities) =
        if has_matrices { (MATRIX_VERSION, MATRIX_CAPABILITIES) } else { (SPIRV_VERSION, CAPABILITIES) };
    let mut flags = ValidationFlags::all();
    flags.set(ValidationFlags::CONTROL_FLOW_UNIFORMITY, !has_matrices);
    let mut validator = Validator::new(flags, capabilities);
    if has_matrices {
        validator.subgroup_stages(ShaderStages::COMPUTE).subgroup_operations(SubgroupOperationSet::BASIC);
    }
    let info = validator.validate(&module).map_err(|error| KernelError::Validate {
        message: error.emit_to_string(wgsl),
        line: error.location(wgsl).map(|at| at.line_number),
        wgsl: wgsl.to_owned(),
    })?;
    let pipeline =
        spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: entry.to_owned() };
    let fail = |message: String| KernelError::Write { entry: entry.to_owned(), message };
    let words = spv::write_vec(&module, &info, &options(version), Some(&pipeline))
        .map_err(|error| fail(error.to_string()))?;
    if !has_matrices {
        return Ok(words);
    }
    let is_bf16 = wgsl.lines().next() == Some(print::BF16);
    patch::matrices(&words, is_bf16).ok_or_else(|| fail("the module is not well-formed".into()))
}

fn options(lang_version: (u8, u8)) -> spv::Options<'static> {
    spv::Options {
        lang_version,
        flags: spv::WriterFlags::empty(),
        fake_missing_bindings: true,
        bounds_check_policies: naga::proc::BoundsCheckPolicies::default(),
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        use_storage_input_output_16: false,
        ..spv::Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "@group(0) @binding(0) var<storage, read> x: array<f32>;\n\
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x]; }\n";

    #[test]
    fn writes_spirv_1_3() {
        let words = compile(COPY, "main").unwrap();
        assert_eq!(words[..2], [0x0723_0203, 0x0001_0300]);
    }

    #[test]
    fn default_policies_check_nothing() {
        let policies = naga::proc::BoundsCheckPolicies::default();
        assert_eq!(policies.index, naga::proc::BoundsCheckPolicy::Unchecked);
        assert_eq!(policies.buffer, naga::proc::BoundsCheckPolicy::Unchecked);
    }

    #[test]
    fn faults_are_typed_and_placed() {
        let parse = compile("fn main( {", "main").unwrap_err();
        assert!(matches!(parse, KernelError::Parse { line: Some(1), .. }), "{parse}");
        let invalid = compile(&COPY.replace("read_write", "read"), "main").unwrap_err();
        assert!(matches!(invalid, KernelError::Validate { line: Some(3), .. }), "{invalid}");
        let missing = compile(COPY, "other").unwrap_err();
        assert!(matches!(missing, KernelError::Write { .. }), "{missing}");
    }
}

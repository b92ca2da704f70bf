//! Targets written by hand.

use griffinfly_ir::target::Target;

/// A software Vulkan driver with limits like those of Mesa lavapipe.
pub(crate) fn lavapipe() -> Target {
    Target {
        name: "like lavapipe".into(),
        binding_alignment: 16,
        max_bindings: 32,
        max_invocations: 1024,
        max_workgroup_size: [1024; 3],
        max_parameter_bytes: 256,
        subgroup_size: 8,
        ..Target::minimal_vulkan()
    }
}

//! Whether a program fits the device: everything an API call would otherwise take on trust.
//!
//! Input: a program and the device's target. Output: nothing, or the first fault with its numbers.

use super::bound::arena_name;
use crate::error::GpuError;
use griffinfly_compile::program::{
    Binding, BindingAccess, Dispatch, External, ExternalKind, FORMAT, Kernel, Place, Program, Role, Work,
};
use griffinfly_ir::target::{Backend, Target};

const SPIRV_MAGIC: u32 = 0x0723_0203;

/// Checks a program.
pub(crate) fn run(program: &Program, target: &Target) -> Result<(), GpuError> {
    if program.format != FORMAT {
        return fault("the program", format!("its format is {}, this version runs {FORMAT}", program.format));
    }
    same_target(&program.target, target)?;
    for arena in &program.arenas {
        limit(
            &format!("the size of {} in bytes", arena_name(arena)),
            arena.bytes,
            target.max_buffer_bytes,
            target,
        )?;
    }
    for (index, constant) in program.constants.iter().enumerate() {
        place(program, &format!("constant {index}"), constant.place, constant.words.len() as u64 * 4)?;
    }
    program.externals.iter().try_for_each(|external| check_external(program, external))?;
    program.kernels.iter().try_for_each(|kernel| check_kernel(kernel, target))?;
    for (index, dispatch) in program.dispatches.iter().enumerate() {
        check_dispatch(program, target, &format!("dispatch {index} ({})", dispatch.instance), dispatch)?;
    }
    for id in program.sections.iter().flat_map(|section| &section.levels).flatten() {
        if id.index() >= program.dispatches.len() {
            return fault("a level", format!("dispatch {} of {}", id.0, program.dispatches.len()));
        }
    }
    Ok(())
}

fn same_target(program: &Target, device: &Target) -> Result<(), GpuError> {
    if program == device {
        return Ok(());
    }
    let (program, device) = if (program.backend, &program.name) == (device.backend, &device.name) {
        (format!("{program:?}"), format!("{device:?}"))
    } else {
        (
            format!("{} ({:?})", program.name, program.backend),
            format!("{} ({:?})", device.name, device.backend),
        )
    };
    Err(GpuError::WrongTarget { program, device })
}

fn check_external(program: &Program, external: &External) -> Result<(), GpuError> {
    let what = format!("external `{}`", external.name);
    place(program, &what, external.place, external.ty.bytes() as u64)?;
    let role = program.arenas.get(external.place.arena.index()).map(|arena| &arena.role);
    let wanted = match external.kind {
        ExternalKind::Input { .. } => Role::Inputs,
        ExternalKind::StepScalar => Role::Scalars,
        ExternalKind::Parameter => Role::Parameters,
        ExternalKind::State | ExternalKind::Output => return Ok(()),
    };
    if role == Some(&wanted) {
        Ok(())
    } else {
        fault(&what, format!("it lies in {role:?}, not in {wanted:?}"))
    }
}

fn check_kernel(kernel: &Kernel, target: &Target) -> Result<(), GpuError> {
    let of = |what: &str| format!("the {what} of kernel {}", kernel.name);
    let bindings = kernel.bindings.len() as u64;
    limit(&of("number of bindings"), bindings, target.max_bindings.into(), target)?;
    let parameters = u64::from(kernel.parameter_words) * 4;
    limit(&of("parameters in bytes"), parameters, target.max_parameter_bytes.into(), target)?;
    limit(
        &of("workgroup memory in bytes"),
        kernel.workgroup_bytes.into(),
        target.max_workgroup_bytes.into(),
        target,
    )?;
    let invocations = kernel.workgroup_size.iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul);
    limit(&of("workgroup in invocations"), invocations, target.max_invocations.into(), target)?;
    for (size, most) in kernel.workgroup_size.into_iter().zip(target.max_workgroup_size) {
        limit(&of("workgroup size"), size.into(), most.into(), target)?;
    }
    let is_spirv = kernel.spirv.len() >= 5 && kernel.spirv[0] == SPIRV_MAGIC;
    match target.backend {
        Backend::WebGpu if kernel.wgsl.is_empty() => {
            fault(&format!("kernel {}", kernel.name), "it has no code".into())
        }
        Backend::Vulkan | Backend::Host if !is_spirv => {
            fault(&format!("kernel {}", kernel.name), "its code is not SPIR-V".into())
        }
        _ => Ok(()),
    }
}

fn check_dispatch(
    program: &Program,
    target: &Target,
    what: &str,
    dispatch: &Dispatch,
) -> Result<(), GpuError> {
    let Work::Kernel { kernel, parameters, groups } = &dispatch.work else {
        return fault(what, "it is a loop for the host, not a kernel".into());
    };
    let Some(kernel) = program.kernels.get(kernel.index()) else {
        return fault(what, format!("kernel {} of {}", kernel.0, program.kernels.len()));
    };
    if parameters.len() as u64 != u64::from(kernel.parameter_words) {
        return fault(what, format!("{} parameter words, not {}", parameters.len(), kernel.parameter_words));
    }
    if groups.contains(&0) {
        return fault(what, format!("no workgroups in {groups:?}"));
    }
    for (count, most) in groups.iter().zip(target.max_groups) {
        limit(&format!("the number of workgroups of {what}"), (*count).into(), most.into(), target)?;
    }
    if dispatch.bindings.len() != kernel.bindings.len() {
        return fault(what, format!("{} bindings, not {}", dispatch.bindings.len(), kernel.bindings.len()));
    }
    for (index, (binding, access)) in dispatch.bindings.iter().zip(&kernel.bindings).enumerate() {
        // WebGPU declares what lies in a buffer that is written as written.
        let is_declared = target.backend == Backend::WebGpu && *access == BindingAccess::Write;
        if binding.access != *access && !is_declared {
            return fault(
                what,
                format!("binding {index} is {:?}, the kernel's is {access:?}", binding.access),
            );
        }
        let declared = Binding { access: *access, ..*binding };
        check_binding(program, target, &format!("binding {index} of {what}"), &declared)?;
    }
    Ok(())
}

fn check_binding(program: &Program, target: &Target, what: &str, binding: &Binding) -> Result<(), GpuError> {
    place(program, what, Place { arena: binding.arena, offset: binding.offset }, binding.bytes)?;
    limit(&format!("{what} in bytes"), binding.bytes, target.max_binding_bytes, target)?;
    if binding.bytes == 0 || !binding.bytes.is_multiple_of(4) {
        return fault(what, format!("{} bytes are not a positive number of words", binding.bytes));
    }
    if !binding.offset.is_multiple_of(u64::from(target.binding_alignment.max(1))) {
        return fault(
            what,
            format!("offset {} is not a multiple of {}", binding.offset, target.binding_alignment),
        );
    }
    let role = program.arenas.get(binding.arena.index()).map(|arena| &arena.role);
    match (role, binding.access) {
        (Some(Role::Inputs | Role::Scalars | Role::Constants), BindingAccess::Write) => {
            fault(what, "it writes what only the host may write".into())
        }
        _ => Ok(()),
    }
}

fn place(program: &Program, what: &str, place: Place, bytes: u64) -> Result<(), GpuError> {
    let Some(arena) = program.arenas.get(place.arena.index()) else {
        return fault(what, format!("arena {} of {}", place.arena.0, program.arenas.len()));
    };
    match place.offset.checked_add(bytes) {
        Some(end) if end <= arena.bytes => Ok(()),
        _ => fault(
            what,
            format!("{bytes} bytes at {} of {} with {} bytes", place.offset, arena_name(arena), arena.bytes),
        ),
    }
}

fn limit(what: &str, value: u64, limit: u64, target: &Target) -> Result<(), GpuError> {
    if value <= limit {
        return Ok(());
    }
    Err(GpuError::Limit { what: what.into(), value, limit, device: target.name.clone() })
}

fn fault<T>(what: &str, detail: String) -> Result<T, GpuError> {
    Err(GpuError::Usage { what: what.into(), detail })
}

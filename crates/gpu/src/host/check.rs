//! Whether a program can run on this device: everything that could be wrong with one is found before memory is made.

use super::overlap;
use super::soundness;
use crate::error::GpuError;
use griffinfly_compile::program::{
    Arena, Binding, BindingAccess, Dispatch, ExternalKind, FORMAT, Place, Program, Role, Work,
};
use griffinfly_ir::target::Backend;
use griffinfly_ir::types::TensorType;

/// A misuse.
pub(super) fn usage(what: impl Into<String>, detail: impl Into<String>) -> GpuError {
    GpuError::Usage { what: what.into(), detail: detail.into() }
}

/// Checks a program.
///
/// # Errors
/// The first fault.
pub(super) fn check(program: &Program) -> Result<(), GpuError> {
    let target = &program.target;
    if target.backend != Backend::Host {
        let program = format!("{:?} ({})", target.backend, target.name);
        return Err(GpuError::WrongTarget { program, device: "host".into() });
    }
    if program.format != FORMAT {
        return Err(usage("program", format!("format {}, this version runs {FORMAT}", program.format)));
    }
    for (i, l) in program.loops.iter().enumerate() {
        soundness::check(l).map_err(|e| usage(format!("loop {i}"), e))?;
    }
    for (i, d) in program.dispatches.iter().enumerate() {
        check_dispatch(program, d).map_err(|e| usage(format!("dispatch {i} ({})", d.instance), e))?;
    }
    check_sections(program)?;
    for e in &program.externals {
        check_external(program, &e.kind, e.place, &e.ty)
            .map_err(|d| usage(format!("external {}", e.name), d))?;
    }
    for (i, c) in program.constants.iter().enumerate() {
        inside(program, c.place, c.words.len() as u64 * 4).map_err(|e| usage(format!("constant {i}"), e))?;
    }
    Ok(())
}

fn arena(program: &Program, index: u32) -> Result<&Arena, String> {
    program.arenas.get(index as usize).ok_or_else(|| format!("arena {index} does not exist"))
}

/// That bytes from a place lie in its arena, aligned for the target.
fn inside(program: &Program, place: Place, bytes: u64) -> Result<(), String> {
    let arena = arena(program, place.arena.0)?;
    let alignment = u64::from(program.target.binding_alignment.max(4));
    if !place.offset.is_multiple_of(alignment) {
        return Err(format!("byte offset {} is not a multiple of {alignment}", place.offset));
    }
    match place.offset.checked_add(bytes) {
        Some(end) if end <= arena.bytes => Ok(()),
        _ => Err(format!(
            "bytes {}.. of length {bytes} are outside arena {} of {} bytes",
            place.offset, place.arena.0, arena.bytes
        )),
    }
}

fn check_binding(program: &Program, b: &Binding, ty: &TensorType) -> Result<(), String> {
    inside(program, Place { arena: b.arena, offset: b.offset }, b.bytes)?;
    if b.bytes < ty.bytes() as u64 {
        return Err(format!("{} bytes bound for {ty} of {} bytes", b.bytes, ty.bytes()));
    }
    Ok(())
}

/// A result may be written: the binding says so and the arena is not the host's own.
fn check_written(program: &Program, b: &Binding) -> Result<(), String> {
    let role = &arena(program, b.arena.0)?.role;
    match (role, b.access) {
        (Role::Inputs | Role::Scalars | Role::Constants, _) => {
            Err(format!("a result in an arena of {role:?}"))
        }
        (_, BindingAccess::Write) => Ok(()),
        (_, BindingAccess::Read) => Err("a result bound for reading".into()),
    }
}

fn check_dispatch(program: &Program, d: &Dispatch) -> Result<(), String> {
    if !matches!(d.work, Work::Loop) {
        return Err("is a kernel, the host runs loops".into());
    }
    let l =
        program.loops.get(d.source.index()).ok_or_else(|| format!("loop {} does not exist", d.source.0))?;
    let types: Vec<&TensorType> = l.operands.iter().chain(&l.results).collect();
    if types.len() != d.bindings.len() {
        return Err(format!("{} bindings for {} tensors", d.bindings.len(), types.len()));
    }
    for (i, (b, ty)) in d.bindings.iter().zip(types).enumerate() {
        check_binding(program, b, ty).map_err(|e| format!("binding {i}: {e}"))?;
        if i >= l.operands.len() {
            check_written(program, b).map_err(|e| format!("binding {i}: {e}"))?;
        }
    }
    overlap::check_dispatch(l, &d.bindings)
}

fn check_sections(program: &Program) -> Result<(), GpuError> {
    for (s, section) in program.sections.iter().enumerate() {
        for (i, level) in section.levels.iter().enumerate() {
            let what = || format!("section {s} ({:?}), level {i}", section.kind);
            if let Some(id) = level.iter().find(|id| id.index() >= program.dispatches.len()) {
                return Err(usage(what(), format!("dispatch {} does not exist", id.0)));
            }
            overlap::check_level(program, level).map_err(|e| usage(what(), e))?;
        }
    }
    Ok(())
}

fn check_external(
    program: &Program,
    kind: &ExternalKind,
    place: Place,
    ty: &TensorType,
) -> Result<(), String> {
    ty.check()?;
    inside(program, place, ty.bytes() as u64)?;
    let role = &arena(program, place.arena.0)?.role;
    let expected = match kind {
        ExternalKind::Input { .. } => matches!(role, Role::Inputs),
        ExternalKind::StepScalar => matches!(role, Role::Scalars),
        ExternalKind::Parameter => matches!(role, Role::Parameters),
        ExternalKind::State | ExternalKind::Output => true,
    };
    if expected { Ok(()) } else { Err(format!("{kind:?} in an arena of {role:?}")) }
}

/// Whether the caller supplies arenas of this role.
pub(super) fn is_bound(role: &Role) -> bool {
    matches!(role, Role::Parameters | Role::Mirror(_) | Role::State)
}

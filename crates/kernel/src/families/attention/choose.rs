//! Which geometry an attention loop gets when nothing was measured.

use super::Geometry;
use crate::KernelError;
use crate::families::emit::unsupported;
use griffinfly_ir::loops::{Attention, AttentionVariant};
use griffinfly_ir::target::Target;

/// The geometry for a loop on a target.
///
/// # Errors
/// No head, row or element, or heads too wide for the target's workgroup memory.
pub fn choose(a: &Attention, target: &Target) -> Result<Geometry, KernelError> {
    let s = a.shape;
    if s.of_scores().iter().chain([&s.width]).any(|n| *n == 0) {
        return Err(unsupported("attention", format!("empty extents {s:?}")));
    }
    let rows = if a.variant == AttentionVariant::GradKeyValue { s.keys } else { s.queries };
    let most_rows = (rows.next_power_of_two() as u32).max(4);
    Geometry::all().into_iter().find(|g| g.rows <= most_rows.min(32) && g.fits(a, target)).ok_or_else(|| {
        let bytes = target.max_workgroup_bytes;
        unsupported("attention", format!("heads of {} elements in {bytes} bytes of memory", s.width))
    })
}

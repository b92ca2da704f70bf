//! Prefetch: reads bytes so that they lie in the device's cache when a later dispatch wants them.
//!
//! Each invocation reads one word of several sectors of 32 bytes, the least a cache fetches. The words are combined, and the
//! result would be stored if it were one particular pattern, so that no driver may leave the loads away; what the store then
//! hits is scratch that nobody reads. Nothing else has a result.

use super::emit::{Draft, fold_groups};
use super::{Instance, Slot};
use crate::KernelError;
use crate::kir::{Builder, Type};
use griffinfly_ir::target::Target;

/// The name of all instances.
pub const PREFETCH: &str = "prefetch";

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;
/// Sectors that an invocation reads.
const SECTORS: u32 = 8;
/// Words of a sector.
const WORDS: u32 = 8;

/// The instance that reads so many bytes of operand 0; scratch 0 is one word of its own.
///
/// # Errors
/// More bytes than workgroups or indices of the target reach.
pub fn prefetch(bytes: u64, target: &Target) -> Result<Instance, KernelError> {
    let name = PREFETCH.to_owned();
    let b = Builder::new(name.clone(), [WORKGROUP, 1, 1]);
    let last = b.param("last_sector");
    let (source, sink) = (b.read("x0", Type::U32), b.read_write("s0", Type::U32));
    let first = b.flat_workgroup_id() * (WORKGROUP * SECTORS) + b.local_index();
    let mut words = (0..SECTORS).map(|i| source.load((first + i * WORKGROUP).native_min(last) * WORDS));
    let first_word = words.next().unwrap_or_else(|| b.constant(0_u32));
    let all = words.fold(first_word, |all, word| all | word);
    b.if_(all.equals(0x7fc1_5a3d_u32), || sink.store(0_u32, all));
    let sectors = bytes.div_ceil(u64::from(WORDS) * 4).max(1);
    let sectors32 = u32::try_from(sectors)
        .map_err(|_| super::emit::unsupported("prefetch", format!("{bytes} bytes, 128 GiB allowed")))?;
    Draft {
        name,
        bindings: vec![Slot::Operand(0), Slot::Scratch(0)],
        parameters: vec![sectors32 - 1],
        groups: fold_groups(sectors.div_ceil(u64::from(WORKGROUP * SECTORS)), target)?,
    }
    .finish(b, target)
}

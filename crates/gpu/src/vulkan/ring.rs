//! The host's side of a step: values of inputs and scalars, and where outputs land.
//!
//! The latest value of each input is kept in ordinary memory; before a step is submitted, the slot it takes receives those
//! it has not seen yet, so reading back mapped (and perhaps uncached) memory is never needed.
//!
//! Where outputs land is made when a slot first needs it: programs whose outputs stay on the device, such as large gradients, need
//! no memory of the host.
//!
//! Invariants: step t uses slot t modulo the number of slots; a slot's memory is touched by the host only when its last step
//! is done.

use super::arenas::Arenas;
use super::bind::not_checked;
use super::context::Context;
use super::memory::{Home, RawBuffer, Request};
use crate::error::GpuError;
use crate::ids::Ids;
use griffinfly_compile::program::{ExternalKind, Place, Program};
use std::sync::Arc;

/// Offset alignment of outputs in the readback buffer.
const OUTPUT_ALIGNMENT: u64 = 16;

/// Inputs, outputs and slots of an executor.
pub(super) struct Ring {
    /// By external; `None` for what the host does not write.
    inputs: Vec<Option<Input>>,
    outputs: Vec<Output>,
    /// Bytes of a readback buffer.
    readback_bytes: u64,
    slots: Vec<Slot>,
}

struct Input {
    name: String,
    place: Place,
    /// Allowed values, where they are ids.
    ids: Option<Ids>,
    bytes: Vec<u8>,
    /// How often it was written.
    version: u64,
}

/// An output in the readback buffer of each slot.
pub(super) struct Output {
    external: usize,
    pub(super) place: Place,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

struct Slot {
    /// By external: the version of the input that lies in the slot.
    seen: Vec<u64>,
    readback: Option<RawBuffer>,
    /// Whether its last step copied its outputs.
    copied: bool,
}

impl Ring {
    pub(super) fn new(program: &Program, slots: usize) -> Self {
        let inputs = program.externals.iter().map(input).collect();
        let (outputs, readback_bytes) = outputs(program);
        let slot = |_| Slot { seen: vec![0; program.externals.len()], readback: None, copied: false };
        Ring { inputs, outputs, readback_bytes, slots: (0..slots).map(slot).collect() }
    }

    /// Makes the readback buffer of a slot that lacks one.
    pub(super) fn make_readback(&mut self, context: &Arc<Context>, slot: usize) -> Result<(), GpuError> {
        let request =
            Request { what: "the readback buffer", bytes: self.readback_bytes, home: Home::Readback };
        if let Some(state) = self.slots.get_mut(slot).filter(|state| state.readback.is_none()) {
            state.readback = Some(RawBuffer::new(context, &request)?);
        }
        Ok(())
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    pub(super) fn readback(&self, slot: usize) -> Option<&RawBuffer> {
        self.slots.get(slot)?.readback.as_ref()
    }

    pub(super) fn copied(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.copied)
    }

    pub(super) fn set_copied(&mut self, slot: usize, copied: bool) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.copied = copied;
        }
    }

    /// Sets the value of an input for the steps submitted from now on.
    pub(super) fn write(&mut self, external: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let Some(Some(input)) = self.inputs.get_mut(external) else {
            let detail = "it is not an input or step scalar".into();
            return Err(GpuError::Usage { what: format!("writing external {external}"), detail });
        };
        let what = || format!("writing `{}`", input.name);
        if bytes.len() != input.bytes.len() {
            let detail = format!("{} bytes, not {}", bytes.len(), input.bytes.len());
            return Err(GpuError::Usage { what: what(), detail });
        }
        if let Some(detail) = input.ids.and_then(|ids| ids.fault(bytes)) {
            return Err(GpuError::Usage { what: what(), detail });
        }
        input.bytes.copy_from_slice(bytes);
        input.version += 1;
        Ok(())
    }

    /// Brings an idle slot up to date.
    pub(super) fn fill(&mut self, arenas: &mut Arenas, slot: usize) -> Result<(), GpuError> {
        let Some(state) = self.slots.get_mut(slot) else { return Err(not_checked("a slot out of range")) };
        for (input, seen) in self.inputs.iter().zip(&mut state.seen) {
            let Some(input) = input.as_ref().filter(|input| input.version != *seen) else { continue };
            let buffer = arenas.mapped(input.place.arena, slot);
            buffer
                .ok_or_else(|| not_checked("an input without an arena"))?
                .write_mapped(input.place.offset, &input.bytes)?;
            *seen = input.version;
        }
        Ok(())
    }

    /// Where an output of the given size lies.
    pub(super) fn output(&self, external: usize, bytes: usize) -> Result<&Output, GpuError> {
        let what = || format!("reading external {external}");
        let Some(output) = self.outputs.iter().find(|output| output.external == external) else {
            return Err(GpuError::Usage { what: what(), detail: "it is not an output".into() });
        };
        if output.bytes != bytes as u64 {
            let detail = format!("{bytes} bytes, not {}", output.bytes);
            return Err(GpuError::Usage { what: what(), detail });
        }
        Ok(output)
    }
}

fn input(external: &griffinfly_compile::program::External) -> Option<Input> {
    if !matches!(external.kind, ExternalKind::Input { .. } | ExternalKind::StepScalar) {
        return None;
    }
    let ids = Ids::of(&external.kind);
    Some(Input {
        name: external.name.clone(),
        place: external.place,
        ids,
        bytes: vec![0; external.ty.bytes()],
        version: 0,
    })
}

/// All outputs packed, and the bytes they take together.
fn outputs(program: &Program) -> (Vec<Output>, u64) {
    let mut at = 0_u64;
    let mut outputs = Vec::new();
    for (external, described) in program.externals.iter().enumerate() {
        let bytes = described.ty.bytes() as u64;
        if described.kind == ExternalKind::Output && bytes > 0 {
            outputs.push(Output { external, place: described.place, at, bytes });
            at = (at + bytes).next_multiple_of(OUTPUT_ALIGNMENT);
        }
    }
    (outputs, at)
}

//! The host's side of a step: values of inputs and scalars, and where outputs land.
//!
//! Before a step is submitted, the slot it takes receives the values it has not seen yet, so reading back mapped (and perhaps
//! uncached) memory is never needed.
//!
//! Where outputs land is made when a slot first needs it: programs whose outputs stay on the device, such as large gradients, need
//! no memory of the host.
//!
//! Invariant: a slot's memory is touched by the host only when its last step is done.

use super::arenas::Arenas;
use super::bind::not_checked;
use super::context::Context;
use super::memory::{Home, RawBuffer, Request};
use crate::error::GpuError;
use crate::stepping::externals::{Inputs, Outputs, Seen};
use griffinfly_compile::program::Program;
use std::sync::Arc;

/// Inputs, outputs and slots of an executor.
pub(super) struct Ring {
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
    slots: Vec<Slot>,
}

struct Slot {
    seen: Seen,
    readback: Option<RawBuffer>,
}

impl Ring {
    pub(super) fn new(program: &Program, slots: usize) -> Self {
        let (inputs, outputs) = (Inputs::new(program), Outputs::new(program));
        let slots = (0..slots).map(|_| Slot { seen: inputs.unseen(), readback: None }).collect();
        Ring { inputs, outputs, slots }
    }

    /// Makes the readback buffer of a slot that lacks one.
    pub(super) fn make_readback(&mut self, context: &Arc<Context>, slot: usize) -> Result<(), GpuError> {
        let request =
            Request { what: "the readback buffer", bytes: self.outputs.bytes, home: Home::Readback };
        if let Some(state) = self.slots.get_mut(slot).filter(|state| state.readback.is_none()) {
            state.readback = Some(RawBuffer::new(context, &request)?);
        }
        Ok(())
    }

    pub(super) fn readback(&self, slot: usize) -> Option<&RawBuffer> {
        self.slots.get(slot)?.readback.as_ref()
    }

    /// Brings an idle slot up to date.
    pub(super) fn fill(&mut self, arenas: &mut Arenas, slot: usize) -> Result<(), GpuError> {
        let Some(state) = self.slots.get_mut(slot) else { return Err(not_checked("a slot out of range")) };
        self.inputs.bring(&mut state.seen, |input| {
            let buffer = arenas.mapped(input.place.arena, slot);
            buffer
                .ok_or_else(|| not_checked("an input without an arena"))?
                .write_mapped(input.place.offset, &input.bytes)
        })
    }
}

//! Outputs on their way to the host: one buffer per step in flight.
//!
//! A buffer is asked for when its step is submitted, so in a browser outputs are there when the step is; it is given back to the
//! device before the next step that takes its slot. Buffers are made when first wanted.

use super::buffer::{READBACK, create};
use super::context::Context;
use super::transfer::Mapping;
use crate::error::GpuError;

/// The readback buffers of all slots.
pub(super) struct Readbacks {
    slots: Vec<Slot>,
    bytes: u64,
}

#[derive(Default)]
struct Slot {
    buffer: Option<wgpu::Buffer>,
    mapping: Option<Mapping>,
}

impl Readbacks {
    /// None yet, for outputs of so many bytes.
    pub(super) fn new(slots: usize, bytes: u64) -> Self {
        Readbacks { slots: (0..slots).map(|_| Slot::default()).collect(), bytes }
    }

    /// The buffer of a slot whose last step is done, in the hands of the device; none where there are no outputs.
    pub(super) fn take(&mut self, context: &Context, slot: usize) -> Result<Option<wgpu::Buffer>, GpuError> {
        let bytes = self.bytes;
        let Some(slot) = self.slots.get_mut(slot).filter(|_| bytes > 0) else { return Ok(None) };
        if let (Some(buffer), Some(_)) = (&slot.buffer, slot.mapping.take()) {
            context.attempt_often(("the readback buffer", 0), || buffer.unmap())?;
        }
        if slot.buffer.is_none() {
            slot.buffer = Some(create(context, "the readback buffer", (bytes, READBACK))?);
        }
        Ok(slot.buffer.clone())
    }

    /// Asks for the buffer of a slot whose step was just submitted, or was not: then it has what it had. Where that fails, reading
    /// tells.
    pub(super) fn start(&mut self, context: &Context, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot)
            && let Some(buffer) = &slot.buffer
        {
            let asked = || Mapping::start(context, buffer, buffer.size());
            slot.mapping = context.attempt_often(("the readback buffer", 0), asked).ok();
        }
    }

    /// Where the outputs of a slot are on their way.
    pub(super) fn mapping(&self, slot: usize) -> Option<&Mapping> {
        self.slots.get(slot)?.mapping.as_ref()
    }

    /// Copies bytes of a slot whose step is done.
    pub(super) fn copy(
        &self,
        context: &Context,
        slot: usize,
        (offset, bytes): (u64, &mut [u8]),
    ) -> Result<(), GpuError> {
        match self.slots.get(slot).map(|slot| (&slot.buffer, &slot.mapping)) {
            Some((Some(buffer), Some(mapping))) => mapping.copy(context, buffer, (offset, bytes)),
            _ => Err(GpuError::Usage {
                what: "reading outputs".into(),
                detail:
                    "they are not on their way to the host: asking for them, or a step after them, failed"
                        .into(),
            }),
        }
    }
}

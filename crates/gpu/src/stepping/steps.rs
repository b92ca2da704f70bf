//! The numbers of steps: which were submitted, which slot each takes, whose outputs can still be read.
//!
//! Invariant: step t uses slot t modulo the number of slots.

use crate::device::Ticket;
use crate::error::GpuError;

/// The steps of an executor.
pub(crate) struct Steps {
    submitted: u64,
    /// By slot: whether its last step copied its outputs.
    copied: Vec<bool>,
}

impl Steps {
    /// None yet.
    pub(crate) fn new(slots: usize) -> Self {
        Steps { submitted: 0, copied: vec![false; slots.max(1)] }
    }

    pub(crate) fn slots(&self) -> usize {
        self.copied.len()
    }

    /// The slot of a step.
    pub(crate) fn slot_of(&self, step: u64) -> usize {
        usize::try_from(step % self.slots() as u64).unwrap_or(0)
    }

    /// The next step, its slot, and the step that must be done before it may have that slot.
    pub(crate) fn next(&self) -> (u64, usize, Option<u64>) {
        let next = self.submitted + 1;
        let before = next.checked_sub(self.slots() as u64).filter(|step| *step > 0);
        (next, self.slot_of(next), before)
    }

    /// Notes that the next step was submitted.
    pub(crate) fn submit(&mut self, copies_outputs: bool) -> Ticket {
        self.submitted += 1;
        let slot = self.slot_of(self.submitted);
        self.copied[slot] = copies_outputs;
        Ticket(self.submitted)
    }

    /// The number of a step that was submitted.
    pub(crate) fn known(&self, ticket: Ticket) -> Result<u64, GpuError> {
        if ticket.0 == 0 || ticket.0 > self.submitted {
            let detail = format!("{} steps were submitted", self.submitted);
            return Err(GpuError::Usage { what: format!("step {}", ticket.0), detail });
        }
        Ok(ticket.0)
    }

    /// The slot that has the outputs of a step.
    pub(crate) fn readable(&self, step: u64) -> Result<usize, GpuError> {
        let (slots, slot) = (self.slots() as u64, self.slot_of(step));
        let fault = |detail| Err(GpuError::Usage { what: format!("step {step}"), detail });
        if step + slots <= self.submitted {
            return fault(format!("its outputs were overwritten by step {}", step + slots));
        }
        if !self.copied[slot] {
            return fault("was submitted without copying its outputs".into());
        }
        Ok(slot)
    }
}

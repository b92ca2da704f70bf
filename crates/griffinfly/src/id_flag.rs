//! The flag of ids made on the device: where a program keeps it, and what a raised one means.
//!
//! The flag is no state of the user's: it is in no checkpoint, and loading one clears it. While it is raised the program
//! updates nothing (see [`griffinfly_compile::program::IdGuard`]), so whoever finds it raised clears it and reports.

use crate::device::Device;
use crate::error::Error;
use griffinfly_compile::program::{ArenaId, IdGuard, Program};
use griffinfly_gpu::Buffer;
use std::sync::Arc;

/// The flag of a program, in memory.
pub(crate) struct IdFlag {
    guard: IdGuard,
    buffer: Arc<dyn Buffer>,
    offset: u64,
}

impl IdFlag {
    /// The flag of a program whose state lies in these buffers, if it has one.
    pub(crate) fn find(program: &Program, bound: &[(ArenaId, Arc<dyn Buffer>)]) -> Option<IdFlag> {
        let guard = program.id_guard.clone()?;
        let place = program.externals.get(guard.state)?.place;
        let (_, buffer) = bound.iter().find(|(arena, _)| *arena == place.arena)?;
        Some(IdFlag { guard, buffer: buffer.clone(), offset: place.offset })
    }

    /// The external that gives the flag after a step.
    pub(crate) fn output(&self) -> usize {
        self.guard.output
    }

    /// Fails where the flag is raised.
    pub(crate) fn check(&self, flag: [u8; 4]) -> Result<(), Error> {
        match self.guard.failed(f32::from_ne_bytes(flag)) {
            None => Ok(()),
            Some(check) => {
                let (operation, limit, ignore) = (check.operation.clone(), check.limit, check.ignore);
                Err(Error::DeviceId { operation, limit, ignore })
            }
        }
    }

    /// Fails where the flag is raised after everything submitted.
    pub(crate) fn check_now(&self, device: &Device) -> Result<(), Error> {
        let mut flag = [0; 4];
        device.backend().read(&self.buffer, self.offset, &mut flag)?;
        self.check(flag)
    }

    /// Lowers the flag after everything submitted.
    pub(crate) fn clear(&self, device: &Device) -> Result<(), Error> {
        Ok(device.backend().write(&self.buffer, self.offset, &0.0_f32.to_ne_bytes())?)
    }
}

//! What every device offers.

use crate::error::GpuError;
use crate::stepping::bound::check_range;
use griffinfly_compile::program::{ArenaId, Program, SectionKind};
use griffinfly_ir::target::Target;
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A result to be awaited.
pub type Later<T> = Pin<Box<dyn Future<Output = Result<T, GpuError>> + Send>>;

/// A result that is there already.
pub(crate) fn at_once<T: Send + 'static>(result: Result<T, GpuError>) -> Later<T> {
    Box::pin(std::future::ready(result))
}

/// What a device says about itself.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceInfo {
    /// `vulkan`, `webgpu` or `host`.
    pub backend: &'static str,
    /// The device's own name.
    pub name: String,
    /// Driver name and version, as the driver says them.
    pub driver: String,
    /// Whether it is a hardware GPU.
    pub is_hardware_gpu: bool,
    /// Device memory in bytes, as far as known.
    pub memory_bytes: u64,
}

/// Persistent device memory, zeroed at creation. Shared by whoever holds the `Arc`.
pub trait Buffer: Send + Sync {
    /// Size in bytes.
    fn bytes(&self) -> u64;
    /// For a backend to recognise its own buffers.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A device: a hardware or software GPU, or the CPU.
pub trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// What programs for it must be compiled for.
    fn target(&self) -> &Target;

    /// Makes a zeroed persistent buffer.
    ///
    /// # Errors
    /// Size over the device's limits, out of memory, device lost.
    fn buffer(&self, bytes: u64) -> Result<Arc<dyn Buffer>, GpuError>;

    /// Writes bytes into a buffer, after all submitted work.
    ///
    /// # Errors
    /// Range outside the buffer, a buffer of another device, device lost.
    fn write(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), GpuError>;

    /// Reads bytes from a buffer, after all submitted work.
    ///
    /// # Errors
    /// Range outside the buffer, a buffer of another device, device lost; a device that nobody can wait for, as in a browser.
    fn read(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &mut [u8]) -> Result<(), GpuError>;

    /// Reads so many bytes from a buffer as it is after all work submitted before this call. Never blocks in a browser; other devices
    /// may, inside the call.
    ///
    /// # Errors
    /// As [`Device::read`], but never for want of waiting.
    fn read_async(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: usize) -> Later<Vec<u8>> {
        let mut read = vec![0; bytes];
        let result = self.read(buffer, offset, &mut read);
        at_once(result.map(|()| read))
    }

    /// Copies bytes from a place in a buffer to one in another buffer, after all submitted work. Offsets and the number of bytes are
    /// multiples of four.
    ///
    /// # Errors
    /// Ranges outside the buffers or not of words, the same buffer twice, a buffer of another device, device lost.
    fn copy(
        &self,
        from: (&Arc<dyn Buffer>, u64),
        to: (&Arc<dyn Buffer>, u64),
        bytes: usize,
    ) -> Result<(), GpuError> {
        check_copy(from, to, bytes)?;
        let mut between = vec![0; bytes];
        self.read(from.0, from.1, &mut between)?;
        self.write(to.0, to.1, &between)
    }

    /// Makes an executor of a program. `bound` supplies the buffers of the persistent arenas the caller owns (parameters,
    /// mirrors, state): each at least as large as its arena. The device makes the others.
    ///
    /// # Errors
    /// A program for another target, a missing or too small bound buffer, out of memory, a kernel the driver refuses.
    fn instantiate(
        &self,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Box<dyn Executor>, GpuError>;
}

/// That a copy is one of words between two buffers, inside of both.
pub(crate) fn check_copy(
    (from, start): (&Arc<dyn Buffer>, u64),
    (to, end): (&Arc<dyn Buffer>, u64),
    bytes: usize,
) -> Result<(), GpuError> {
    let fault = |detail: String| Err(GpuError::Usage { what: "a copy".into(), detail });
    if Arc::ptr_eq(from, to) {
        return fault("it is from a buffer to itself".into());
    }
    if [start, end, bytes as u64].iter().any(|number| !number.is_multiple_of(4)) {
        return fault(format!("{bytes} bytes at {start} to {end} are no words"));
    }
    check_range("the source of a copy", start, bytes as u64, from.bytes())?;
    check_range("the target of a copy", end, bytes as u64, to.bytes())
}

/// Which sections of the step to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    /// Run the prepare section (needed after parameters changed from outside).
    pub prepare: bool,
    /// Run the forward and backward section.
    pub forward_backward: bool,
    /// Run the update section.
    pub update: bool,
    /// Copy outputs to where the host reads them; without it they stay on the device, and reading them is an error.
    pub outputs: bool,
}

impl Sections {
    /// Everything.
    pub const ALL: Sections = Sections { prepare: true, forward_backward: true, update: true, outputs: true };
    /// A step with prepared weights.
    pub const STEP: Sections = Sections { prepare: false, ..Sections::ALL };

    /// Whether this kind of section is included.
    #[must_use]
    pub fn includes(self, kind: SectionKind) -> bool {
        match kind {
            SectionKind::Prepare => self.prepare,
            SectionKind::ForwardBackward => self.forward_backward,
            SectionKind::Update => self.update,
        }
    }
}

/// A submitted step, numbered from 1 in order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Where the time of one step went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StepTiming {
    /// Device time of each dispatch in program order of the sections run, in nanoseconds, where the device can tell.
    pub dispatch_ns: Vec<(u32, f64)>,
    /// Device time of the whole step in nanoseconds.
    pub total_ns: f64,
}

/// What a driver says about a kernel it compiled, by the driver's own names. Kernels of the host have nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelCost {
    /// Names and values.
    pub statistics: Vec<(String, f64)>,
}

impl KernelCost {
    /// Registers of one invocation, as NVIDIA's driver, RADV and ANV call them.
    #[must_use]
    pub fn registers(&self) -> Option<f64> {
        self.first(&["Register Count", "VGPRs", "Max live registers"])
    }

    /// What did not fit into registers: bytes of the stack of one invocation with NVIDIA's driver (whose "Local Memory Size" is
    /// the same large number for every kernel), else registers.
    #[must_use]
    pub fn spills(&self) -> Option<f64> {
        self.first(&["Spilled VGPRs", "Spill count", "Stack Size"])
    }

    fn first(&self, names: &[&str]) -> Option<f64> {
        let find = |name: &&str| self.statistics.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        names.iter().find_map(find).map(|(_, value)| *value)
    }
}

/// A program ready to run on a device. Steps run in order of submission.
pub trait Executor: Send {
    /// The program.
    fn program(&self) -> &Arc<Program>;

    /// How many steps can be in flight.
    fn slots(&self) -> usize;

    /// Writes an input or step scalar (by index into `program.externals`) for the next submission. Waits only if all slots
    /// are in flight. Inputs not written keep the value of the last step that wrote them.
    ///
    /// # Errors
    /// Not an input, wrong byte count, an id out of range (nothing is written), device lost.
    fn write(&mut self, external: usize, bytes: &[u8]) -> Result<(), GpuError>;

    /// Submits a step and returns at once.
    ///
    /// # Errors
    /// Device lost, submission failure (state and parameters as they were).
    fn submit(&mut self, sections: Sections) -> Result<Ticket, GpuError>;

    /// Whether a step is done.
    ///
    /// # Errors
    /// Device lost.
    fn is_done(&mut self, ticket: Ticket) -> Result<bool, GpuError>;

    /// Waits for a step: polls briefly, then blocks up to `timeout`.
    ///
    /// # Errors
    /// Timeout, device lost; a device that nobody can wait for, as in a browser.
    fn wait(&mut self, ticket: Ticket, timeout: Duration) -> Result<(), GpuError>;

    /// Waits for a step without blocking the thread of a browser; other devices may block, inside the call. Its outputs can be read
    /// at once from then on.
    ///
    /// # Errors
    /// Device lost, or an error of the calls before it that a browser tells late.
    fn wait_async(&mut self, ticket: Ticket) -> Later<()> {
        at_once(self.wait(ticket, Duration::MAX))
    }

    /// Reads an output (by index into `program.externals`) of a finished or running step; waits for it.
    ///
    /// # Errors
    /// Not an output, wrong byte count, a ticket whose outputs were overwritten by later steps or not copied,
    /// device lost.
    fn read(&mut self, ticket: Ticket, external: usize, bytes: &mut [u8]) -> Result<(), GpuError>;

    /// Runs the step once with a timestamp around every dispatch, apart from the ring.
    ///
    /// # Errors
    /// As `submit` and `wait`; unsupported where the device has no timestamps.
    fn profile(&mut self, sections: Sections) -> Result<StepTiming, GpuError>;

    /// Runs the step `times` times (at least once), one behind the other in one submission, apart from the ring, and gives the
    /// nanoseconds of one of them on the device. Levels run as in any step; outputs stay on the device.
    ///
    /// # Errors
    /// As `profile`.
    fn repeat(&mut self, sections: Sections, times: u32) -> Result<f64, GpuError>;

    /// What the driver says about the kernels of the program, in their order; nothing where it does not tell. They are
    /// compiled once more for this.
    ///
    /// # Errors
    /// A kernel the driver refuses, out of memory, device lost.
    fn kernel_costs(&self) -> Result<Vec<KernelCost>, GpuError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(statistics: &[(&str, f64)]) -> [Option<f64>; 2] {
        let statistics = statistics.iter().map(|(name, value)| ((*name).into(), *value)).collect();
        let cost = KernelCost { statistics };
        [cost.registers(), cost.spills()]
    }

    #[test]
    fn registers_and_spills_are_found_by_the_names_of_drivers() {
        let nvidia =
            [("Register Count", 168.0), ("Stack Size", 16.0), ("Local Memory Size", 68_719_476_736.0)];
        assert_eq!(cost(&nvidia), [Some(168.0), Some(16.0)]);
        let radv = [("SGPRs", 40.0), ("VGPRs", 96.0), ("Spilled SGPRs", 3.0), ("Spilled VGPRs", 2.0)];
        assert_eq!(cost(&radv), [Some(96.0), Some(2.0)]);
        assert_eq!(cost(&[("Spill Count", 1.0), ("Max live registers", 64.0)]), [Some(64.0), Some(1.0)]);
        assert_eq!(cost(&[("Instructions", 5.0)]), [None, None]);
    }
}

//! The host as a device.

use super::check::{self, usage};
use super::executor::HostExecutor;
use super::memory::Words;
use super::workers::Workers;
use super::{FaultPlan, HostOptions};
use crate::device::{Buffer, Device, DeviceInfo, Executor};
use crate::error::GpuError;
use griffinfly_compile::program::{ArenaId, Program};
use griffinfly_ir::target::Target;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all users of a device share.
pub(super) struct Shared {
    /// The threads. Whoever touches memory holds this lock: steps, reads and writes exclude each other.
    workers: Mutex<Workers>,
    /// Bytes allocated.
    allocated: Mutex<u64>,
    budget: Option<u64>,
    faults: FaultPlan,
    /// What memory made for programs begins with.
    pub(super) fill: u32,
}

/// The CPU as a device.
pub(super) struct HostDevice {
    shared: Arc<Shared>,
    info: DeviceInfo,
    target: Target,
}

/// Memory counted against the device's budget.
pub(super) struct HostBuffer {
    words: Arc<Words>,
    bytes: u64,
    shared: Arc<Shared>,
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let mut allocated = self.shared.allocated.lock().unwrap_or_else(PoisonError::into_inner);
        *allocated = allocated.saturating_sub(self.bytes);
    }
}

impl Buffer for HostBuffer {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl HostBuffer {
    /// The memory.
    pub(super) fn words(&self) -> &Arc<Words> {
        &self.words
    }

    /// Whether it belongs to this device.
    pub(super) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }
}

impl Shared {
    /// The threads, exclusively.
    pub(super) fn lock(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Zeroed memory within the budget.
    pub(super) fn allocate(self: &Arc<Self>, what: &str, bytes: u64) -> Result<HostBuffer, GpuError> {
        let refused = || GpuError::OutOfMemory { what: what.to_owned(), bytes };
        if self.faults.allocation_fails() {
            return Err(refused());
        }
        let mut allocated = self.allocated.lock().unwrap_or_else(PoisonError::into_inner);
        let total = allocated.checked_add(bytes).ok_or_else(refused)?;
        if self.budget.is_some_and(|budget| total > budget) {
            return Err(refused());
        }
        let words = Words::zeroed(bytes).ok_or_else(refused)?;
        *allocated = total;
        Ok(HostBuffer { words, bytes, shared: self.clone() })
    }

    /// Fails where a test asked for it, before a step does anything.
    pub(super) fn start_step(&self) -> Result<(), GpuError> {
        if self.faults.submit_fails() {
            return Err(GpuError::Driver { call: "submit", result: "injected failure".into() });
        }
        Ok(())
    }
}

impl HostDevice {
    /// A device of these options.
    pub(super) fn new(options: &HostOptions) -> HostDevice {
        let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = Workers::new(options.threads.unwrap_or_else(available).max(1));
        let info = DeviceInfo {
            backend: "host",
            name: format!("host CPU, {} threads", workers.threads()),
            driver: concat!("griffinfly host ", env!("CARGO_PKG_VERSION")).into(),
            is_hardware_gpu: false,
            memory_bytes: options.memory_bytes.unwrap_or_else(system_memory),
        };
        let shared = Shared {
            workers: Mutex::new(workers),
            allocated: Mutex::default(),
            budget: options.memory_bytes,
            faults: options.faults.clone(),
            fill: options.fill,
        };
        HostDevice { shared: Arc::new(shared), info, target: Target::host() }
    }

    fn own<'a>(&self, buffer: &'a Arc<dyn Buffer>) -> Result<&'a HostBuffer, GpuError> {
        let own = buffer.as_any().downcast_ref::<HostBuffer>().filter(|b| b.is_of(&self.shared));
        own.ok_or_else(|| usage("buffer", "belongs to another device"))
    }
}

/// Bytes of memory of the machine, or 0 where the system does not say.
fn system_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = total.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// Checks that `offset..offset + len` is inside a buffer.
fn range(buffer: &HostBuffer, offset: u64, len: usize) -> Result<usize, GpuError> {
    let end = offset.checked_add(len as u64);
    match (end, usize::try_from(offset)) {
        (Some(end), Ok(offset)) if end <= buffer.bytes => Ok(offset),
        _ => Err(usage(
            "buffer",
            format!("bytes {offset}.. of length {len} are outside its {} bytes", buffer.bytes),
        )),
    }
}

impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn buffer(&self, bytes: u64) -> Result<Arc<dyn Buffer>, GpuError> {
        let limit = self.target.max_buffer_bytes;
        if bytes > limit {
            let device = self.info.name.clone();
            return Err(GpuError::Limit { what: "buffer size in bytes".into(), value: bytes, limit, device });
        }
        Ok(Arc::new(self.shared.allocate("buffer", bytes)?))
    }

    fn write(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        let buffer = self.own(buffer)?;
        let at = range(buffer, offset, bytes.len())?;
        let _exclusive = self.shared.lock();
        buffer.words.write_bytes(at, bytes);
        Ok(())
    }

    fn read(&self, buffer: &Arc<dyn Buffer>, offset: u64, bytes: &mut [u8]) -> Result<(), GpuError> {
        let buffer = self.own(buffer)?;
        let at = range(buffer, offset, bytes.len())?;
        let _exclusive = self.shared.lock();
        buffer.words.read_bytes(at, bytes);
        Ok(())
    }

    fn instantiate(
        &self,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Box<dyn Executor>, GpuError> {
        check::check(&program)?;
        Ok(Box::new(HostExecutor::new(&self.shared, program, bound)?))
    }
}

//! What is decided before a graph is compiled for a session or trainer: how much device memory it may take, and how precise it is.

use crate::device::Device;
use crate::error::Error;
use griffinfly_compile::kernel::families::tuned::Choices;
use griffinfly_compile::memory::Mode;
use griffinfly_compile::program::{ArenaId, Program};
use griffinfly_compile::{Options, compile};
use griffinfly_gpu::{Buffer, Executor, GpuError};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::target::Contract;
use std::sync::Arc;

/// How the memory of a program is planned.
///
/// Speed first is the default: bytes are reused only where no dispatch has to wait for it. Where the device has no room for
/// that plan, the memory-first one is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What is spent for what.
    pub mode: Mode,
    /// Most bytes of the program: parameters, gradients, moments and state, inputs, outputs, temporaries. Speed first falls
    /// back step by step to memory first to meet it. What exists once per step in flight (inputs, step scalars) counts once.
    pub budget: Option<u64>,
}

impl Memory {
    /// As fast as these bytes allow.
    #[must_use]
    pub fn within(bytes: u64) -> Memory {
        Memory { budget: Some(bytes), ..Memory::default() }
    }

    /// As few bytes as possible.
    #[must_use]
    pub fn first() -> Memory {
        Memory { mode: Mode::Memory, budget: None }
    }
}

/// Wishes for a session or trainer; the default ones are those of [`crate::Session::new`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How much device memory it may take.
    pub memory: Memory,
    /// Whether products may be rounded: [`Contract::Fast`] allows it where the device has matrix units for it. Operands of large
    /// products of the forward pass become f16 then: from 65,520 on they are infinite, and below 6e-5 they lose digits. Storage, sums
    /// and results are f32 in any case.
    pub contract: Contract,
}

impl From<Memory> for Settings {
    fn from(memory: Memory) -> Settings {
        Settings { memory, ..Settings::default() }
    }
}

impl From<Contract> for Settings {
    fn from(contract: Contract) -> Settings {
        Settings { contract, ..Settings::default() }
    }
}

/// How a program is compiled: the settings, and the choices of kernels.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) choices: Arc<Choices>,
}

impl Plan {
    /// With the choices that were measured on the device.
    pub(crate) fn new(settings: Settings, device: &Device) -> Plan {
        Plan { settings, choices: device.choices().clone() }
    }

    pub(crate) fn options(&self) -> Options {
        let Settings { memory: Memory { mode: memory, budget }, contract } = self.settings;
        let choices = Choices::clone(&self.choices);
        Options { memory, budget, contract, choices, ..Options::default() }
    }

    /// Compiles a graph for a device.
    pub(crate) fn compile(&self, graph: &Graph, device: &Device) -> Result<Arc<Program>, Error> {
        Ok(Arc::new(compile(graph, device.target(), &self.options())?))
    }

    /// Makes an executor of a program compiled so, or, where the device has no room for it, of a smaller one.
    pub(crate) fn instantiate(
        &self,
        graph: &Graph,
        program: Arc<Program>,
        device: &Device,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Box<dyn Executor>, Error> {
        let taken = program.memory.physical_bytes;
        let memory = self.settings.memory;
        match device.backend().instantiate(program, bound) {
            Err(GpuError::OutOfMemory { what, bytes }) if memory.mode == Mode::Speed => {
                let memory = Memory { mode: Mode::Memory, ..memory };
                let settings = Settings { memory, ..self.settings };
                let smaller = Plan { settings, ..self.clone() }.compile(graph, device)?;
                if smaller.memory.physical_bytes >= taken {
                    return Err(GpuError::OutOfMemory { what, bytes }.into());
                }
                tracing::info!(taken, smaller = smaller.memory.physical_bytes, "no room: memory goes first");
                Ok(device.backend().instantiate(smaller, bound)?)
            }
            other => Ok(other?),
        }
    }
}

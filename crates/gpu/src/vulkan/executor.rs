//! An instantiated program: steps in flight on the device's queue.
//!
//! Step t signals the value t of a timeline semaphore. A failed submission uses up no ticket and leaves inputs, slots and
//! memory as they were, but for a place for outputs that may have been made for it.

use super::arenas::Arenas;
use super::bind::Sets;
use super::context::{Clock, Submission};
use super::device::Shared;
use super::pipeline::{self, Pipeline};
use super::record::{Recorded, Recorder};
use super::ring::Ring;
use crate::device::{Buffer, Executor, KernelCost, Sections, StepTiming, Ticket};
use crate::error::GpuError;
use crate::stepping::check;
use crate::stepping::steps::Steps;
use ash::vk::{CommandBuffer, PipelineCreateFlags};
use griffinfly_compile::program::{ArenaId, Program};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a hardware GPU is polled before a wait blocks. A blocking wait costs tens of microseconds to wake up, which shows
/// in steps of up to some milliseconds.
const POLL: Duration = Duration::from_millis(20);
/// How long polling keeps the CPU; then other threads may run in between.
const SPIN: Duration = Duration::from_micros(150);

/// A program on a Vulkan device.
pub(super) struct VulkanExecutor {
    // Field order is drop order; `drop` first waits for the steps in flight.
    recorded: Recorded,
    /// The command buffers of the last step.
    commands: Vec<CommandBuffer>,
    pub(super) sets: Sets,
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) ring: Ring,
    pub(super) arenas: Arenas,
    clock: Clock,
    steps: Steps,
    /// The highest step known to be done.
    done: u64,
    pub(super) program: Arc<Program>,
    pub(super) shared: Arc<Shared>,
}

impl VulkanExecutor {
    pub(super) fn new(
        shared: &Arc<Shared>,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Self, GpuError> {
        let context = &shared.context;
        context.alive("instantiate")?;
        check::run(&program, &context.target)?;
        let arenas = Arenas::new(shared, &program, bound)?;
        let (ring, steps) = (Ring::new(&program, shared.slots), Steps::new(shared.slots));
        let pipelines =
            pipeline::create_all(context, &shared.cache, &program.kernels, PipelineCreateFlags::empty())?;
        shared.cache.save();
        let sets = Sets::new(context, &program, (&pipelines, &arenas), shared.slots)?;
        let recorder = Recorder { program: &program, pipelines: &pipelines, sets: &sets, arenas: &arenas };
        let recorded = Recorded::new(context, &recorder, shared.slots)?;
        let clock = context.clock()?;
        let shared = shared.clone();
        Ok(VulkanExecutor {
            recorded,
            commands: Vec::new(),
            sets,
            pipelines,
            ring,
            arenas,
            clock,
            steps,
            done: 0,
            program,
            shared,
        })
    }

    pub(super) fn recorder(&self) -> Recorder<'_> {
        Recorder {
            program: &self.program,
            pipelines: &self.pipelines,
            sets: &self.sets,
            arenas: &self.arenas,
        }
    }

    /// Waits for the slot of the next step and brings its inputs up to date.
    pub(super) fn next_slot(&mut self) -> Result<usize, GpuError> {
        let (_, slot, before) = self.steps.next();
        if let Some(before) = before {
            self.finish(before, None)?;
        }
        self.ring.fill(&mut self.arenas, slot)?;
        Ok(slot)
    }

    /// Makes what copies the outputs of a slot, if that was not wanted before.
    fn prepare_readback(&mut self, slot: usize) -> Result<(), GpuError> {
        if self.recorded.has_copies(slot) || self.ring.outputs.all.is_empty() {
            return Ok(());
        }
        self.ring.make_readback(&self.shared.context, slot)?;
        let recorder = Recorder {
            program: &self.program,
            pipelines: &self.pipelines,
            sets: &self.sets,
            arenas: &self.arenas,
        };
        self.recorded.finish(&recorder, &self.ring, slot)
    }

    /// Whether a step is done, without waiting.
    fn poll(&mut self, step: u64) -> Result<bool, GpuError> {
        if step > self.done {
            self.done = self.clock.now()?;
        }
        Ok(step <= self.done)
    }

    /// Polls, then blocks until a step is done.
    fn finish(&mut self, step: u64, timeout: Option<Duration>) -> Result<(), GpuError> {
        let start = Instant::now();
        let most = if self.shared.context.target.is_hardware { POLL } else { Duration::ZERO };
        let most = timeout.map_or(most, |timeout| most.min(timeout));
        loop {
            if self.poll(step)? {
                return Ok(());
            }
            match start.elapsed() {
                elapsed if elapsed >= most => break,
                elapsed if elapsed >= SPIN => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        let nanoseconds = left.map_or(u64::MAX, |left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        if self.clock.wait(step, nanoseconds)? {
            self.done = self.done.max(step);
            return Ok(());
        }
        let milliseconds = timeout.map_or(u128::MAX, |timeout| timeout.as_millis());
        Err(GpuError::Timeout { ticket: step, milliseconds: u64::try_from(milliseconds).unwrap_or(u64::MAX) })
    }
}

impl Executor for VulkanExecutor {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn slots(&self) -> usize {
        self.steps.slots()
    }

    fn write(&mut self, external: usize, bytes: &[u8]) -> Result<(), GpuError> {
        self.shared.context.alive("write")?;
        self.ring.inputs.write(external, bytes)
    }

    fn submit(&mut self, sections: Sections) -> Result<Ticket, GpuError> {
        self.shared.context.alive("submit")?;
        let slot = self.next_slot()?;
        if sections.outputs {
            self.prepare_readback(slot)?;
        }
        self.recorded.commands(slot, sections, &mut self.commands);
        let (value, ..) = self.steps.next();
        let submission = Submission {
            commands: &self.commands,
            semaphore: self.clock.semaphore(),
            value: self.clock.at(value),
        };
        self.shared.context.submit(&submission)?;
        Ok(self.steps.submit(sections.outputs))
    }

    fn is_done(&mut self, ticket: Ticket) -> Result<bool, GpuError> {
        let step = self.steps.known(ticket)?;
        self.shared.context.alive("is_done")?;
        self.poll(step)
    }

    fn wait(&mut self, ticket: Ticket, timeout: Duration) -> Result<(), GpuError> {
        let step = self.steps.known(ticket)?;
        self.shared.context.alive("wait")?;
        self.finish(step, Some(timeout))
    }

    fn read(&mut self, ticket: Ticket, external: usize, bytes: &mut [u8]) -> Result<(), GpuError> {
        let step = self.steps.known(ticket)?;
        let at = self.ring.outputs.find(external, bytes.len())?.at;
        let slot = self.steps.readable(step)?;
        self.shared.context.alive("read")?;
        self.finish(step, None)?;
        match self.ring.readback(slot) {
            Some(readback) => readback.read_mapped(at, bytes),
            None => Ok(()),
        }
    }

    fn profile(&mut self, sections: Sections) -> Result<StepTiming, GpuError> {
        super::profile::run(self, sections)
    }

    fn repeat(&mut self, sections: Sections, times: u32) -> Result<f64, GpuError> {
        super::profile::repeat(self, sections, times.max(1))
    }

    fn kernel_costs(&self) -> Result<Vec<KernelCost>, GpuError> {
        super::statistics::of_kernels(&self.shared, &self.program.kernels)
    }
}

impl Drop for VulkanExecutor {
    fn drop(&mut self) {
        self.clock.drain(self.steps.next().0 - 1);
    }
}

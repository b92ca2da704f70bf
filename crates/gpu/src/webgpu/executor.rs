//! A program on a WebGPU device.

use super::bind::{self, Arenas, not_checked};
use super::context::Context;
use super::device::Shared;
use super::encode::Encoder;
use super::pipeline::{self, Pipeline};
use super::readback::Readbacks;
use super::transfer::Mapping;
use crate::device::{Buffer, Executor, KernelCost, Later, Sections, StepTiming, Ticket, at_once};
use crate::error::GpuError;
use crate::stepping::check;
use crate::stepping::externals::{Inputs, Outputs, Seen};
use crate::stepping::steps::Steps;
use griffinfly_compile::program::{ArenaId, Program};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wgpu::SubmissionIndex;

pub(super) struct WebGpuExecutor {
    pub(super) program: Arc<Program>,
    pub(super) context: Arc<Context>,
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) groups: Vec<wgpu::BindGroup>,
    pub(super) arenas: Arenas,
    inputs: Inputs,
    seen: Seen,
    outputs: Outputs,
    readbacks: Readbacks,
    steps: Steps,
    /// Whether steps are submitted in parts.
    eager: bool,
    /// By slot: its last submission.
    submissions: Vec<Option<SubmissionIndex>>,
    /// The highest step known to be done.
    done: Arc<AtomicU64>,
}

impl WebGpuExecutor {
    pub(super) fn new(
        shared: &Shared,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<Self, GpuError> {
        let context = &shared.context;
        context.alive("instantiate")?;
        check::run(&program, &context.target)?;
        let arenas = Arenas::new(context, &program, bound, shared.fill)?;
        let pipelines = pipeline::create_all(context, &program.kernels)?;
        let groups = bind::groups(context, &program, (&pipelines, &arenas))?;
        let (inputs, outputs) = (Inputs::new(&program), Outputs::new(&program));
        Ok(WebGpuExecutor {
            seen: inputs.unseen(),
            inputs,
            readbacks: Readbacks::new(shared.slots, outputs.bytes),
            outputs,
            steps: Steps::new(shared.slots),
            eager: shared.parts || context.target.is_hardware,
            submissions: vec![None; shared.slots],
            done: Arc::default(),
            program,
            context: context.clone(),
            pipelines,
            groups,
            arenas,
        })
    }

    pub(super) fn encoder(&self) -> Encoder<'_> {
        let WebGpuExecutor { program, pipelines, groups, arenas, .. } = self;
        Encoder { program, pipelines, groups, arenas }
    }

    /// Hands inputs written since the last step to the device, before the next submission.
    pub(super) fn bring_inputs(&mut self) -> Result<(), GpuError> {
        let (context, arenas) = (&self.context, &self.arenas);
        self.inputs.bring(&mut self.seen, |input| {
            let buffer = arenas.get(input.place.arena);
            let buffer = buffer.ok_or_else(|| not_checked("an input without an arena"))?;
            context.attempt_often(("an input", input.bytes.len() as u64), || {
                context.queue.write_buffer(buffer, input.place.offset, &input.bytes);
            })
        })
    }

    fn finish(&self, step: u64, timeout: Option<Duration>) -> Result<(), GpuError> {
        if step <= self.done.load(Ordering::Acquire) {
            return Ok(());
        }
        // In a browser nothing can be waited for: what is not done is done later, when the tab has the thread again.
        if cfg!(target_arch = "wasm32") {
            return Err(GpuError::WouldBlock { what: "a step" });
        }
        let submission = self.submissions[self.steps.slot_of(step)].clone();
        if self.context.wait(submission, timeout)? {
            self.done.fetch_max(step, Ordering::AcqRel);
            return Ok(());
        }
        let milliseconds = timeout.map_or(u128::MAX, |timeout| timeout.as_millis());
        Err(GpuError::Timeout { ticket: step, milliseconds: u64::try_from(milliseconds).unwrap_or(u64::MAX) })
    }
}

impl Executor for WebGpuExecutor {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn slots(&self) -> usize {
        self.steps.slots()
    }

    fn write(&mut self, external: usize, bytes: &[u8]) -> Result<(), GpuError> {
        self.context.told("write")?;
        self.inputs.write(external, bytes)
    }

    fn submit(&mut self, sections: Sections) -> Result<Ticket, GpuError> {
        self.context.alive("submit")?;
        let (step, slot, before) = self.steps.next();
        if let Some(before) = before {
            self.finish(before, None)?;
        }
        self.bring_inputs()?;
        let readback = if sections.outputs { self.readbacks.take(&self.context, slot)? } else { None };
        let (context, commands) = (&self.context, self.encoder());
        let below = (&context.device, &context.queue);
        let (outputs, eager) = (&self.outputs, self.eager);
        let submitted = context.attempt_often(("a step", 0), || {
            commands.submit(below, (sections, eager), readback.as_ref().map(|buffer| (outputs, buffer)))
        });
        let submission = match submitted.and_then(|submission| submission) {
            Ok(submission) => submission,
            Err(error) => {
                if readback.is_some() {
                    self.readbacks.start(&self.context, slot);
                }
                return Err(error);
            }
        };
        let (done, ring) = (self.done.clone(), context.bell());
        context.queue.on_submitted_work_done(move || {
            done.fetch_max(step, Ordering::AcqRel);
            ring();
        });
        if readback.is_some() {
            self.readbacks.start(&self.context, slot);
        }
        self.submissions[slot] = Some(submission);
        Ok(self.steps.submit(sections.outputs))
    }

    fn is_done(&mut self, ticket: Ticket) -> Result<bool, GpuError> {
        let step = self.steps.known(ticket)?;
        self.context.alive("is_done")?;
        Ok(step <= self.done.load(Ordering::Acquire))
    }

    fn wait(&mut self, ticket: Ticket, timeout: Duration) -> Result<(), GpuError> {
        let step = self.steps.known(ticket)?;
        self.context.alive("wait")?;
        self.finish(step, Some(timeout))
    }

    fn wait_async(&mut self, ticket: Ticket) -> Later<()> {
        let step = match self.steps.known(ticket) {
            Ok(step) => step,
            Err(error) => return at_once(Err(error)),
        };
        // The slot is another step's where the outputs were overwritten: they are not waited for then.
        let mapping = self.steps.readable(step).ok().and_then(|slot| self.readbacks.mapping(slot)).cloned();
        let done = self.done.clone();
        Box::pin(self.context.clone().until("wait", move || {
            step <= done.load(Ordering::Acquire) && mapping.as_ref().is_none_or(Mapping::is_answered)
        }))
    }

    fn read(&mut self, ticket: Ticket, external: usize, bytes: &mut [u8]) -> Result<(), GpuError> {
        let step = self.steps.known(ticket)?;
        let at = self.outputs.find(external, bytes.len())?.at;
        let slot = self.steps.readable(step)?;
        self.context.alive("read")?;
        self.finish(step, None)?;
        self.readbacks.copy(&self.context, slot, (at, bytes))
    }

    fn profile(&mut self, sections: Sections) -> Result<StepTiming, GpuError> {
        super::profile::run(self, sections)
    }

    fn repeat(&mut self, sections: Sections, times: u32) -> Result<f64, GpuError> {
        super::profile::repeat(self, sections, times.max(1))
    }

    /// WebGPU tells nothing.
    fn kernel_costs(&self) -> Result<Vec<KernelCost>, GpuError> {
        self.context.alive("kernel_costs")?;
        Ok(Vec::new())
    }
}

//! Programs instantiated on the host. A step runs to its end inside `submit`.

use super::check::{is_bound, usage};
use super::device::{HostBuffer, Shared};
use super::evaluate::Need;
use super::memory::View;
use super::plan::Plan;
use crate::clock::Instant;
use crate::device::{Buffer, Executor, KernelCost, Sections, StepTiming, Ticket};
use crate::error::GpuError;
use crate::ids::Ids;
use griffinfly_compile::program::{ArenaId, Binding, DispatchId, External, ExternalKind, Place, Program};
use std::sync::Arc;
use std::time::Duration;

/// Steps whose outputs can be read.
const SLOTS: usize = 2;

/// Memory of an arena: the caller's or our own.
enum Memory {
    Bound(Arc<dyn Buffer>),
    Own(HostBuffer),
}

impl Memory {
    fn buffer(&self) -> Option<&HostBuffer> {
        match self {
            Memory::Bound(b) => b.as_any().downcast_ref(),
            Memory::Own(b) => Some(b),
        }
    }
}

/// A program with its memory and plans.
pub(super) struct HostExecutor {
    shared: Arc<Shared>,
    program: Arc<Program>,
    memory: Vec<Memory>,
    plans: Vec<Plan>,
    /// Outputs of the last steps, by slot and external (empty for what is no output).
    outputs: Vec<Vec<Vec<u8>>>,
    /// Whether the last step of each slot copied its outputs.
    copied: [bool; SLOTS],
    submitted: u64,
}

impl HostExecutor {
    /// Binds a checked program to memory.
    ///
    /// # Errors
    /// A missing, foreign, doubled or too small buffer, out of memory, a loop that cannot be planned.
    pub(super) fn new(
        shared: &Arc<Shared>,
        program: Arc<Program>,
        bound: &[(ArenaId, Arc<dyn Buffer>)],
    ) -> Result<HostExecutor, GpuError> {
        check_bound(shared, &program, bound)?;
        let mut memory = Vec::new();
        for (i, arena) in program.arenas.iter().enumerate() {
            memory.push(match bound.iter().find(|(id, _)| id.index() == i) {
                Some((_, buffer)) => Memory::Bound(buffer.clone()),
                None => {
                    let buffer = shared.allocate(&format!("arena {i} ({:?})", arena.role), arena.bytes)?;
                    if shared.fill != 0 {
                        buffer.words().fill(shared.fill);
                    }
                    Memory::Own(buffer)
                }
            });
        }
        let mut plans = Vec::new();
        for (i, d) in program.dispatches.iter().enumerate() {
            let fault = |e: String| usage(format!("dispatch {i} ({})", d.instance), e);
            let l = &program.loops[d.source.index()];
            let types = l.operands.iter().chain(&l.results);
            let views = d.bindings.iter().zip(types).map(|(b, ty)| view(&memory, b, ty.elements()));
            let views: Option<Vec<View>> = views.collect();
            let views = views.ok_or_else(|| fault("a binding is outside its arena".into()))?;
            plans.push(Plan::new(l, &views).map_err(fault)?);
        }
        let need = plans.iter().map(Plan::need).fold(Need::default(), Need::or);
        tracing::debug!(scratch = need.bytes(), dispatches = plans.len(), "host program ready");
        shared.lock().reserve(&need);
        let size = |e: &External| if e.kind == ExternalKind::Output { e.ty.bytes() } else { 0 };
        let slot: Vec<Vec<u8>> = program.externals.iter().map(|e| vec![0; size(e)]).collect();
        let outputs = vec![slot; SLOTS];
        let (shared, copied) = (shared.clone(), [false; SLOTS]);
        let executor = HostExecutor { shared, program, memory, plans, outputs, copied, submitted: 0 };
        executor.write_constants();
        Ok(executor)
    }

    /// Writes constants into the arenas made here; bound arenas hold what their owner put there.
    fn write_constants(&self) {
        let _exclusive = self.shared.lock();
        for c in &self.program.constants {
            if let Memory::Own(buffer) = &self.memory[c.place.arena.index()] {
                for (i, w) in c.words.iter().enumerate() {
                    buffer.words().write_bytes(c.place.offset as usize + 4 * i, &w.to_ne_bytes());
                }
            }
        }
    }

    /// Runs the dispatches of the sections in order.
    fn run(&self, sections: Sections, timing: Option<&mut StepTiming>) {
        let workers = self.shared.lock();
        let chosen = self.program.sections.iter().filter(|s| sections.includes(s.kind));
        let ids = chosen.flat_map(|s| s.levels.iter().flatten());
        let Some(timing) = timing else {
            ids.for_each(|id| self.plans[id.index()].run(&workers));
            return;
        };
        let start = Instant::now();
        for DispatchId(id) in ids {
            let before = Instant::now();
            self.plans[*id as usize].run(&workers);
            timing.dispatch_ns.push((*id, before.elapsed().as_nanos() as f64));
        }
        timing.total_ns = start.elapsed().as_nanos() as f64;
    }

    fn copy_outputs(&mut self, slot: usize) {
        let mut outputs = std::mem::take(&mut self.outputs[slot]);
        let exclusive = self.shared.lock();
        for (e, bytes) in self.program.externals.iter().zip(&mut outputs) {
            if let (false, Some((buffer, at))) = (bytes.is_empty(), self.place(e.place)) {
                buffer.words().read_bytes(at, bytes);
            }
        }
        drop(exclusive);
        self.outputs[slot] = outputs;
    }

    fn external(&self, index: usize) -> Result<&External, GpuError> {
        let n = self.program.externals.len();
        self.program
            .externals
            .get(index)
            .ok_or_else(|| usage(format!("external {index}"), format!("the program has {n}")))
    }

    fn place(&self, place: Place) -> Option<(&HostBuffer, usize)> {
        Some((self.memory.get(place.arena.index())?.buffer()?, usize::try_from(place.offset).ok()?))
    }

    fn check_ticket(&self, ticket: Ticket) -> Result<(), GpuError> {
        if ticket.0 == 0 || ticket.0 > self.submitted {
            let detail = format!("was not submitted; the last step is {}", self.submitted);
            return Err(usage(format!("step {}", ticket.0), detail));
        }
        Ok(())
    }
}

fn view(memory: &[Memory], b: &Binding, elements: usize) -> Option<View> {
    let buffer = memory.get(b.arena.index())?.buffer()?;
    View::new(buffer.words(), usize::try_from(b.offset / 4).ok()?, elements)
}

/// Every arena the caller owns has exactly one buffer of this device, large enough, and no other arena has one.
fn check_bound(
    shared: &Arc<Shared>,
    program: &Program,
    bound: &[(ArenaId, Arc<dyn Buffer>)],
) -> Result<(), GpuError> {
    for (i, (id, buffer)) in bound.iter().enumerate() {
        let what = || format!("buffer for arena {}", id.0);
        let arena = program.arenas.get(id.index()).ok_or_else(|| usage(what(), "there is no such arena"))?;
        if !is_bound(&arena.role) {
            return Err(usage(what(), format!("{:?} belongs to the device", arena.role)));
        }
        if !buffer.as_any().downcast_ref::<HostBuffer>().is_some_and(|b| b.is_of(shared)) {
            return Err(usage(what(), "belongs to another device"));
        }
        if buffer.bytes() < arena.bytes {
            return Err(usage(what(), format!("has {} bytes of {}", buffer.bytes(), arena.bytes)));
        }
        let address = |b: &Arc<dyn Buffer>| Arc::as_ptr(b).cast::<()>();
        if let Some((other, _)) = bound[..i].iter().find(|(o, b)| o == id || address(b) == address(buffer)) {
            return Err(usage(what(), format!("is bound twice (also for arena {})", other.0)));
        }
    }
    for (i, arena) in program.arenas.iter().enumerate().filter(|(_, a)| is_bound(&a.role)) {
        if !bound.iter().any(|(id, _)| id.index() == i) {
            return Err(usage(format!("buffer for arena {i}"), format!("{:?} is not bound", arena.role)));
        }
    }
    Ok(())
}

/// That as many bytes are given as a tensor has.
fn check_bytes(e: &External, given: usize) -> Result<(), GpuError> {
    if given == e.ty.bytes() {
        return Ok(());
    }
    Err(usage(&e.name, format!("{given} bytes for {} of {} bytes", e.ty, e.ty.bytes())))
}

impl Executor for HostExecutor {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn slots(&self) -> usize {
        SLOTS
    }

    fn write(&mut self, external: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let e = self.external(external)?;
        if !matches!(e.kind, ExternalKind::Input { .. } | ExternalKind::StepScalar) {
            return Err(usage(&e.name, "is not an input"));
        }
        check_bytes(e, bytes.len())?;
        if let Some(detail) = Ids::of(&e.kind).and_then(|ids| ids.fault(bytes)) {
            return Err(usage(format!("writing `{}`", e.name), detail));
        }
        let _exclusive = self.shared.lock();
        let written = self.place(e.place).is_some_and(|(b, at)| b.words().write_bytes(at, bytes));
        if written { Ok(()) } else { Err(usage(&e.name, "lies outside its arena")) }
    }

    fn submit(&mut self, sections: Sections) -> Result<Ticket, GpuError> {
        self.shared.start_step()?;
        self.run(sections, None);
        let slot = (self.submitted % SLOTS as u64) as usize;
        self.copied[slot] = sections.outputs;
        if sections.outputs {
            self.copy_outputs(slot);
        }
        self.submitted += 1;
        Ok(Ticket(self.submitted))
    }

    fn is_done(&mut self, ticket: Ticket) -> Result<bool, GpuError> {
        self.check_ticket(ticket).map(|()| true)
    }

    fn wait(&mut self, ticket: Ticket, _timeout: Duration) -> Result<(), GpuError> {
        self.check_ticket(ticket)
    }

    fn read(&mut self, ticket: Ticket, external: usize, bytes: &mut [u8]) -> Result<(), GpuError> {
        self.check_ticket(ticket)?;
        let e = self.external(external)?;
        if e.kind != ExternalKind::Output {
            return Err(usage(&e.name, "is not an output"));
        }
        check_bytes(e, bytes.len())?;
        if self.submitted - ticket.0 >= SLOTS as u64 {
            let detail = format!("its outputs were overwritten by step {}", ticket.0 + SLOTS as u64);
            return Err(usage(format!("step {}", ticket.0), detail));
        }
        let slot = ((ticket.0 - 1) % SLOTS as u64) as usize;
        if !self.copied[slot] {
            return Err(usage(format!("step {}", ticket.0), "was submitted without copying its outputs"));
        }
        bytes.copy_from_slice(&self.outputs[slot][external]);
        Ok(())
    }

    fn profile(&mut self, sections: Sections) -> Result<StepTiming, GpuError> {
        self.shared.start_step()?;
        let mut timing = StepTiming::default();
        self.run(sections, Some(&mut timing));
        Ok(timing)
    }

    fn repeat(&mut self, sections: Sections, times: u32) -> Result<f64, GpuError> {
        let times = times.max(1);
        let start = Instant::now();
        for _ in 0..times {
            self.shared.start_step()?;
            self.run(sections, None);
        }
        Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(times))
    }

    fn kernel_costs(&self) -> Result<Vec<KernelCost>, GpuError> {
        Ok(Vec::new())
    }
}

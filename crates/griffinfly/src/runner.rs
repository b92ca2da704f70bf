//! A program bound to memory: what sessions and trainers have in common.
//!
//! The parameters are those of [`Weights`]; state and mirrors of parameters (moments, gradients) are made here and start
//! as the program says. Inputs are checked completely before any is uploaded.

use crate::device::Device;
use crate::error::Error;
use crate::id_flag::IdFlag;
use crate::inputs::{self, Input, Slot};
use crate::memory::Plan;
use crate::model_state::Following;
use crate::outputs::{Data, Output, Outputs};
use crate::profile::{Profile, Timings};
use crate::tensors::{Entry, Tensors};
use crate::weights::Weights;
use griffinfly_compile::CompileError;
use griffinfly_compile::program::{ArenaId, ExternalKind, Program, Role};
use griffinfly_gpu::clock::Instant;
use griffinfly_gpu::{Buffer, Executor, Sections, Ticket};
use griffinfly_ir::graph::{Graph, LeafKind};
use griffinfly_ir::layout::parameters;
use griffinfly_ir::random::{RANDOM_KEY, random_key};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a step may take before waiting for it is given up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long the clocks of a GPU take to come up, with time to spare.
const WARM_UP: Duration = Duration::from_millis(300);

/// What is run of a step that is timed on the device.
const TIMED: Sections = Sections { outputs: false, ..Sections::STEP };

/// A program with its memory, ready to run.
pub(crate) struct Runner {
    weights: Weights,
    state: Tensors,
    following: Following,
    executor: Box<dyn Executor>,
    program: Arc<Program>,
    slots: Vec<Slot>,
    outputs: Vec<usize>,
    id_flag: Option<IdFlag>,
    /// The version of the weights that the prepare section saw.
    prepared: Option<u64>,
    preparation: Duration,
    /// The last step submitted.
    last: Option<Ticket>,
    pub(crate) timeout: Duration,
}

/// Inputs that fit the program, by external.
pub(crate) struct Checked<'a>(Vec<(usize, Input<'a>)>);

impl Runner {
    /// Compiles a graph for the device of the weights and binds it to them. `scalars` are step scalars that are not
    /// asked of the user; neither is the key of random numbers. Who has some is a trainer.
    pub(crate) fn new(
        graph: &Graph,
        weights: &Weights,
        scalars: &[&str],
        plan: &Plan,
    ) -> Result<Runner, Error> {
        let start = Instant::now();
        check_parameters(graph, weights)?;
        let device = weights.device();
        let program = plan.compile(graph, device)?;
        check_places(&program, weights)?;
        let (state, owned) = state(&program, device)?;
        let mut bound = owned;
        for (i, arena) in program.arenas.iter().enumerate().filter(|(_, a)| a.role == Role::Parameters) {
            if let Some(buffer) = weights.tensors().buffers().get(arena.chunk as usize) {
                bound.push((ArenaId(i as u32), buffer.clone()));
            }
        }
        let executor = plan.instantiate(graph, program, device, &bound)?;
        let program = executor.program().clone();
        let id_flag = IdFlag::find(&program, &bound);
        let hidden = id_flag.as_ref().map(IdFlag::output);
        let mut outputs = externals(&program, |kind| *kind == ExternalKind::Output);
        outputs.retain(|external| Some(*external) != hidden);
        let slots = slots(graph, &program, scalars);
        let weights = weights.clone();
        let preparation = start.elapsed();
        let (prepared, last, timeout) = (None, None, TIMEOUT);
        let mut following = Following::new(graph, &state, !scalars.is_empty());
        following.follow(&weights, &state)?;
        Ok(Runner {
            weights,
            state,
            following,
            executor,
            program,
            slots,
            outputs,
            id_flag,
            prepared,
            preparation,
            last,
            timeout,
        })
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    pub(crate) fn state(&self) -> &Tensors {
        &self.state
    }

    pub(crate) fn preparation(&self) -> Duration {
        self.preparation
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.executor.slots().max(1)
    }

    /// Checks the inputs and that the weights have values; nothing is uploaded yet.
    pub(crate) fn check<'a>(&self, given: &[(&str, Input<'a>)]) -> Result<Checked<'a>, Error> {
        let chosen = inputs::check(&self.program.externals, &self.slots, given)?;
        self.weights.check_set()?;
        Ok(Checked(chosen.into_iter().zip(given.iter().map(|(_, input)| *input)).collect()))
    }

    /// Uploads the inputs of the next step.
    pub(crate) fn feed(&mut self, inputs: &Checked<'_>) -> Result<(), Error> {
        for (external, input) in &inputs.0 {
            self.executor.write(*external, input.bytes())?;
        }
        Ok(())
    }

    /// Sets a step scalar of the next step, if the program has it.
    pub(crate) fn set_scalar(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        let is_it =
            |e: &griffinfly_compile::program::External| e.kind == ExternalKind::StepScalar && e.name == name;
        match self.program.externals.iter().position(is_it) {
            Some(external) => Ok(self.executor.write(external, value)?),
            None => Ok(()),
        }
    }

    /// Sets what the random numbers of the next step are drawn from, if the program draws any.
    pub(crate) fn set_random(&mut self, seed: u64, step: u64) -> Result<(), Error> {
        self.set_scalar(RANDOM_KEY, bytemuck::cast_slice(&random_key(seed, step)))
    }

    /// Submits a step over the inputs uploaded; prepares first where the weights changed from outside.
    pub(crate) fn submit(&mut self) -> Result<Ticket, Error> {
        self.submit_with(true)
    }

    /// The same for a step whose outputs stay on the device.
    pub(crate) fn submit_apart(&mut self) -> Result<Ticket, Error> {
        self.submit_with(false)
    }

    /// Submits another step over the inputs of the one before it, whose outputs stay on the device.
    pub(crate) fn submit_again(&mut self) -> Result<Ticket, Error> {
        self.has_run()?;
        self.weights.check_set()?;
        self.submit_with(false)
    }

    /// Times the dispatches of steps like the last one, and such steps as a whole, once the device is warm.
    pub(crate) fn profile(&mut self, steps: usize) -> Result<Profile, Error> {
        self.warm_up()?;
        let mut timings = Timings { steps: Vec::new(), whole_ns: Vec::new(), costs: Vec::new() };
        for _ in 0..steps.max(1) {
            timings.steps.push(self.executor.profile(TIMED)?);
            timings.whole_ns.push(self.executor.repeat(TIMED, 1)?);
        }
        timings.costs = self.executor.kernel_costs()?;
        Ok(Profile::new(&self.program, timings, self.weights.device().info()))
    }

    /// Times submissions of so many steps like the last one, once the device is warm: nanoseconds of a step in each.
    pub(crate) fn device_times(&mut self, times: u32, samples: usize) -> Result<Vec<f64>, Error> {
        self.warm_up()?;
        Ok((0..samples).map(|_| self.executor.repeat(TIMED, times)).collect::<Result<_, _>>()?)
    }

    /// Runs steps like the last one until the clocks of a GPU are up: it lowers them while pipelines are made.
    fn warm_up(&mut self) -> Result<(), Error> {
        self.has_run()?;
        let least = if self.weights.device().target().is_hardware { WARM_UP } else { Duration::ZERO };
        let start = Instant::now();
        loop {
            let ticket = self.executor.submit(TIMED)?;
            self.executor.wait(ticket, self.timeout)?;
            if start.elapsed() >= least {
                return Ok(());
            }
        }
    }

    /// Fails before the first step, which brings the inputs.
    fn has_run(&self) -> Result<(), Error> {
        if self.prepared.is_none() {
            let reason = "run a step with inputs first".into();
            return Err(Error::Value { what: "the number of steps so far", value: "0".into(), reason });
        }
        Ok(())
    }

    fn submit_with(&mut self, outputs: bool) -> Result<Ticket, Error> {
        self.following.follow(&self.weights, &self.state)?;
        let version = self.weights.version();
        let prepare = self.prepared != Some(version);
        let ticket = self.executor.submit(Sections { prepare, outputs, ..Sections::STEP })?;
        (self.prepared, self.last) = (Some(version), Some(ticket));
        Ok(ticket)
    }

    /// Waits, without blocking a browser, until a step can be submitted without waiting for another.
    pub(crate) async fn room(&mut self) -> Result<(), Error> {
        match self.last {
            Some(ticket) => self.done(ticket).await,
            None => Ok(()),
        }
    }

    /// Waits for a step without blocking a browser. What it gave can be had at once from then on.
    pub(crate) async fn done(&mut self, ticket: Ticket) -> Result<(), Error> {
        Ok(self.executor.wait_async(ticket).await?)
    }

    /// Notes that this program's own update changed the weights: other programs prepare again, this one need not,
    /// because what it prepares depends on nothing it updates.
    pub(crate) fn updated(&mut self) {
        let before = self.weights.version();
        let after = self.weights.changed();
        if self.prepared == Some(before) {
            self.prepared = Some(after);
        }
        self.following.give(&self.weights, after);
    }

    /// Notes that parameters and state were loaded: this program's state is that of the model from now on.
    pub(crate) fn loaded(&mut self) {
        self.weights.all_set();
        self.following.give(&self.weights, self.weights.version());
    }

    /// Takes over the state of the model from another program over the same weights.
    pub(crate) fn adopt(&mut self, other: &Runner) -> Result<(), Error> {
        self.following.adopt(&self.state, (&other.following, &other.state))
    }

    /// Waits for a step; fails where an id made on the device was out of range, in it or before it.
    fn wait(&mut self, ticket: Ticket) -> Result<(), Error> {
        self.executor.wait(ticket, self.timeout)?;
        let Some(flag) = &self.id_flag else { return Ok(()) };
        let mut bytes = [0; 4];
        self.executor.read(ticket, flag.output(), &mut bytes)?;
        flag.check(bytes)
    }

    /// Waits for a step whose outputs stay on the device.
    pub(crate) fn wait_only(&mut self, ticket: Ticket) -> Result<(), Error> {
        self.executor.wait(ticket, self.timeout)?;
        self.check_ids()
    }

    /// Fails where some step submitted so far met an id made on the device that is out of range.
    pub(crate) fn check_ids(&self) -> Result<(), Error> {
        self.id_flag.as_ref().map_or(Ok(()), |flag| flag.check_now(self.weights.device()))
    }

    /// Lets updates happen again after such an id, from the next submission on.
    pub(crate) fn forget_ids(&self) -> Result<(), Error> {
        self.id_flag.as_ref().map_or(Ok(()), |flag| flag.clear(self.weights.device()))
    }

    /// All outputs of a step.
    pub(crate) fn outputs(&mut self, ticket: Ticket) -> Result<Outputs, Error> {
        self.wait(ticket)?;
        let mut all = Vec::with_capacity(self.outputs.len());
        for &external in &self.outputs {
            let e = &self.program.externals[external];
            let mut data = Data::zeros(&e.ty);
            self.executor.read(ticket, external, data.bytes_mut())?;
            all.push(Output { name: e.name.clone(), ty: e.ty.clone(), data });
        }
        Ok(Outputs(all))
    }

    /// One `f32` scalar output of a step.
    pub(crate) fn scalar(&mut self, ticket: Ticket, external: usize) -> Result<f32, Error> {
        self.wait(ticket)?;
        let mut bytes = [0; 4];
        self.executor.read(ticket, external, &mut bytes)?;
        Ok(f32::from_ne_bytes(bytes))
    }
}

/// The graph's parameters must be the weights' in name, type, group and order: the layout depends on all of them.
fn check_parameters(graph: &Graph, weights: &Weights) -> Result<(), Error> {
    graph.finish()?;
    let (wanted, there) = (parameters(graph), weights.specs());
    if wanted == there {
        return Ok(());
    }
    let mut faults = Vec::new();
    for p in &wanted {
        match there.iter().find(|q| q.name == p.name) {
            None => faults.push(format!("'{}' {} is not among the weights", p.name, p.ty)),
            Some(q) if q.ty != p.ty => {
                faults.push(format!("'{}' is {}, the weights have {}", p.name, p.ty, q.ty))
            }
            Some(q) if q.group != p.group => {
                faults.push(format!("'{}' is in another adjacency group", p.name))
            }
            Some(_) => {}
        }
    }
    let extra = there.iter().filter(|q| !wanted.iter().any(|p| p.name == q.name));
    faults.extend(extra.map(|q| format!("the weights have '{}' {}, the graph has not", q.name, q.ty)));
    if faults.is_empty() {
        faults.push("they are declared in another order".into());
    }
    Err(Error::Parameters(faults))
}

/// The program must have placed every parameter where the weights have it.
fn check_places(program: &Program, weights: &Weights) -> Result<(), Error> {
    let mut faults = Vec::new();
    for e in program.externals.iter().filter(|e| e.kind == ExternalKind::Parameter) {
        let chunk = program.arenas.get(e.place.arena.index()).map(|a| a.chunk as usize);
        let agrees = weights.tensors().find(&e.name).is_some_and(|entry| {
            Some(entry.arena) == chunk && entry.offset as u64 == e.place.offset && entry.ty == e.ty
        });
        if !agrees {
            faults.push(format!("'{}' lies elsewhere than in the weights", e.name));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(CompileError::Faults { stage: "program", faults }.into()) }
}

type Bound = Vec<(ArenaId, Arc<dyn Buffer>)>;

/// Buffers for everything the session owns, with its initial content. The flag of ids has a place but no name: it is in
/// no checkpoint.
fn state(program: &Program, device: &Device) -> Result<(Tensors, Bound), Error> {
    let mut bound: Bound = Vec::new();
    let owned = |role: &Role| matches!(role, Role::Mirror(_) | Role::State);
    for (i, arena) in program.arenas.iter().enumerate().filter(|(_, a)| owned(&a.role)) {
        bound.push((ArenaId(i as u32), device.backend().buffer(arena.bytes)?));
    }
    let at = |arena: ArenaId| bound.iter().position(|(id, _)| *id == arena);
    for constant in &program.constants {
        if let Some(i) = at(constant.place.arena) {
            let bytes = bytemuck::cast_slice(&constant.words);
            device.backend().write(&bound[i].1, constant.place.offset, bytes)?;
        }
    }
    let mut entries = Vec::new();
    let hidden = program.id_guard.as_ref().map(|guard| guard.state);
    for (i, e) in program.externals.iter().enumerate().filter(|(_, e)| e.kind == ExternalKind::State) {
        if Some(i) == hidden {
            continue;
        }
        let Some(arena) = at(e.place.arena) else {
            let faults = vec![format!("state '{}' lies in an arena of another role", e.name)];
            return Err(CompileError::Faults { stage: "program", faults }.into());
        };
        let offset = usize::try_from(e.place.offset).unwrap_or(usize::MAX);
        entries.push(Entry { name: e.name.clone(), ty: e.ty.clone(), arena, offset });
    }
    let buffers = bound.iter().map(|(_, buffer)| buffer.clone()).collect();
    Ok((Tensors::new(device, entries, buffers), bound))
}

fn externals(program: &Program, wanted: impl Fn(&ExternalKind) -> bool) -> Vec<usize> {
    let all = program.externals.iter().enumerate();
    all.filter(|(_, e)| wanted(&e.kind)).map(|(i, _)| i).collect()
}

/// The inputs a caller may set, and which of them matter to an output or update.
fn slots(graph: &Graph, program: &Program, scalars: &[&str]) -> Vec<Slot> {
    let used = used_leaves(graph);
    let is_input =
        |kind: &ExternalKind| matches!(kind, ExternalKind::Input { .. } | ExternalKind::StepScalar);
    let hidden = |name: &str| name == RANDOM_KEY || scalars.contains(&name);
    externals(program, is_input)
        .into_iter()
        .filter(|i| !hidden(program.externals[*i].name.as_str()))
        .map(|external| Slot { external, used: used.contains(program.externals[external].name.as_str()) })
        .collect()
}

/// Names of the leaves set by the host that some output or update depends on.
fn used_leaves(graph: &Graph) -> BTreeSet<&str> {
    let mut live = vec![false; graph.nodes().len()];
    let roots = graph.outputs().iter().map(|o| o.value).chain(graph.updates().iter().map(|u| u.value));
    roots.for_each(|v| live[v.node().index()] = true);
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        if live[i] {
            node.inputs().iter().for_each(|v| live[v.node().index()] = true);
        }
    }
    let fed = |kind: &LeafKind| matches!(kind, LeafKind::Input | LeafKind::StepScalar);
    let leaves = graph.leaves().filter(|(id, leaf)| live[id.index()] && fed(&leaf.kind));
    leaves.map(|(_, leaf)| leaf.name.as_str()).collect()
}

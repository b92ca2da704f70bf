//! Inference: a program over shared weights.

use crate::checkpoint::{self, Loading, Source};
use crate::definition::InferenceGraph;
use crate::device::Device;
use crate::error::Error;
use crate::inputs::Input;
use crate::memory::{Plan, Settings};
use crate::outputs::Outputs;
use crate::profile::Profile;
use crate::runner::Runner;
use crate::weights::Weights;
use griffinfly_compile::program::Program;
use griffinfly_gpu::Ticket;
use std::path::Path;
use std::time::Duration;

/// A graph ready to run on a device. Fixed at construction: kernels, memory of the device, order and synchronisation. Memory of the
/// host for outputs is taken when they are first wanted.
pub struct Session {
    graph: InferenceGraph,
    runner: Runner,
    plan: Plan,
    seed: u64,
    /// Runs so far.
    runs: u64,
}

impl Session {
    /// A session with weights of its own, which have no values yet: load a file before running.
    ///
    /// # Errors
    /// The graph cannot be compiled for the device; out of memory; device lost.
    pub fn new(device: &Device, graph: InferenceGraph) -> Result<Session, Error> {
        let weights = Weights::empty(device, graph.graph())?;
        Session::with_weights(graph, &weights)
    }

    /// A session over weights that others use too, on their device. State that the graph reads and does not update, such as
    /// the running averages of batch norms, is that of the trainer over these weights that made the last step, or of a file
    /// loaded since, from run to run.
    ///
    /// # Errors
    /// Parameters that are not those of the weights, and as [`Session::new`].
    pub fn with_weights(graph: InferenceGraph, weights: &Weights) -> Result<Session, Error> {
        Session::with_settings(graph, weights, Settings::default())
    }

    /// The same, with a say in how much device memory it takes and how precise it is; [`Memory`](crate::Memory) and
    /// [`Contract`](crate::Contract) are settings of their own.
    ///
    /// # Errors
    /// A budget below the smallest plan, and as [`Session::with_weights`].
    pub fn with_settings(
        graph: InferenceGraph,
        weights: &Weights,
        settings: impl Into<Settings>,
    ) -> Result<Session, Error> {
        Session::planned(graph, weights, Plan::new(settings.into(), weights.device()))
    }

    /// The same, with choices of kernels besides.
    pub(crate) fn planned(graph: InferenceGraph, weights: &Weights, plan: Plan) -> Result<Session, Error> {
        let runner = Runner::new(graph.graph(), weights, &[], &plan)?;
        Ok(Session { graph, runner, plan, seed: 0, runs: 0 })
    }

    /// A session for other input dimensions over the same weights, with the same seed and settings. State
    /// that the graph updates starts anew, what it only reads (running averages) goes along.
    ///
    /// # Errors
    /// Unknown inputs, operations that do not fit the new shapes, and as [`Session::new`].
    pub fn rebind(&self, shapes: &[(&str, &[usize])]) -> Result<Session, Error> {
        let graph = self.graph.rebind(shapes)?;
        let mut other = Session::planned(graph, self.runner.weights(), self.plan.clone())?;
        other.runner.adopt(&self.runner)?;
        Ok(Session { seed: self.seed, ..other })
    }

    /// Runs one step. Every input the outputs depend on is given by name.
    ///
    /// # Errors
    /// Unknown, repeated or missing inputs, wrong dtypes and lengths, ids out of range; weights without values; device
    /// lost; timeout; no memory of the host for the outputs. Nothing is uploaded unless all inputs fit. Ids that the device computes are checked while it runs:
    /// where one is out of range there are no outputs, and the state is as before.
    pub fn run(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Outputs, Error> {
        self.feed(inputs)?;
        let ticket = self.runner.submit()?;
        self.runs += 1;
        self.outputs(ticket)
    }

    /// The same without blocking a browser; other devices may block the thread. Where the future is dropped half-way, the step may
    /// still run.
    ///
    /// # Errors
    /// As [`Session::run`], but for the timeout.
    pub async fn run_async(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Outputs, Error> {
        self.runner.room().await?;
        self.feed(inputs)?;
        let ticket = self.runner.submit()?;
        self.runs += 1;
        self.runner.done(ticket).await?;
        self.outputs(ticket)
    }

    /// The outputs of a step.
    fn outputs(&mut self, ticket: Ticket) -> Result<Outputs, Error> {
        let outputs = self.runner.outputs(ticket);
        if matches!(outputs, Err(Error::DeviceId { .. })) {
            self.runner.forget_ids()?;
        }
        outputs
    }

    /// Sets what the next step is made of.
    fn feed(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<(), Error> {
        let inputs = self.runner.check(inputs)?;
        self.runner.feed(&inputs)?;
        self.runner.set_random(self.seed, self.runs + 1)
    }

    /// Sets the seed of the random numbers the graph draws, and begins with the first run again. The seed is 0 at first; each
    /// run draws new numbers, the same ones for the same seed.
    pub fn set_seed(&mut self, seed: u64) {
        (self.seed, self.runs) = (seed, 0);
    }

    /// Queues a step with these inputs and returns at once. Its outputs stay on the device, so this is for steps that matter by their
    /// effect on state or by the time they take. Wait for it with [`Session::wait`].
    ///
    /// # Errors
    /// As [`Session::run`], but for what only waiting shows.
    pub fn submit(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Ticket, Error> {
        self.feed(inputs)?;
        let ticket = self.runner.submit_apart()?;
        self.runs += 1;
        Ok(ticket)
    }

    /// Queues another step over the inputs (and random numbers) of the last one and returns at once. Its outputs stay on the device, so this is
    /// for steps that matter by their effect on state or by the time they take. Wait for it with [`Session::wait`].
    ///
    /// # Errors
    /// No step was run yet; weights without values; a failed submission; device lost.
    pub fn submit_again(&mut self) -> Result<Ticket, Error> {
        self.runner.submit_again()
    }

    /// Waits until a queued step is done.
    ///
    /// # Errors
    /// An id computed on the device that is out of range, in this step or another one queued; device lost; timeout.
    pub fn wait(&mut self, step: Ticket) -> Result<(), Error> {
        let waited = self.runner.wait_only(step);
        if matches!(waited, Err(Error::DeviceId { .. })) {
            self.runner.forget_ids()?;
        }
        waited
    }

    /// Times every dispatch over the inputs of the last step, apart from the steps that are queued: the medians of `steps`
    /// steps (at least one is taken). A hardware GPU is first warmed up by steps of 0.3 s, since idle ones lower their clocks.
    ///
    /// # Errors
    /// No step was run yet; a device without timestamps; device lost.
    pub fn profile(&mut self, steps: usize) -> Result<Profile, Error> {
        self.runner.profile(steps)
    }

    /// The nanoseconds of one step over the inputs of the last one, taken `samples` times: each time `times` steps run one behind
    /// the other on the device (warmed up as for [`Session::profile`]) without the host in between. Their levels run as in any
    /// step; outputs stay on the device.
    ///
    /// # Errors
    /// As [`Session::profile`].
    pub fn device_times(&mut self, times: u32, samples: usize) -> Result<Vec<f64>, Error> {
        self.runner.device_times(times, samples)
    }

    /// Loads parameters, and the state the graph has, from a checkpoint. State of an optimizer is passed over.
    /// Everything is checked before anything changes. Other programs over the weights go on from the file's running averages too.
    ///
    /// # Errors
    /// An unreadable or invalid file; all names, dtypes and shapes that do not fit; device lost.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.load_from(Source::Path(path.as_ref()))
    }

    /// The same with the bytes of a single file; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Session::load`].
    pub fn load_bytes(&mut self, bytes: &[u8], name: &str) -> Result<(), Error> {
        self.load_from(Source::Bytes(bytes, name))
    }

    fn load_from(&mut self, source: Source<'_>) -> Result<(), Error> {
        let sets = [self.runner.weights().tensors(), self.runner.state()];
        let loaded = Loading { source, sets: &sets, other_state: true }.read()?;
        checkpoint::apply(&sets, &loaded)?;
        self.runner.loaded();
        Ok(())
    }

    /// The weights, to be shared.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        self.runner.weights()
    }

    /// The graph it runs.
    #[must_use]
    pub fn graph(&self) -> &InferenceGraph {
        &self.graph
    }

    /// The compiled program.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.runner.program()
    }

    /// How long construction took: compilation, memory, pipelines.
    #[must_use]
    pub fn preparation(&self) -> Duration {
        self.runner.preparation()
    }

    /// How long to wait for a step before giving up (2 minutes at first).
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.runner.timeout = timeout;
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outputs: Vec<&str> = self.graph.graph().outputs().iter().map(|o| o.name.as_str()).collect();
        write!(f, "Session({} on {:?})", outputs.join(", "), self.weights().device())
    }
}

//! Training: forward, backward and optimizer update as one program, run step by step.
//!
//! Several steps can be in flight: [`Trainer::submit`] returns as soon as a step is queued and hands out losses late.
//! Learning rate and bias corrections are step scalars, so a change needs no new program.
//!
//! Invariants: a step counts once it was submitted, unless an id that the device computed turns out to be out of range: such a
//! step and those in flight after it change nothing and do not count; a failed submission leaves parameters, state and step
//! as they were; a checkpoint holds exactly what the submitted steps made, so that going on from it gives the same bits as never having
//! stopped.

mod resume;
#[cfg(test)]
mod tests;

use crate::checkpoint::Source;
use crate::definition::{LOSS, TrainingGraph};
use crate::device::Device;
use crate::error::Error;
use crate::inputs::{Feed, Input};
use crate::memory::{Plan, Settings};
use crate::outputs::Outputs;
use crate::profile::Profile;
use crate::runner::{Checked, Runner};
use crate::weights::Weights;
use griffinfly_compile::program::{ExternalKind, Program};
use griffinfly_gpu::Ticket;
use griffinfly_ir::optimizer::{CORRECTION1, CORRECTION2, LEARNING_RATE, Optimizer, step_scalars};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// Step scalars of optimizers, which the trainer sets.
const SCALARS: [&str; 3] = [LEARNING_RATE, CORRECTION1, CORRECTION2];

/// Seed of the weights, and of the random numbers of steps, where none is given.
const SEED: u64 = 0;

/// A model in training on a device.
pub struct Trainer {
    runner: Runner,
    optimizer: Optimizer,
    learning_rate: f64,
    step: u64,
    /// What random numbers of the steps come from, with the number of the step.
    seed: u64,
    /// The external that holds the loss.
    loss: usize,
    /// Steps whose loss was not read yet, oldest first.
    pending: VecDeque<Ticket>,
    /// Losses that were read but not handed out yet: older than all of `pending`.
    losses: VecDeque<f32>,
    unreached: Vec<String>,
}

impl Trainer {
    /// A trainer with freshly initialised weights (seed 0).
    ///
    /// # Errors
    /// No gradient, hyperparameters out of range, a graph that cannot be compiled for the device, out of memory.
    pub fn new(device: &Device, graph: TrainingGraph, optimizer: Optimizer) -> Result<Trainer, Error> {
        let weights = Weights::init(device, graph.graph(), SEED)?;
        Trainer::with_weights(graph, optimizer, &weights)
    }

    /// A trainer of weights that others may use too, on their device. State of the model, such as running averages, goes on
    /// from where another trainer over these weights, or a file loaded since, left it; moments start anew.
    ///
    /// # Errors
    /// Parameters that are not those of the weights, and as [`Trainer::new`].
    pub fn with_weights(
        graph: TrainingGraph,
        optimizer: Optimizer,
        weights: &Weights,
    ) -> Result<Trainer, Error> {
        Trainer::with_settings(graph, optimizer, weights, Settings::default())
    }

    /// The same, with a say in how much device memory it takes and how precise it is; [`Memory`](crate::Memory) and
    /// [`Contract`](crate::Contract) are settings of their own.
    ///
    /// # Errors
    /// A budget below the smallest plan, and as [`Trainer::with_weights`].
    pub fn with_settings(
        graph: TrainingGraph,
        optimizer: Optimizer,
        weights: &Weights,
        settings: impl Into<Settings>,
    ) -> Result<Trainer, Error> {
        let learning_rate = checked_rate(optimizer.learning_rate())?;
        let (training, attached) = graph.differentiated(&optimizer)?;
        if !attached.unreached.is_empty() {
            tracing::warn!(parameters = ?attached.unreached, "the loss does not depend on some parameters");
        }
        let plan = Plan::new(settings.into(), weights.device());
        let runner = Runner::new(&training, weights, &SCALARS, &plan)?;
        let externals = &runner.program().externals;
        let is_loss =
            |e: &griffinfly_compile::program::External| e.kind == ExternalKind::Output && e.name == LOSS;
        let loss = externals.iter().position(is_loss).ok_or_else(|| Error::NoSuchTensor {
            what: "output",
            name: LOSS.into(),
            known: Vec::new(),
        })?;
        let (pending, losses) = (VecDeque::new(), VecDeque::new());
        let unreached = attached.unreached;
        let (step, seed) = (0, SEED);
        Ok(Trainer { runner, optimizer, learning_rate, step, seed, loss, pending, losses, unreached })
    }

    /// Runs one step and waits for its loss: that of the parameters before the update.
    ///
    /// # Errors
    /// Inputs that do not fit, as for [`crate::Session::run`]; an id computed on the device that is out of range, in this
    /// step or in one in flight ([`Error::DeviceId`]: from that step on nothing was updated, [`Trainer::steps`] tells which
    /// was the last good one, and training can go on); a failed submission; device lost; timeout.
    pub fn step(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<f32, Error> {
        let inputs = self.runner.check(inputs)?;
        self.settle(0)?;
        let ticket = self.enqueue(&inputs)?;
        let loss = self.runner.scalar(ticket, self.loss).map_err(|e| self.undone(e))?;
        self.pending.clear();
        Ok(loss)
    }

    /// Runs one step and waits for all its outputs, the loss among them.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn step_outputs(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Outputs, Error> {
        let inputs = self.runner.check(inputs)?;
        self.settle(0)?;
        let ticket = self.enqueue(&inputs)?;
        let outputs = self.runner.outputs(ticket).map_err(|e| self.undone(e))?;
        self.pending.clear();
        Ok(outputs)
    }

    /// Runs one step and waits for its loss without blocking a browser; other devices may block the thread. Where the future is
    /// dropped half-way, [`Trainer::steps`] tells whether the step was submitted, and so counts.
    ///
    /// # Errors
    /// As [`Trainer::step`], but for the timeout.
    pub async fn step_async(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<f32, Error> {
        let ticket = self.done_async(inputs).await?;
        let loss = self.runner.scalar(ticket, self.loss).map_err(|e| self.undone(e))?;
        self.pending.clear();
        Ok(loss)
    }

    /// Runs one step and waits for all its outputs without blocking a browser; see [`Trainer::step_async`].
    ///
    /// # Errors
    /// As [`Trainer::step`], but for the timeout.
    pub async fn step_outputs_async(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Outputs, Error> {
        let ticket = self.done_async(inputs).await?;
        let outputs = self.runner.outputs(ticket).map_err(|e| self.undone(e))?;
        self.pending.clear();
        Ok(outputs)
    }

    /// Queues one step. Where as many steps are in flight as the device takes, waits for the oldest and gives its loss.
    ///
    /// # Errors
    /// As [`Trainer::step`]. No loss is lost by an error unless the device is.
    pub fn submit(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Option<f32>, Error> {
        let inputs = self.runner.check(inputs)?;
        self.settle(self.runner.in_flight() - 1)?;
        self.enqueue(&inputs)?;
        Ok(self.losses.pop_front())
    }

    /// The same without blocking a browser; other devices may block the thread.
    ///
    /// # Errors
    /// As [`Trainer::submit`], but for the timeout.
    pub async fn submit_async(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Option<f32>, Error> {
        let inputs = self.runner.check(inputs)?;
        self.settle_async(self.runner.in_flight() - 1).await?;
        self.enqueue(&inputs)?;
        Ok(self.losses.pop_front())
    }

    /// As [`Trainer::finish`] without blocking a browser.
    ///
    /// # Errors
    /// Device lost.
    pub async fn finish_async(&mut self) -> Result<Vec<f32>, Error> {
        self.settle_async(0).await?;
        Ok(self.losses.drain(..).collect())
    }

    /// Waits for all steps in flight and gives the losses not handed out yet, oldest first.
    ///
    /// # Errors
    /// Device lost, timeout.
    pub fn finish(&mut self) -> Result<Vec<f32>, Error> {
        self.settle(0)?;
        Ok(self.losses.drain(..).collect())
    }

    /// Trains on all batches with several steps in flight. `report` gets the number of each step and its loss, in
    /// order. Gives all losses.
    ///
    /// # Errors
    /// As [`Trainer::submit`]. Steps that were submitted before the error count.
    pub fn fit<B: Feed>(
        &mut self,
        batches: impl IntoIterator<Item = B>,
        report: &mut dyn FnMut(u64, f32),
    ) -> Result<Vec<f32>, Error> {
        self.finish()?;
        let mut number = self.step;
        let mut losses = Vec::new();
        let mut add = |loss: f32| {
            number += 1;
            report(number, loss);
            losses.push(loss);
        };
        for batch in batches {
            if let Some(loss) = self.submit(&batch.inputs())? {
                add(loss);
            }
        }
        self.finish()?.into_iter().for_each(&mut add);
        Ok(losses)
    }

    /// Whether [`Trainer::save`] could write at this path as things are: better known before hours of training.
    ///
    /// # Errors
    /// An unwritable directory, something at the path that is no file.
    pub fn check_path(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(griffinfly_import::safetensors::probe(path.as_ref())?)
    }

    /// Writes parameters, state, step, seed, learning rate and optimizer to a safetensors file, as a whole or not at all.
    ///
    /// # Errors
    /// An unwritable path, a full disk, device lost; an id computed by a step in flight that is out of range (the next step
    /// or [`Trainer::finish`] reports it again and sets the number of steps right). What was at the path is still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write_checkpoint(path.as_ref())
    }

    /// Goes on from a checkpoint of the same model and optimizer. Everything is checked before anything changes. To
    /// start anew from a file's parameters, load it into the weights instead.
    ///
    /// # Errors
    /// An unreadable or invalid file; everything that does not fit; device lost.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.read_checkpoint(Source::Path(path.as_ref()))
    }

    /// The bytes of the file that [`Trainer::save`] would write, without blocking a browser.
    ///
    /// # Errors
    /// Device lost; an id computed by a step in flight that is out of range, as for [`Trainer::step`].
    pub async fn to_bytes_async(&mut self) -> Result<Vec<u8>, Error> {
        self.checkpoint_async().await
    }

    /// As [`Trainer::load`] with the bytes of a single file; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Trainer::load`].
    pub fn load_bytes(&mut self, bytes: &[u8], name: &str) -> Result<(), Error> {
        self.read_checkpoint(Source::Bytes(bytes, name))
    }

    /// Sets the learning rate of the steps submitted from now on.
    ///
    /// # Errors
    /// Not a finite number, or negative.
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<(), Error> {
        self.learning_rate = checked_rate(learning_rate)?;
        Ok(())
    }

    /// The learning rate of the next step.
    #[must_use]
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// Sets the seed of the random numbers (dropout, noise) of the steps submitted from now on; it is 0 at first. A step's
    /// numbers depend on the seed and the number of the step alone, so training that goes on from a checkpoint draws what it
    /// would have drawn.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// The seed of the next step.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many steps were submitted, those before a checkpoint included.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The optimizer.
    #[must_use]
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// Parameters the loss does not depend on: they are not trained.
    #[must_use]
    pub fn unreached_parameters(&self) -> &[String] {
        &self.unreached
    }

    /// The weights, to be shared with sessions.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        self.runner.weights()
    }

    /// Times every dispatch of a training step over the inputs of the last one: the medians of `steps` steps (at least one is
    /// taken). They train as any step does, but count as none, and their losses are not kept.
    ///
    /// # Errors
    /// No step was made yet; a device without timestamps; device lost.
    pub fn profile(&mut self, steps: usize) -> Result<Profile, Error> {
        self.settle(0)?;
        let profile = self.runner.profile(steps);
        self.runner.updated();
        profile
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

    /// Uploads and submits; the step counts when the submission succeeded.
    fn enqueue(&mut self, inputs: &Checked<'_>) -> Result<Ticket, Error> {
        self.runner.feed(inputs)?;
        for (name, value) in step_scalars(&self.optimizer, self.step + 1, self.learning_rate) {
            self.runner.set_scalar(name, &value.to_ne_bytes())?;
        }
        self.runner.set_random(self.seed, self.step + 1)?;
        let ticket = self.runner.submit()?;
        self.runner.updated();
        self.step += 1;
        self.pending.push_back(ticket);
        Ok(ticket)
    }

    /// Waits until at most this many steps are in flight, and keeps the losses of the others.
    fn settle(&mut self, in_flight: usize) -> Result<(), Error> {
        while self.pending.len() > in_flight {
            let Some(ticket) = self.pending.front().copied() else { break };
            let loss = self.runner.scalar(ticket, self.loss).map_err(|e| self.undone(e))?;
            self.pending.pop_front();
            self.losses.push_back(loss);
        }
        Ok(())
    }

    /// Submits a step and waits until it is done, without blocking a browser.
    async fn done_async(&mut self, inputs: &[(&str, Input<'_>)]) -> Result<Ticket, Error> {
        let inputs = self.runner.check(inputs)?;
        self.settle_async(0).await?;
        let ticket = self.enqueue(&inputs)?;
        self.runner.done(ticket).await?;
        Ok(ticket)
    }

    /// As [`Trainer::settle`], without blocking a browser.
    async fn settle_async(&mut self, in_flight: usize) -> Result<(), Error> {
        while self.pending.len() > in_flight {
            let Some(ticket) = self.pending.front().copied() else { break };
            self.runner.done(ticket).await?;
            self.settle(self.pending.len() - 1)?;
        }
        // Steps that nobody asks for any more, since a checkpoint replaced what they made, still have their place on the device.
        if self.pending.is_empty() { self.runner.room().await } else { Ok(()) }
    }

    /// After an error of the oldest step in flight: where the device refused its ids, it and those after it changed nothing
    /// and do not count.
    fn undone(&mut self, error: Error) -> Error {
        if !matches!(error, Error::DeviceId { .. }) {
            return error;
        }
        self.step = self.step.saturating_sub(self.pending.len() as u64);
        self.pending.clear();
        self.runner.forget_ids().err().unwrap_or(error)
    }
}

fn checked_rate(learning_rate: f64) -> Result<f64, Error> {
    if learning_rate.is_finite() && learning_rate >= 0.0 {
        return Ok(learning_rate);
    }
    let (value, reason) = (learning_rate.to_string(), "it must be finite and not negative".into());
    Err(Error::Value { what: "the learning rate", value, reason })
}

impl std::fmt::Debug for Trainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trainer(step {} on {:?})", self.step, self.weights().device())
    }
}

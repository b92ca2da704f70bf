//! The training half of the demo.

use crate::Failure;
use griffinfly::data::Labelled;
use griffinfly::models::DigitsModel;
use griffinfly::{Device, Feed, Progress, Trainer, Weights};
use std::path::Path;
use std::time::{Duration, Instant};

/// What to train.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) steps: u64,
}

/// What the training gave.
pub(super) struct Trained {
    /// The loss of every step.
    pub(super) losses: Vec<f32>,
    /// Construction and first step, less a median step.
    pub(super) preparation: Duration,
    /// The median time of a step.
    pub(super) step: Duration,
    pub(super) physical_bytes: u64,
    pub(super) logical_bytes: u64,
    pub(super) dispatches: usize,
    pub(super) pipelines: usize,
}

pub(super) fn run(
    device: &Device,
    model: &DigitsModel,
    images: &Labelled,
    plan: &Plan,
    checkpoint: &Path,
) -> Result<Trained, Failure> {
    let start = Instant::now();
    let graph = model.training()?;
    let weights = Weights::init(device, graph.graph(), plan.seed)?;
    let mut trainer = Trainer::with_weights(graph, DigitsModel::optimizer(), &weights)?;
    trainer.check_path(checkpoint)?;
    let mut clock = Clock { construction: start.elapsed(), steps: Vec::new() };
    let losses = steps(&mut trainer, images, plan, &mut clock)?;
    trainer.save(checkpoint)?;
    let program = trainer.program();
    let (preparation, step) = clock.summary();
    Ok(Trained {
        losses,
        preparation,
        step,
        physical_bytes: program.memory.physical_bytes,
        logical_bytes: program.memory.logical_bytes,
        dispatches: program.dispatches.len(),
        pipelines: program.kernels.len(),
    })
}

fn steps(
    trainer: &mut Trainer,
    images: &Labelled,
    plan: &Plan,
    clock: &mut Clock,
) -> Result<Vec<f32>, Failure> {
    let progress = Progress::new(plan.steps);
    let batches = images.batches(super::BATCH, plan.seed)?;
    let mut losses = Vec::new();
    let mut add = |loss: f32| {
        progress.step(loss);
        losses.push(loss);
    };
    let mut last = Instant::now();
    for (i, batch) in (0..plan.steps).zip(batches) {
        trainer.set_learning_rate(DigitsModel::learning_rate(i, plan.steps))?;
        // The first step alone is waited for, because software drivers compile when they first run something.
        match i {
            0 => add(trainer.step(&batch.inputs())?),
            _ => trainer.submit(&batch.inputs())?.into_iter().for_each(&mut add),
        }
        clock.steps.push(last.elapsed());
        last = Instant::now();
    }
    trainer.finish()?.into_iter().for_each(&mut add);
    progress.finish();
    Ok(losses)
}

/// Times of construction and of every step.
struct Clock {
    construction: Duration,
    steps: Vec<Duration>,
}

impl Clock {
    /// Preparation and median step.
    fn summary(&self) -> (Duration, Duration) {
        // The first steps only fill the pipeline.
        let mut steady: Vec<Duration> = self.steps.iter().skip(4).copied().collect();
        if steady.is_empty() {
            steady.clone_from(&self.steps);
        }
        steady.sort_unstable();
        let median = steady.get(steady.len() / 2).copied().unwrap_or_default();
        let first = self.steps.first().copied().unwrap_or_default();
        ((self.construction + first).saturating_sub(median), median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preparation_is_construction_and_first_step_less_a_median_step() {
        let ms = Duration::from_millis;
        let steps = [ms(50), ms(1), ms(1), ms(1), ms(4), ms(2), ms(3)].to_vec();
        let clock = Clock { construction: ms(100), steps };
        assert_eq!(clock.summary(), (ms(147), ms(3)));
        let one = Clock { construction: ms(100), steps: vec![ms(50)] };
        assert_eq!(one.summary(), (ms(100), ms(50)));
    }
}

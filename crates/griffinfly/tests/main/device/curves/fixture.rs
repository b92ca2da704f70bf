//! What PyTorch made of the trainings, and how far another implementation may be from it.
//!
//! `bench/pytorch/curves.py` repeats a training in `f64`, and several times in `f32` with the samples of each batch in another
//! order: the same mathematics, rounded differently. How far the `f32` runs are from the `f64` run at a step is how much
//! rounding has grown until there. We may be as far away as that, times [`FACTOR`], because it is a sample of few runs and our
//! sums and functions round in other places.

use super::tasks::{HeldOut, Task};
use griffinfly::import::safetensors::{Dtype, TensorSource, write_atomic};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// How many times the spread of PyTorch's own runs.
const FACTOR: f64 = 4.0;
/// Before and after a step, the steps whose spread counts for it too: a few runs can agree at one step by chance.
const WINDOW: usize = 5;
/// Relative differences of this size are a few roundings of the loss itself.
const ROUNDING: f64 = 1e-6;
/// Until this step rounding has not grown, and the curves agree closely whatever the spread.
const EARLY: usize = 20;
/// How closely, relative to the loss.
const CLOSELY: f64 = 1e-4;

/// A training by PyTorch.
#[derive(Deserialize)]
pub(super) struct Curve<T> {
    /// In `f64`.
    exact: T,
    /// In `f32`, each with another order of the samples of a batch.
    rounded: Vec<T>,
}

#[derive(Deserialize)]
pub(super) struct Fixture {
    losses: Curve<Vec<f64>>,
    /// By the number of steps.
    held_out: BTreeMap<usize, Curve<HeldOut>>,
}

impl<T> Curve<T> {
    /// The largest distance of a rounded run from the exact one, of what `f` takes from them.
    fn spread(&self, f: impl Fn(&T) -> f64) -> f64 {
        self.rounded.iter().map(|run| (f(run) - f(&self.exact)).abs()).fold(0.0, f64::max)
    }
}

impl Fixture {
    pub(super) fn of(name: &str) -> Fixture {
        let file = format!("tests/fixtures/curves.{name}.json");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// How far a loss may be from the exact one at a step, relative to it.
    pub(super) fn band(&self, step: usize) -> f64 {
        let curve = &self.losses;
        let near = step.saturating_sub(WINDOW)..(step + WINDOW + 1).min(curve.exact.len());
        let spread = near.map(|i| curve.spread(|run| run[i]) / curve.exact[i]).fold(0.0, f64::max);
        let band = FACTOR * spread + ROUNDING;
        if step < EARLY { band.min(CLOSELY) } else { band }
    }

    /// The exact losses, all of them moved by this part of themselves.
    pub(super) fn moved(&self, part: f64) -> Vec<f32> {
        self.losses.exact.iter().map(|loss| (loss * (1.0 + part)) as f32).collect()
    }

    /// That the losses stay in the band, or the first step at which they do not.
    pub(super) fn follows(&self, losses: &[f32]) -> Result<(), String> {
        for (step, (&found, exact)) in losses.iter().zip(&self.losses.exact).enumerate() {
            let (difference, band) = ((f64::from(found) / exact - 1.0).abs(), self.band(step));
            if difference.is_nan() || difference > band {
                return Err(format!(
                    "step {step}: {found} for {exact}, off by {difference:.1e} of {band:.1e}"
                ));
            }
        }
        Ok(())
    }

    /// That the held-out data is understood as well, after this many steps. `questions` is how many there are.
    pub(super) fn agrees(&self, steps: usize, found: HeldOut, questions: usize) -> Result<(), String> {
        let curve = &self.held_out[&steps];
        let loss = FACTOR * curve.spread(|run| run.loss) + ROUNDING * curve.exact.loss;
        let accuracy = FACTOR * curve.spread(|run| run.accuracy) + 1.5 / questions as f64;
        let near = |a: f64, b: f64, band: f64| (a - b).abs() <= band;
        if near(found.loss, curve.exact.loss, loss) && near(found.accuracy, curve.exact.accuracy, accuracy) {
            return Ok(());
        }
        Err(format!(
            "after {steps} steps {found:?} for {:?}, bands {loss:.1e} and {accuracy:.1e}",
            curve.exact
        ))
    }
}

/// Writes what a training begins with and is given: weights, the batches in order, the held-out data.
pub(super) fn write(task: &Task, folder: &Path) {
    let floats = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let weights = task.start(&griffinfly::Device::host());
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = weights
        .names()
        .map(|n| (n.into(), Dtype::F32, weights.dims(n).unwrap().to_vec(), floats(&weights.get(n).unwrap())))
        .collect();
    for (at, (name, dims, values)) in task.held_out.0.iter().enumerate() {
        tensors.push((format!("held_out.{name}"), values.dtype(), dims.clone(), values.bytes()));
        let (_, dims, first) = &task.batches[0].0[at];
        let bytes = task.batches.iter().flat_map(|batch| batch.0[at].2.bytes()).collect();
        let dims = [&[task.batches.len()][..], dims].concat();
        tensors.push((format!("batches.{name}"), first.dtype(), dims, bytes));
    }
    let sources: Vec<TensorSource<'_>> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| TensorSource { name, dtype: *dtype, shape, bytes })
        .collect();
    let schedule: Vec<f64> = (0..task.asked[1]).map(|step| task.schedule(step)).collect();
    let described = serde_json::json!({
        "task": task.name, "config": task.config, "optimizer": task.optimizer, "asked": task.asked,
        "schedule": schedule,
    });
    let metadata = BTreeMap::from([("griffinfly.curve".to_owned(), described.to_string())]);
    write_atomic(&folder.join(format!("{}.safetensors", task.name)), &sources, &metadata).unwrap();
}

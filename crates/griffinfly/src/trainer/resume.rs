//! Checkpoints of trainers: parameters, optimizer state, and where the training is.

use super::Trainer;
use crate::checkpoint::{self, CheckpointFault, Contents, Loading, Source};
use crate::error::Error;
use crate::tensors::Tensors;
use griffinfly_ir::optimizer::Optimizer;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

const STEP: &str = "griffinfly.step";
const SEED: &str = "griffinfly.seed";
const LEARNING_RATE: &str = "griffinfly.learning_rate";
const OPTIMIZER: &str = "griffinfly.optimizer";

impl Trainer {
    pub(super) fn write_checkpoint(&self, path: &Path) -> Result<(), Error> {
        self.weights().check_set()?;
        self.runner.check_ids()?;
        Contents::read(&self.sets(), self.metadata()?)?.write(path)
    }

    pub(super) async fn checkpoint_async(&mut self) -> Result<Vec<u8>, Error> {
        self.weights().check_set()?;
        // Steps that are done have had their ids checked.
        self.settle_async(0).await?;
        Contents::read_async(&self.sets(), self.metadata()?).await?.to_bytes()
    }

    /// What a checkpoint holds.
    fn sets(&self) -> [&Tensors; 2] {
        [self.weights().tensors(), self.runner.state()]
    }

    fn metadata(&self) -> Result<BTreeMap<String, String>, Error> {
        let mut metadata = checkpoint::metadata(&[self.runner.state()]);
        metadata.insert(STEP.into(), self.step.to_string());
        metadata.insert(SEED.into(), self.seed.to_string());
        metadata.insert(LEARNING_RATE.into(), format!("{:?}", self.learning_rate));
        metadata.insert(OPTIMIZER.into(), encode(&self.optimizer)?);
        Ok(metadata)
    }

    pub(super) fn read_checkpoint(&mut self, source: Source<'_>) -> Result<(), Error> {
        let sets = self.sets();
        let loading = Loading { source, sets: &sets, other_state: false };
        let mut position = None;
        let loaded = loading.read_with(|metadata| match read_position(metadata, &self.optimizer) {
            Ok(found) => {
                position = Some(found);
                Vec::new()
            }
            Err(faults) => faults,
        })?;
        checkpoint::apply(&sets, &loaded)?;
        self.runner.loaded();
        if let Some((step, seed, learning_rate)) = position {
            (self.step, self.seed, self.learning_rate) = (step, seed, learning_rate);
        }
        // What was in flight belongs to what was replaced.
        self.pending.clear();
        self.losses.clear();
        Ok(())
    }
}

/// Step, seed and learning rate of a checkpoint made with this optimizer, or everything that is wrong.
fn read_position(
    metadata: &BTreeMap<String, String>,
    optimizer: &Optimizer,
) -> Result<(u64, u64, f64), Vec<CheckpointFault>> {
    let (step, seed) = (number::<u64>(metadata, STEP), number::<u64>(metadata, SEED));
    let rate = number::<f64>(metadata, LEARNING_RATE).and_then(|rate| {
        super::checked_rate(rate)
            .map_err(|e| CheckpointFault::Metadata { key: LEARNING_RATE, reason: format!("is no rate: {e}") })
    });
    let same = check_optimizer(metadata, optimizer);
    let step = step.and_then(|step| match step {
        u64::MAX => {
            Err(CheckpointFault::Metadata { key: STEP, reason: format!("is {step}: none can follow") })
        }
        step => Ok(step),
    });
    match (step, seed, rate, same) {
        (Ok(step), Ok(seed), Ok(rate), Ok(())) => Ok((step, seed, rate)),
        (step, seed, rate, same) => {
            Err([step.err(), seed.err(), rate.err(), same.err()].into_iter().flatten().collect())
        }
    }
}

fn entry<'a>(metadata: &'a BTreeMap<String, String>, key: &'static str) -> Result<&'a str, CheckpointFault> {
    let missing =
        || CheckpointFault::Metadata { key, reason: "is missing: this is no trainer's checkpoint".into() };
    metadata.get(key).map(String::as_str).ok_or_else(missing)
}

fn number<T: FromStr>(metadata: &BTreeMap<String, String>, key: &'static str) -> Result<T, CheckpointFault> {
    let text = entry(metadata, key)?;
    text.parse()
        .map_err(|_| CheckpointFault::Metadata { key, reason: format!("is '{text}', which is no number") })
}

/// The rule must be the same, because it is part of the program; the learning rate is not.
fn check_optimizer(metadata: &BTreeMap<String, String>, own: &Optimizer) -> Result<(), CheckpointFault> {
    let fault = |reason: String| CheckpointFault::Metadata { key: OPTIMIZER, reason };
    let text = entry(metadata, OPTIMIZER)?;
    let theirs: Optimizer = serde_json::from_str(text).map_err(|e| fault(format!("is no optimizer: {e}")))?;
    if without_rate(theirs) == without_rate(*own) {
        return Ok(());
    }
    Err(fault(format!("is {theirs:?}, the trainer has {own:?}")))
}

fn without_rate(optimizer: Optimizer) -> Optimizer {
    match optimizer {
        Optimizer::Sgd(mut config) => {
            config.learning_rate = 0.0;
            Optimizer::Sgd(config)
        }
        Optimizer::Adam(mut config) => {
            config.learning_rate = 0.0;
            Optimizer::Adam(config)
        }
    }
}

fn encode(optimizer: &Optimizer) -> Result<String, Error> {
    serde_json::to_string(optimizer).map_err(|e| Error::Value {
        what: "the optimizer",
        value: format!("{optimizer:?}"),
        reason: e.to_string(),
    })
}

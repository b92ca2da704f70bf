//! The model of the page: trained, tested, asked, adapted, saved and loaded on one device.
//!
//! Training follows the demo: [`STEPS`] steps of 64 images, the same learning rates, the same order from the same seed. A step is
//! counted by the trainer, practice included, so a checkpoint tells how far the training is.

use crate::likeness::Likeness;
use crate::practice::{Example, Practice};
use griffinfly::data::{self, Batch, CLASSES, Digits, PIXELS, SIDE};
use griffinfly::import::safetensors;
use griffinfly::models::{self, DigitsModel};
use griffinfly::{CheckpointFault, Device, Error, Feed, Input, Outputs, Session, Trainer, Weights};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use thiserror::Error as ThisError;

/// Steps of the training.
pub const STEPS: u64 = 440;
/// Images of a step.
const BATCH: usize = 64;
/// Of the weights and the order of the images.
const SEED: u64 = 0;
/// The learning rate of practice: a third of what training begins with.
const PRACTICE_RATE: f64 = 1e-3;
/// Where a checkpoint has how many steps were made.
const STEP: &str = "griffinfly.step";
/// What a trainer writes beside its tensors: a file with any of it is a training.
const POSITION: [&str; 4] = [STEP, "griffinfly.seed", "griffinfly.learning_rate", "griffinfly.optimizer"];
/// The most steps a file may have: JavaScript counts exactly up to there.
const MOST_STEPS: u64 = 1 << 53;

static DIGITS: LazyLock<Digits> = LazyLock::new(data::digits);

/// What went wrong.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum TutorError {
    /// In the library or on the device.
    #[error(transparent)]
    Library(#[from] Error),
    /// A digit that is none.
    #[error("{0} is no digit: an example is one of 0 to 9")]
    Digit(u8),
    /// Practice without examples.
    #[error("there are no examples of yours to practise on yet")]
    NoExamples,
    /// A training that is through.
    #[error("the training is done: all {STEPS} steps were made")]
    Trained,
}

impl TutorError {
    /// Whether the device is lost: make a new tutor, and load what was saved last.
    #[must_use]
    pub fn is_device_lost(&self) -> bool {
        matches!(self, TutorError::Library(error) if error.is_device_lost())
    }
}

/// What the model says to an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How probable each digit is to it.
    pub probabilities: [f32; CLASSES],
    /// The most probable one.
    pub digit: u8,
    /// Whether the image looks like any digit.
    pub is_digit: bool,
}

/// What a file was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// A training, which goes on where it was.
    Training,
    /// Weights alone: training with them starts anew.
    Weights,
}

/// The model on a device.
pub struct Tutor {
    device: Device,
    model: DigitsModel,
    trainer: Trainer,
    /// One image.
    asked: Option<Session>,
    /// All of the test part.
    tested: Option<Session>,
    practice: Practice,
    likeness: Likeness,
}

impl Tutor {
    /// An untrained model.
    ///
    /// # Errors
    /// Out of memory, device lost.
    pub fn new(device: &Device) -> Result<Self, TutorError> {
        let model = models::digits(BATCH);
        let weights = Weights::init(device, &model.graph, SEED)?;
        let trainer = trainer(&model, &weights)?;
        Ok(Tutor {
            device: device.clone(),
            model,
            trainer,
            asked: None,
            tested: None,
            practice: Practice::default(),
            likeness: Likeness::new(&DIGITS.train),
        })
    }

    /// So many steps of the training, fewer where it is done before, several at a time in flight. Their losses: each the mean
    /// cross-entropy of the step's images before it.
    ///
    /// # Errors
    /// The training is done already; device lost.
    pub async fn train(&mut self, steps: u64) -> Result<Vec<f32>, TutorError> {
        let left = STEPS.saturating_sub(self.trainer.steps());
        if left == 0 {
            return Err(TutorError::Trained);
        }
        self.run(steps.min(left), |tutor, done, batch| {
            tutor.trainer.set_learning_rate(DigitsModel::learning_rate(done, STEPS))?;
            Ok(batch)
        })
        .await
    }

    /// So many steps on the visitor's examples, mixed with images of the data set; their losses.
    ///
    /// # Errors
    /// No examples; device lost.
    pub async fn practise(&mut self, steps: u64) -> Result<Vec<f32>, TutorError> {
        if self.practice.examples().is_empty() {
            return Err(TutorError::NoExamples);
        }
        self.run(steps, |tutor, _, batch| {
            tutor.trainer.set_learning_rate(PRACTICE_RATE)?;
            Ok(tutor.practice.mix(batch))
        })
        .await
    }

    /// Steps on what `prepare` makes of the batches of the data set; it is given how many steps were made before.
    async fn run(
        &mut self,
        steps: u64,
        mut prepare: impl FnMut(&mut Tutor, u64, Batch) -> Result<Batch, Error>,
    ) -> Result<Vec<f32>, TutorError> {
        // Of a call that was given up half-way.
        drop(self.trainer.finish_async().await?);
        let mut losses = Vec::new();
        for _ in 0..steps {
            let done = self.trainer.steps();
            let batch = prepare(self, done, batch(done)?)?;
            losses.extend(self.trainer.submit_async(&batch.inputs()).await?);
        }
        losses.extend(self.trainer.finish_async().await?);
        Ok(losses)
    }

    /// Adds an example of the visitor's.
    ///
    /// # Errors
    /// Not a digit.
    pub fn add_example(&mut self, image: [f32; PIXELS], digit: u8) -> Result<(), TutorError> {
        let example = Example::new(image, digit).ok_or(TutorError::Digit(digit))?;
        self.likeness.add(&example.image);
        self.practice.add(example);
        Ok(())
    }

    /// The visitor's examples.
    #[must_use]
    pub fn examples(&self) -> &[Example] {
        self.practice.examples()
    }

    /// The part of the test images that the model classifies as they are labelled.
    ///
    /// # Errors
    /// Device lost.
    pub async fn accuracy(&mut self) -> Result<f32, TutorError> {
        let test = &DIGITS.test;
        if self.tested.is_none() {
            self.tested = Some(self.session(test.len())?);
        }
        let Some(session) = &mut self.tested else { return Ok(0.0) };
        let outputs = session.run_async(&[("image", Input::f32(&test.images))]).await?;
        let rows = logits(&outputs)?.chunks_exact(CLASSES).zip(&test.labels);
        let correct = rows.filter(|(row, label)| i32::from(best(row)) == **label).count();
        Ok(correct as f32 / test.len() as f32)
    }

    /// What the model says to an image.
    ///
    /// # Errors
    /// Device lost.
    pub async fn classify(&mut self, image: &[f32; PIXELS]) -> Result<Answer, TutorError> {
        if self.asked.is_none() {
            self.asked = Some(self.session(1)?);
        }
        let is_digit = self.likeness.is_digit(image);
        let mut probabilities = [0.0; CLASSES];
        if let Some(session) = &mut self.asked {
            let outputs = session.run_async(&[("image", Input::f32(image))]).await?;
            probabilities = softmax(logits(&outputs)?);
        }
        Ok(Answer { digit: best(&probabilities), probabilities, is_digit })
    }

    /// The training as a safetensors file.
    ///
    /// # Errors
    /// Device lost.
    pub async fn save(&mut self) -> Result<Vec<u8>, TutorError> {
        Ok(self.trainer.to_bytes_async().await?)
    }

    /// Goes on from a file: a training, or weights alone.
    ///
    /// # Errors
    /// No safetensors file, one of another model, a training that is damaged or of another optimizer; then everything is as before.
    /// Device lost.
    pub fn load(&mut self, bytes: &[u8], name: &str) -> Result<Loaded, TutorError> {
        let file = safetensors::parse(bytes.to_vec()).map_err(Error::from)?;
        let metadata = file.metadata();
        if POSITION.iter().any(|key| metadata.contains_key(*key)) {
            check_steps(metadata, name)?;
            self.trainer.load_bytes(bytes, name)?;
            return Ok(Loaded::Training);
        }
        self.trainer.weights().load_bytes(bytes, name)?;
        self.trainer = trainer(&self.model, self.trainer.weights())?;
        Ok(Loaded::Weights)
    }

    /// Steps made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.trainer.steps()
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of the device that the programs take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let sessions = [&self.asked, &self.tested].into_iter().flatten();
        let programs = sessions.map(Session::program).chain([self.trainer.program()]);
        programs.map(|program| program.memory.physical_bytes).sum()
    }

    fn session(&self, images: usize) -> Result<Session, Error> {
        let graph = self.model.inference()?.rebind(&[("image", &[images, 1, SIDE, SIDE])])?;
        Session::with_weights(graph, self.trainer.weights())
    }
}

/// The images of the step after so many.
fn batch(done: u64) -> Result<Batch, Error> {
    let missing = || {
        let reason = "the data set has no batch for it".into();
        Error::Value { what: "the step", value: done.to_string(), reason }
    };
    DIGITS.train.batches(BATCH, SEED)?.starting_at(done).next().ok_or_else(missing)
}

/// Refuses more steps than can be counted. What is no number is the trainer's to refuse.
fn check_steps(metadata: &BTreeMap<String, String>, name: &str) -> Result<(), Error> {
    match metadata.get(STEP).and_then(|text| text.parse::<u64>().ok()) {
        Some(steps) if steps > MOST_STEPS => {
            let reason = format!("is {steps}, at most {MOST_STEPS} are allowed");
            let faults = vec![CheckpointFault::Metadata { key: STEP, reason }];
            Err(Error::Checkpoint { path: name.into(), faults })
        }
        _ => Ok(()),
    }
}

fn trainer(model: &DigitsModel, weights: &Weights) -> Result<Trainer, Error> {
    Trainer::with_weights(model.training()?, DigitsModel::optimizer(), weights)
}

fn logits(outputs: &Outputs) -> Result<&[f32], Error> {
    outputs.f32("logits")
}

/// The first of the largest values.
fn best(values: &[f32]) -> u8 {
    let larger = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (0..values.len().min(CLASSES)).reduce(larger).unwrap_or(0) as u8
}

fn softmax(logits: &[f32]) -> [f32; CLASSES] {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: [f32; CLASSES] =
        std::array::from_fn(|i| logits.get(i).map_or(0.0, |logit| (logit - most).exp()));
    let sum: f32 = powers.iter().sum();
    powers.map(|power| power / sum)
}

//! Winners in the whole step: all of them, then halves of what was refused. What is accepted is on disk at once.

use super::search::{Search, Winner};
use super::step::{Compared, Step, compare};
use super::{Event, Table, abandon, compare as results, table};
use crate::error::Error;
use crate::outputs::Outputs;
use crate::weights::Weights;
use griffinfly_compile::kernel::families::tuned::Choices;
use griffinfly_gpu::GpuError;
use griffinfly_gpu::clock::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Parts of a step that no comparison shows.
const UNSEEN: f64 = 0.002;
/// Time of making a step that is left for another one, as a multiple of what the last one took.
const SPARE: f64 = 1.5;

/// The step with the choices so far.
struct Whole {
    weights: Weights,
    before: Step,
    /// The outputs with the defaults.
    expected: Outputs,
}

/// Times with the choices so far and with those in question, where it came to that; why the latter are refused, if so.
type Verdict = (Option<[Duration; 2]>, Option<String>);

impl Search<'_, '_> {
    /// Tries winners in the whole step, those that save most first where not all are accepted.
    ///
    /// # Errors
    /// As for the step with the choices so far; a file that cannot be written.
    pub(super) fn accept(&mut self, winners: Vec<Winner>) -> Result<(), Error> {
        if winners.is_empty() {
            return Ok(());
        }
        let weights = (self.subject.weights)(&self.device)?;
        let before = self.step(&weights, &self.choices)?;
        let expected = if self.choices.is_empty() {
            before.outputs.clone()
        } else {
            self.step(&weights, &Choices::new())?.outputs
        };
        let mut whole = Whole { weights, before, expected };
        let mut sets = VecDeque::from([winners]);
        while let Some(set) = sets.pop_front() {
            if set.iter().map(|winner| winner.gain).sum::<f64>() < UNSEEN {
                continue;
            }
            if Instant::now() + whole.before.preparation.mul_f64(SPARE) >= self.deadline(1.0) {
                self.report.is_complete = false;
                break;
            }
            let (times, refused) = self.decide(&mut whole, &set)?;
            self.note(times, refused.is_none());
            if refused.is_some() && set.len() > 1 {
                let (much, little) = set.split_at(set.len() / 2);
                sets.push_front(little.to_vec());
                sets.push_front(much.to_vec());
            }
            self.tell(Event::Step { choices: set.len(), times, refused });
        }
        Ok(())
    }

    /// Tries some winners together, and keeps them if they are accepted. Where they take the device with them, a new one is made.
    fn decide(&mut self, whole: &mut Whole, set: &[Winner]) -> Result<Verdict, Error> {
        let mut choices = self.choices.clone();
        set.iter().for_each(|winner| choices.insert(winner.key.as_str(), winner.text.as_str()));
        match self.tried(whole, &choices) {
            Ok((after, (times, None))) => {
                self.keep(set, choices)?;
                whole.before = after;
                Ok((times, None))
            }
            Ok((_, verdict)) => Ok(verdict),
            Err(Error::Gpu(fault @ (GpuError::DeviceLost { .. } | GpuError::Timeout { .. }))) => {
                self.renew()?;
                let weights = (self.subject.weights)(&self.device)?;
                let before = self.step(&weights, &self.choices)?;
                let fresh = Whole { weights, before, expected: whole.expected.clone() };
                abandon(std::mem::replace(whole, fresh));
                Ok((None, Some(fault.to_string())))
            }
            Err(fault) => Ok((None, Some(fault.to_string()))),
        }
    }

    /// A step with choices, its times beside those of the step so far, and why it is refused, if so.
    fn tried(&self, whole: &mut Whole, choices: &Choices) -> Result<(Step, Verdict), Error> {
        let mut after = self.step(&whole.weights, choices)?;
        if let Err(reason) = results::outputs(&after.outputs, &whole.expected, self.subject.contract) {
            return Ok((after, (None, Some(reason))));
        }
        match compare(&mut whole.before, &mut after, &self.tuner.limits, self.deadline(1.0)) {
            Ok(Compared { before, after: time, is_faster }) => {
                let refused = (!is_faster).then(|| "it is not faster beyond noise".to_owned());
                Ok((after, (Some([before, time]), refused)))
            }
            Err(fault) => {
                abandon(after);
                Err(fault)
            }
        }
    }

    /// Notes the first step as found and the last accepted one as left.
    fn note(&mut self, times: Option<[Duration; 2]>, is_accepted: bool) {
        let Some([before, after]) = times.map(|times| times.map(|t| t.as_secs_f64() * 1e3)) else { return };
        let [first, last] = self.report.milliseconds.unwrap_or([before; 2]);
        self.report.milliseconds = Some([first, if is_accepted { after } else { last }]);
    }

    /// Makes accepted choices those so far, on disk too.
    fn keep(&mut self, set: &[Winner], choices: Choices) -> Result<(), Error> {
        self.choices = choices;
        for winner in set {
            self.report.accepted.insert(winner.key.as_str(), winner.text.as_str());
        }
        self.save()
    }

    fn save(&self) -> Result<(), Error> {
        if let Some(file) = &self.report.file {
            let table = Table::new(self.device.info(), self.tuner.origin.as_str(), self.choices.clone());
            table.save(file)?;
        }
        Ok(())
    }

    /// Replaces a file that does not count, also where nothing was accepted.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn rewrite(&self) -> Result<(), Error> {
        let info = self.device.info();
        match &self.report.file {
            Some(file) if file.exists() && table::of_file(Some(file), info).is_none() => self.save(),
            _ => Ok(()),
        }
    }
}

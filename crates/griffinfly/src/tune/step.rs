//! Whole steps with given choices: their outputs, and how long they take against each other.

use super::compare::{faster, warm_up};
use super::{Limits, Subject, abandon};
use crate::error::Error;
use crate::memory::Plan;
use crate::outputs::Outputs;
use crate::session::Session;
use crate::weights::Weights;
use griffinfly_compile::kernel::families::tuned::Choices;
use griffinfly_gpu::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// A program with choices, which has run once.
pub(super) struct Step {
    pub(super) session: Session,
    pub(super) outputs: Outputs,
    /// How long it took to make.
    pub(super) preparation: Duration,
}

/// What comparing two steps told.
pub(super) struct Compared {
    /// Median of the steps with the choices so far.
    pub(super) before: Duration,
    /// Median of those with the choices in question.
    pub(super) after: Duration,
    /// Whether that is less beyond noise.
    pub(super) is_faster: bool,
}

impl Step {
    /// Compiles and runs a subject; its state starts anew.
    ///
    /// # Errors
    /// As for sessions.
    pub(super) fn new(
        subject: &Subject<'_>,
        weights: &Weights,
        choices: &Choices,
        timeout: Duration,
    ) -> Result<Step, Error> {
        let started = Instant::now();
        let plan = Plan { settings: subject.contract.into(), choices: Arc::new(choices.clone()) };
        let mut session = Session::planned(subject.graph.clone(), weights, plan)?;
        session.set_timeout(timeout);
        match session.run(subject.inputs) {
            Ok(outputs) => Ok(Step { session, outputs, preparation: started.elapsed() }),
            Err(fault) => {
                abandon(session);
                Err(fault)
            }
        }
    }

    fn time(&mut self) -> Result<Duration, Error> {
        let started = Instant::now();
        let ticket = self.session.submit_again()?;
        self.session.wait(ticket)?;
        Ok(started.elapsed())
    }
}

/// Times steps in pairs, each order as often as the other.
///
/// # Errors
/// As for steps.
pub(super) fn compare(
    before: &mut Step,
    after: &mut Step,
    limits: &Limits,
    deadline: Instant,
) -> Result<Compared, Error> {
    let device = before.session.weights().device().clone();
    warm_up(&device, || {
        before.time()?;
        after.time().map(|_| ())
    })?;
    let mut pairs = Vec::with_capacity(limits.pairs);
    while pairs.len() < limits.pairs && Instant::now() < deadline {
        pairs.push(if pairs.len() % 2 == 0 {
            [before.time()?, after.time()?]
        } else {
            let second = after.time()?;
            [before.time()?, second]
        });
    }
    let (before, after, is_faster) = faster(&pairs);
    Ok(Compared { before, after, is_faster })
}

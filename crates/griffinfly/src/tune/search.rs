//! The search: problems by their share of the step, their candidates alone; what was faster goes on to `accept`.

use super::step::Step;
use super::trial::{Ended, Trial, Tried};
use super::{Dropped, Event, Report, Subject, Tuner, table};
use crate::device::Device;
use crate::error::Error;
use crate::weights::Weights;
use griffinfly_compile::kernel::families::tuned::{self, Choices};
use griffinfly_compile::tuning::{Problem, problems};
use griffinfly_compile::{Options, program::Program};
use griffinfly_gpu::clock::Instant;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::Backend;
use std::collections::HashMap;
use std::time::Duration;

/// Shares of the step below which a problem is left alone.
const LEAST_SHARE: f64 = 0.004;
/// What a candidate must take at most of the time of the choice so far.
const LEAST_GAIN: f64 = 0.97;
/// The part of the budget for candidates alone.
const FOR_CANDIDATES: f64 = 0.6;
/// Steps whose medians rank the problems.
const PROFILED: usize = 5;
/// Least time that a whole step may take, however small the budget is: the untuned one counts too.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);

/// A problem with its share of the step.
struct Ranked {
    problem: Problem,
    share: f64,
}

/// A choice that was faster alone.
#[derive(Clone)]
pub(super) struct Winner {
    pub(super) key: String,
    pub(super) text: String,
    /// The part of the step that it saves by its time alone.
    pub(super) gain: f64,
}

/// A search under way.
pub(super) struct Search<'a, 't> {
    pub(super) tuner: &'a mut Tuner<'t>,
    pub(super) subject: &'a Subject<'a>,
    pub(super) device: Device,
    started: Instant,
    /// The choices so far.
    pub(super) choices: Choices,
    pub(super) report: Report,
}

pub(super) fn run(tuner: &mut Tuner<'_>, subject: &Subject<'_>) -> Result<Report, Error> {
    let started = Instant::now();
    let device = (tuner.open)()?;
    let info = device.info();
    if device.target().backend == Backend::Host {
        let reason = "it runs loops, and has no kernels to choose among".into();
        return Err(Error::Value { what: "the device", value: info.name.clone(), reason });
    }
    let file = tuner.file.clone().or_else(|| table::file(info));
    let (name, driver) = (info.name.clone(), info.driver.clone());
    let report = Report { device: name, driver, file, is_complete: true, ..Report::default() };
    let choices = Choices::clone(device.choices());
    let mut search = Search { tuner, subject, device, started, choices, report };
    let ranked = search.rank()?;
    let winners = search.candidates(&ranked)?;
    search.accept(winners)?;
    search.rewrite()?;
    search.report.seconds = started.elapsed().as_secs_f64();
    Ok(search.report)
}

impl Search<'_, '_> {
    pub(super) fn deadline(&self, part: f64) -> Instant {
        self.started + self.tuner.limits.budget.mul_f64(part)
    }

    /// Longest that a whole step may take.
    fn timeout(&self) -> Duration {
        self.tuner.limits.budget.max(self.tuner.limits.candidate).max(LEAST_TIMEOUT)
    }

    pub(super) fn tell(&mut self, event: Event) {
        if let Event::Dropped(dropped) = &event {
            self.report.dropped.push(dropped.clone());
        }
        (self.tuner.progress)(&event);
    }

    pub(super) fn step(&self, weights: &Weights, choices: &Choices) -> Result<Step, Error> {
        Step::new(self.subject, weights, choices, self.timeout())
    }

    /// The problems of the step, those that take most of it first.
    fn rank(&mut self) -> Result<Vec<Ranked>, Error> {
        let weights = (self.subject.weights)(&self.device)?;
        let mut step = self.step(&weights, &self.choices)?;
        let profile = step.session.profile(PROFILED)?;
        let options = Options { contract: self.subject.contract, ..Options::default() };
        let all = problems(self.subject.graph.graph(), self.device.target(), &options)?;
        let program = step.session.program();
        let times = profile.rows.iter().map(|row| (row.dispatch.dispatch, row.nanoseconds));
        let ranked = ranked(all, program, times.collect());
        let share = ranked.iter().map(|r| r.share).sum();
        self.report.problems[1] = ranked.len();
        self.tell(Event::Ranked { problems: ranked.len(), share });
        Ok(ranked)
    }

    /// Tries the candidates of the problems, until the part of the budget for it ends.
    fn candidates(&mut self, ranked: &[Ranked]) -> Result<Vec<Winner>, Error> {
        let mut winners = Vec::new();
        for r in ranked {
            if Instant::now() >= self.deadline(FOR_CANDIDATES) {
                self.report.is_complete = false;
                break;
            }
            match self.problem(r) {
                Ok(winner) => winners.extend(winner),
                // What is wrong with one problem is no reason to leave the others.
                Err(fault) if !fault.is_device_lost() => {
                    let (problem, reason) = (r.problem.key.clone(), fault.to_string());
                    self.tell(Event::Skipped { problem, reason });
                }
                Err(fault) => return Err(fault),
            }
        }
        winners.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        Ok(winners)
    }

    /// The winner of a problem, if it is not the choice so far. A candidate that takes the device with it is left out, and the
    /// others are tried again on a new one.
    fn problem(&mut self, r: &Ranked) -> Result<Option<Winner>, Error> {
        let (problem, target) = (&r.problem, self.device.target().clone());
        let most = self.tuner.limits.candidates;
        let refused = |source| griffinfly_compile::CompileError::Kernel {
            archetype: format!("{:?}", problem.l.archetype()),
            label: problem.key.clone(),
            source,
        };
        let mut texts = tuned::candidates(&problem.l, &target, (problem.classes, problem.neighbours), most)
            .map_err(refused)?;
        let chosen = tuned::entry(&problem.l, &target, problem.classes, &self.choices).map(str::to_owned);
        let runs = |text: &String| tuned::realise_as(&problem.l, &target, problem.classes, text).is_ok();
        let before = chosen.filter(runs).or_else(|| texts.first().cloned()).unwrap_or_default();
        if !texts.contains(&before) {
            texts.push(before.clone());
        }
        loop {
            let (device, limits, hook) = (&self.device, &self.tuner.limits, self.tuner.hook);
            let trial = Trial { device, problem, limits, deadline: self.deadline(FOR_CANDIDATES), hook };
            match trial.run(&texts)? {
                Ended::Done(tried) => return Ok(self.timed(r, &before, tried)),
                Ended::Lost { candidate, reason } => {
                    let is_default = texts.first() == Some(&candidate);
                    texts.retain(|text| *text != candidate);
                    let problem = problem.key.clone();
                    self.tell(Event::Dropped(Dropped { problem, candidate, reason }));
                    self.renew()?;
                    if is_default {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reports what was tried, and gives the winner if it is not the choice so far.
    fn timed(&mut self, r: &Ranked, before: &str, tried: Tried) -> Option<Winner> {
        let Tried { timed, dropped } = tried;
        let key = &r.problem.key;
        for (candidate, reason) in dropped {
            self.tell(Event::Dropped(Dropped { problem: key.clone(), candidate, reason }));
        }
        if timed.len() < 2 && Instant::now() >= self.deadline(FOR_CANDIDATES) {
            self.report.is_complete = false;
            return None;
        }
        self.report.problems[0] += 1;
        self.report.candidates += timed.len();
        let best = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.clone();
        let before = timed.iter().find(|(text, _)| text == before)?.clone();
        let is_better = best.0 != before.0 && best.1 < LEAST_GAIN * before.1;
        let gain = r.share * (1.0 - best.1 / before.1);
        let (problem, text) = (key.clone(), best.0.clone());
        self.tell(Event::Timed { problem, share: r.share, candidates: timed.len(), before, best });
        is_better.then(|| Winner { key: key.clone(), text, gain })
    }

    /// A new device in place of one that was lost or does not answer.
    pub(super) fn renew(&mut self) -> Result<(), Error> {
        self.device = (self.tuner.open)()?;
        Ok(())
    }
}

/// Problems with their shares of the time of all dispatches; loops of one key count together, tried as the first of them.
fn ranked(all: Vec<Problem>, program: &Program, times: Vec<(u32, f64)>) -> Vec<Ranked> {
    let keys: HashMap<&Loop, &str> = all.iter().map(|p| (&p.l, p.key.as_str())).collect();
    let mut shares: HashMap<String, f64> = HashMap::new();
    let total: f64 = times.iter().map(|(_, ns)| ns).sum();
    for (dispatch, ns) in times {
        let d = program.dispatches.get(dispatch as usize).filter(|d| !d.is_prefetch());
        let source = d.map(|d| d.source.index());
        let key = source.and_then(|i| program.loops.get(i)).and_then(|l| keys.get(l));
        if let Some(key) = key {
            *shares.entry((*key).to_owned()).or_default() += ns / total;
        }
    }
    let once = all.into_iter().filter_map(|problem| {
        let share = shares.remove(&problem.key)?;
        (share >= LEAST_SHARE).then_some(Ranked { problem, share })
    });
    let mut ranked: Vec<Ranked> = once.collect();
    ranked.sort_by(|a, b| b.share.total_cmp(&a.share));
    ranked
}

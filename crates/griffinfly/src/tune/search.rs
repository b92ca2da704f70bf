//! The search: problems by their share of the step, candidates alone, winners in the whole step.

use super::step::{Compared, Step, compare};
use super::trial::{Ended, Trial};
use super::{Dropped, Event, Report, Subject, Table, Tuner, abandon, compare as results, table};
use crate::device::Device;
use crate::error::Error;
use crate::weights::Weights;
use griffinfly_compile::kernel::families::tuned::{self, Choices};
use griffinfly_compile::tuning::{Problem, problems};
use griffinfly_compile::{Options, program::Program};
use griffinfly_gpu::GpuError;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::Backend;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

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
/// Parts of a step that no comparison shows.
const UNSEEN: f64 = 0.002;

/// A problem with its share of the step.
struct Ranked {
    problem: Problem,
    share: f64,
}

/// A choice that was faster alone.
#[derive(Clone)]
struct Winner {
    key: String,
    text: String,
    /// The part of the step that it saves by its time alone.
    gain: f64,
}

struct Search<'a, 't> {
    tuner: &'a mut Tuner<'t>,
    subject: &'a Subject<'a>,
    device: Device,
    started: Instant,
    /// The choices so far.
    choices: Choices,
    report: Report,
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
    fn deadline(&self, part: f64) -> Instant {
        self.started + self.tuner.limits.budget.mul_f64(part)
    }

    /// Longest that a whole step may take.
    fn timeout(&self) -> Duration {
        self.tuner.limits.budget.max(self.tuner.limits.candidate).max(LEAST_TIMEOUT)
    }

    fn tell(&mut self, event: Event) {
        if let Event::Dropped(dropped) = &event {
            self.report.dropped.push(dropped.clone());
        }
        (self.tuner.progress)(&event);
    }

    fn step(&self, weights: &Weights, choices: &Choices) -> Result<Step, Error> {
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
        let mut texts = tuned::candidates(&problem.l, &target, problem.classes, most).map_err(refused)?;
        let chosen = self.choices.get(&problem.key).map(str::to_owned);
        let runs = |text: &String| tuned::realise_as(&problem.l, &target, problem.classes, text).is_ok();
        let before = chosen.filter(runs).or_else(|| texts.first().cloned()).unwrap_or_default();
        if !texts.contains(&before) {
            texts.push(before.clone());
        }
        loop {
            let (device, limits, hook) = (&self.device, &self.tuner.limits, self.tuner.hook);
            let trial = Trial { device, problem, limits, deadline: self.deadline(FOR_CANDIDATES), hook };
            match trial.run(&texts)? {
                Ended::Done { timed, dropped } => return Ok(self.timed(r, &before, (timed, dropped))),
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

    fn timed(
        &mut self,
        r: &Ranked,
        before: &str,
        (timed, dropped): (Vec<(String, f64)>, Vec<(String, String)>),
    ) -> Option<Winner> {
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
    fn renew(&mut self) -> Result<(), Error> {
        self.device = (self.tuner.open)()?;
        Ok(())
    }

    /// Puts winners into the whole step, all of them, then halves of what was refused.
    fn accept(&mut self, winners: Vec<Winner>) -> Result<(), Error> {
        if winners.is_empty() {
            return Ok(());
        }
        let mut weights = (self.subject.weights)(&self.device)?;
        let mut before = self.step(&weights, &self.choices)?;
        let expected = if self.choices.is_empty() {
            before.outputs.clone()
        } else {
            self.step(&weights, &Choices::new())?.outputs
        };
        let mut sets = VecDeque::from([winners]);
        while let Some(set) = sets.pop_front() {
            if set.iter().map(|winner| winner.gain).sum::<f64>() < UNSEEN {
                continue;
            }
            if Instant::now() + before.preparation.mul_f64(1.5) >= self.deadline(1.0) {
                self.report.is_complete = false;
                break;
            }
            let mut choices = self.choices.clone();
            set.iter().for_each(|winner| choices.insert(winner.key.as_str(), winner.text.as_str()));
            let tried = self.step(&weights, &choices).and_then(|mut after| {
                match self.verdict((&mut before, &mut after), &expected) {
                    Ok(verdict) => Ok((after, verdict)),
                    Err(fault) => {
                        abandon(after);
                        Err(fault)
                    }
                }
            });
            let (times, refused) = match tried {
                Ok((after, (times, None))) => {
                    self.keep(&set, choices)?;
                    before = after;
                    (times, None)
                }
                Ok((_, (times, refused))) => (times, refused),
                Err(Error::Gpu(fault @ (GpuError::DeviceLost { .. } | GpuError::Timeout { .. }))) => {
                    self.renew()?;
                    let fresh = (self.subject.weights)(&self.device)?;
                    let step = self.step(&fresh, &self.choices)?;
                    abandon((std::mem::replace(&mut before, step), std::mem::replace(&mut weights, fresh)));
                    (None, Some(fault.to_string()))
                }
                Err(fault) => (None, Some(fault.to_string())),
            };
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

    /// Times of both steps, and why the second one is refused, if so.
    #[allow(clippy::type_complexity, reason = "times and a reason, each where there is one")]
    fn verdict(
        &self,
        (before, after): (&mut Step, &mut Step),
        expected: &crate::outputs::Outputs,
    ) -> Result<(Option<[Duration; 2]>, Option<String>), Error> {
        if let Err(reason) = results::outputs(&after.outputs, expected, self.subject.contract) {
            return Ok((None, Some(reason)));
        }
        let compared = compare(before, after, &self.tuner.limits, self.deadline(1.0))?;
        let Compared { before, after, is_faster } = compared;
        let refused = (!is_faster).then(|| "it is not faster beyond noise".to_owned());
        Ok((Some([before, after]), refused))
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
    fn rewrite(&self) -> Result<(), Error> {
        let info = self.device.info();
        match &self.report.file {
            Some(file) if file.exists() && table::of_file(Some(file), info).is_none() => self.save(),
            _ => Ok(()),
        }
    }
}

/// Problems with their shares of the time of all dispatches; loops of one key count together, tried as the first of them.
fn ranked(all: Vec<Problem>, program: &Program, times: Vec<(u32, f64)>) -> Vec<Ranked> {
    let keys: HashMap<&Loop, &str> = all.iter().map(|p| (&p.l, p.key.as_str())).collect();
    let mut shares: HashMap<String, f64> = HashMap::new();
    let total: f64 = times.iter().map(|(_, ns)| ns).sum();
    for (dispatch, ns) in times {
        let source = program.dispatches.get(dispatch as usize).map(|d| d.source.index());
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

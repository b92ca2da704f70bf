//! Candidates of one problem, alone on private buffers: compiled, qualified against the default choice, timed in turns.
//!
//! Operands are random; all candidates read the same ones and write the same results, which hold NaN before each of them. A
//! candidate qualifies if its results are those of the default within the bounds of both numeric classes. Times are medians
//! between timestamps, taken in rounds through all candidates, so that clocks and neighbours change nothing between them.

use super::compare::{difference, warm_up};
use super::{Hook, Limits};
use crate::device::Device;
use crate::error::Error;
use griffinfly_compile::program::{ArenaId, Program};
use griffinfly_compile::tuning::{self, Problem};
use griffinfly_gpu::clock::Instant;
use griffinfly_gpu::{Buffer, Executor, GpuError, Sections};
use griffinfly_ir::types::{DType, TensorType};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What an epilogue, or the exponentials of attention, may make of errors of sums.
const AFTER_SUMS: f64 = 4.0;
/// Relative error of truth values and the like, which follow from numbers close to a border: one in ten thousand differs.
const FLIPPED: f64 = 1e-2;
/// Rounds of timing, and the fewest.
const ROUNDS: [usize; 2] = [11, 3];
const SECTIONS: Sections = Sections { prepare: false, forward_backward: true, update: false, outputs: false };

/// Candidates of a problem that were tried.
pub(super) struct Tried {
    /// Those that qualified, with nanoseconds; the default is the first.
    pub(super) timed: Vec<(String, f64)>,
    /// The others, with reasons.
    pub(super) dropped: Vec<(String, String)>,
}

/// How a trial ended.
pub(super) enum Ended {
    /// It was tried.
    Done(Tried),
    /// A candidate took the device with it.
    Lost { candidate: String, reason: String },
}

/// A problem and how it is tried.
pub(super) struct Trial<'a> {
    pub(super) device: &'a Device,
    pub(super) problem: &'a Problem,
    pub(super) limits: &'a Limits,
    pub(super) deadline: Instant,
    pub(super) hook: Hook,
}

type Running = (String, Box<dyn Executor>, Duration);

impl Trial<'_> {
    /// Tries candidates; the first one is the default.
    ///
    /// # Errors
    /// No memory for the operands; a default that fails or gives nothing finite to compare with.
    pub(super) fn run(&self, candidates: &[String]) -> Result<Ended, Error> {
        let buffers = Buffers::new(self.device, self.problem)?;
        let (mut running, refused) = self.prepare(candidates, &buffers);
        // Others may have met the loss of the device too: the default is the last to be blamed.
        if let Some((candidate, fault)) = refused.iter().rev().find(|(_, fault)| fault.is_device_lost()) {
            let lost = Ended::Lost { candidate: candidate.clone(), reason: fault.to_string() };
            super::abandon((running, buffers));
            return Ok(lost);
        }
        if let Some((_, fault)) = refused.iter().find(|(text, _)| Some(text) == candidates.first()) {
            return Err(self.refused(&fault.to_string()));
        }
        let mut dropped: Vec<(String, String)> =
            refused.into_iter().map(|(text, fault)| (text, fault.to_string())).collect();
        let mut timed: Vec<Running> = Vec::new();
        // With the error that the classes of the default have.
        let mut expected: Option<(Vec<Vec<f32>>, f64)> = None;
        while let Some((text, mut executor, limit)) = running.pop_front() {
            if expected.is_some() && Instant::now() >= self.deadline {
                break;
            }
            let results = match buffers.results_of(executor.as_mut(), limit) {
                Ok(results) => results,
                Err(Error::Gpu(fault @ (GpuError::Timeout { .. } | GpuError::DeviceLost { .. }))) => {
                    // Whoever waits for what may never end is a thread of its own.
                    super::abandon((executor, running, timed, buffers));
                    return Ok(Ended::Lost { candidate: text, reason: fault.to_string() });
                }
                Err(fault) if expected.is_none() => return Err(fault),
                Err(fault) => {
                    dropped.push((text, fault.to_string()));
                    continue;
                }
            };
            match &expected {
                None => {
                    let error = error(executor.program());
                    expected = Some((self.reference(results, executor.as_mut(), &buffers)?, error));
                }
                Some(expected) => {
                    if let Err(reason) = self.qualify(executor.program(), &results, expected) {
                        dropped.push((text, reason));
                        continue;
                    }
                }
            }
            timed.push((text, executor, limit));
        }
        Ok(Ended::Done(Tried { timed: self.time(timed)?, dropped }))
    }

    /// Executors of the candidates, made on several threads as long as there is time, and those that cannot be made.
    fn prepare(&self, candidates: &[String], buffers: &Buffers) -> (VecDeque<Running>, Vec<(String, Error)>) {
        let queue = Mutex::new(candidates.iter().enumerate());
        let made = Mutex::new(Vec::new());
        let work = || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((number, text)) = next else { break };
                if number > 0 && Instant::now() >= self.deadline {
                    break;
                }
                let executor = self.executor(text, buffers);
                made.lock().unwrap_or_else(PoisonError::into_inner).push((number, executor));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(candidates.len());
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.sort_by_key(|(number, _)| *number);
        let (mut running, mut dropped) = (VecDeque::new(), Vec::new());
        for (number, executor) in made {
            let text = candidates[number].clone();
            match executor {
                Ok((executor, limit)) => running.push_back((text, executor, limit)),
                Err(fault) => dropped.push((text, fault)),
            }
        }
        (running, dropped)
    }

    fn executor(&self, text: &str, buffers: &Buffers) -> Result<(Box<dyn Executor>, Duration), Error> {
        let mut program = tuning::program(self.problem, text, self.device.target())?;
        let mut limit = self.limits.candidate;
        (self.hook)(text, &mut program, &mut limit);
        Ok((self.device.backend().instantiate(Arc::new(program), &buffers.bound())?, limit))
    }

    /// The results of the default; over positive operands where others give what is not finite.
    fn reference(
        &self,
        results: Vec<Vec<f32>>,
        executor: &mut dyn Executor,
        buffers: &Buffers,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let is_finite = |results: &[Vec<f32>]| results.iter().flatten().all(|x| x.is_finite());
        if is_finite(&results) {
            return Ok(results);
        }
        buffers.fill(self.problem, 0.25)?;
        let results = buffers.results_of(executor, self.limits.candidate)?;
        if is_finite(&results) {
            return Ok(results);
        }
        Err(self.refused("the results on random operands are not finite"))
    }

    fn refused(&self, reason: &str) -> Error {
        Error::Value { what: "a problem to tune", value: self.problem.key.clone(), reason: reason.into() }
    }

    fn qualify(
        &self,
        program: &Program,
        found: &[Vec<f32>],
        (expected, least): &(Vec<Vec<f32>>, f64),
    ) -> Result<(), String> {
        let allowed = AFTER_SUMS * (least + error(program));
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let d = difference(found, expected).ok_or_else(|| format!("result {i} is not finite"))?;
            let is_float = self.problem.l.results.get(i).is_some_and(|ty| ty.dtype == DType::F32);
            let allowed = if is_float { allowed } else { FLIPPED };
            if d.error > allowed * d.norm {
                let share = d.error / d.norm;
                return Err(format!("result {i} differs by {share:.1e}, allowed is {allowed:.1e}"));
            }
        }
        Ok(())
    }

    fn time(&self, mut all: Vec<Running>) -> Result<Vec<(String, f64)>, Error> {
        if let Some((_, executor, limit)) = all.first_mut() {
            // Queued, so that the device does not rest between them.
            let mut last = executor.submit(SECTIONS)?;
            warm_up(self.device, || {
                last = executor.submit(SECTIONS)?;
                Ok(())
            })?;
            executor.wait(last, limit.saturating_mul(4))?;
        }
        let [most, least] = ROUNDS;
        let mut times = vec![Vec::new(); all.len()];
        for round in 0..most {
            if round >= least && Instant::now() >= self.deadline {
                break;
            }
            for ((_, executor, _), times) in all.iter_mut().zip(&mut times) {
                times.push(executor.profile(SECTIONS)?.total_ns);
            }
        }
        let median = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        Ok(all.into_iter().zip(times).map(|((text, ..), times)| (text, median(times))).collect())
    }
}

/// Operands and results of a problem.
struct Buffers {
    device: Device,
    all: Vec<Arc<dyn Buffer>>,
    results: Vec<(usize, TensorType)>,
}

impl Buffers {
    fn new(device: &Device, problem: &Problem) -> Result<Buffers, Error> {
        let (l, backend) = (&problem.l, device.backend());
        let bytes = |ty: &TensorType| griffinfly_ir::layout::aligned(ty.bytes().max(1) as u64);
        let all: Result<Vec<_>, GpuError> =
            l.operands.iter().chain(&l.results).map(|ty| backend.buffer(bytes(ty))).collect();
        let results = l.results.iter().cloned().enumerate();
        let results = results.map(|(i, ty)| (l.operands.len() + i, ty)).collect();
        let buffers = Buffers { device: device.clone(), all: all?, results };
        buffers.fill(problem, -0.5)?;
        Ok(buffers)
    }

    /// Fills the operands: numbers from `least` to one more, ids below 8, truth values.
    fn fill(&self, problem: &Problem, least: f32) -> Result<(), Error> {
        for (i, (ty, buffer)) in problem.l.operands.iter().zip(&self.all).enumerate() {
            let word = |at: usize| {
                // The upper bits of a product by an odd constant are mixed well.
                let mixed = ((at + 1) as u64 ^ ((i as u64) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                match ty.dtype {
                    DType::F32 => ((mixed & 0xffff) as f32 / 65_536.0 + least).to_bits(),
                    DType::I32 => mixed as u32 & 7,
                    DType::U32 | DType::Bool => mixed as u32 & 1,
                }
            };
            let words: Vec<u32> = (0..ty.elements()).map(word).collect();
            self.device.backend().write(buffer, 0, bytemuck::cast_slice(&words))?;
        }
        Ok(())
    }

    fn bound(&self) -> Vec<(ArenaId, Arc<dyn Buffer>)> {
        self.all.iter().enumerate().map(|(i, buffer)| (ArenaId(i as u32), buffer.clone())).collect()
    }

    /// Runs once over poisoned results and reads them; those that are no numbers become numbers.
    fn results_of(&self, executor: &mut dyn Executor, limit: Duration) -> Result<Vec<Vec<f32>>, Error> {
        let backend = self.device.backend();
        for (at, ty) in &self.results {
            backend.write(&self.all[*at], 0, &vec![0xff; ty.bytes()])?;
        }
        let ticket = executor.submit(SECTIONS)?;
        executor.wait(ticket, limit)?;
        let read = |(at, ty): &(usize, TensorType)| {
            let mut words = vec![0_u32; ty.elements()];
            backend.read(&self.all[*at], 0, bytemuck::cast_slice_mut(&mut words))?;
            let is_float = ty.dtype == DType::F32;
            Ok(words.into_iter().map(|w| if is_float { f32::from_bits(w) } else { w as f32 }).collect())
        };
        self.results.iter().map(read).collect()
    }
}

/// The error that the coarsest class of a program's kernels may have.
fn error(program: &Program) -> f64 {
    program.kernels.iter().map(|kernel| kernel.numeric.error()).fold(0.0, f64::max)
}

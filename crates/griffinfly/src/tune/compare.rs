//! Whether results are those of the default choices, and whether a step is faster beyond noise.

use crate::device::Device;
use crate::error::Error;
use crate::outputs::{Data, Outputs};
use griffinfly_gpu::clock::Instant;
use griffinfly_ir::target::Contract;
use std::time::Duration;

/// Largest relative error (L2) of an output or gradient of a whole step: the one within which strict results count, and that of
/// outputs of the fast contract.
const STEP_ERROR: [f64; 2] = [1e-4, 1e-2];
/// Rounding of `f32` in a tensor that is small beside the others together, such as a gradient that would be zero without rounding.
const ROUNDING: f64 = 1e-7;
/// Fewest pairs of steps that can show a difference: three standard deviations need nine.
pub(super) const LEAST_PAIRS: usize = 9;
/// Gain below which a step counts as equally fast.
const LEAST_GAIN: f64 = 0.003;
/// How long hardware runs before its speed is looked at again, and at most.
const WARM_UP: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(1_000)];
/// Looks in which the speed must no longer have grown.
const LOOKS: usize = 3;

/// How numbers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// Norm of the difference.
    pub(super) error: f64,
    /// Norm of what was expected.
    pub(super) norm: f64,
    /// How many expected numbers are not finite.
    pub(super) unbounded: usize,
}

/// How numbers differ; `None` where one is not finite and not the same in both, or where there are not equally many.
pub(super) fn difference(found: &[f32], expected: &[f32]) -> Option<Difference> {
    if found.len() != expected.len() {
        return None;
    }
    let mut out = Difference::default();
    for (a, b) in found.iter().zip(expected) {
        if a.is_finite() && b.is_finite() {
            out.error += (f64::from(*a) - f64::from(*b)).powi(2);
            out.norm += f64::from(*b).powi(2);
        } else if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
            out.unbounded += 1;
        } else {
            return None;
        }
    }
    Some(Difference { error: out.error.sqrt(), norm: out.norm.sqrt(), ..out })
}

/// Whether the outputs (and so gradients) of a step are those expected.
///
/// # Errors
/// The first one that is not, with its error.
pub(super) fn outputs(found: &Outputs, expected: &Outputs, contract: Contract) -> Result<(), String> {
    let allowed = STEP_ERROR[usize::from(contract == Contract::Fast)];
    if found.all().len() != expected.all().len() {
        return Err(format!("{} outputs instead of {}", found.all().len(), expected.all().len()));
    }
    let mut differences = Vec::new();
    for (a, b) in found.all().iter().zip(expected.all()) {
        let is_same = match (&a.data, &b.data) {
            (Data::F32(x), Data::F32(y)) => {
                let d =
                    difference(x, y).ok_or_else(|| format!("{}: other numbers are not finite", b.name))?;
                differences.push((&b.name, d));
                true
            }
            (x, y) => x == y,
        };
        if !is_same || a.name != b.name {
            return Err(format!("{} differs", b.name));
        }
    }
    let total = differences.iter().map(|(_, d)| d.norm.powi(2)).sum::<f64>().sqrt();
    let wrong = differences.iter().find(|(_, d)| d.error > (allowed * d.norm).max(ROUNDING * total));
    match wrong {
        Some((name, d)) => {
            Err(format!("{name} differs by {:.1e} of {:.1e}, allowed is {allowed:.0e}", d.error, d.norm))
        }
        None => Ok(()),
    }
}

/// Medians of pairs of times, and whether the second ones are less beyond noise: the median by more than nothing, and so many
/// pairs that chance would give as many once in 700 times (a sign test at three standard deviations).
pub(super) fn faster(pairs: &[[Duration; 2]]) -> (Duration, Duration, bool) {
    let of = |i: usize| median(pairs.iter().map(|pair| pair[i]).collect());
    let (before, after) = (of(0), of(1));
    let (count, wins) = (pairs.len() as f64, pairs.iter().filter(|[a, b]| b < a).count() as f64);
    let is_beyond_noise = pairs.len() >= LEAST_PAIRS && wins >= count / 2.0 + 1.5 * count.sqrt();
    let gain = before.as_secs_f64() - after.as_secs_f64();
    (before, after, is_beyond_noise && gain > LEAST_GAIN * before.as_secs_f64())
}

/// The middle one of some times; zero of none.
pub(super) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Runs something until hardware has the clocks of steady work: until its speed no longer grows by more than 2 %. On software drivers, once.
///
/// # Errors
/// What the runs report.
pub(super) fn warm_up(device: &Device, mut run: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    if !device.target().is_hardware {
        return run();
    }
    let (started, [look, most]) = (Instant::now(), WARM_UP);
    let (mut fastest, mut steady) = (0.0, 0);
    while steady < LOOKS && started.elapsed() < most {
        let (begin, mut count) = (Instant::now(), 0.0);
        while begin.elapsed() < look {
            run()?;
            count += 1.0;
        }
        let speed = count / begin.elapsed().as_secs_f64();
        steady = if speed > 1.02 * fastest { 0 } else { steady + 1 };
        fastest = f64::max(fastest, speed);
    }
    Ok(())
}

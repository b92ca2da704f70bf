//! What a search tells while it goes on, and at its end.

use griffinfly_compile::kernel::families::tuned::Choices;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A candidate that does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// The problem.
    pub problem: String,
    /// The choice.
    pub candidate: String,
    /// Why.
    pub reason: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The step was measured.
    Ranked {
        /// Problems with a share worth measuring.
        problems: usize,
        /// Their part of the time of all dispatches.
        share: f64,
    },
    /// The candidates of a problem were timed.
    Timed {
        /// The problem.
        problem: String,
        /// Its part of the time of all dispatches.
        share: f64,
        /// Qualified candidates.
        candidates: usize,
        /// The choice so far, with nanoseconds.
        before: (String, f64),
        /// The fastest one, with nanoseconds.
        best: (String, f64),
    },
    /// A candidate was dropped.
    Dropped(Dropped),
    /// A problem was passed over.
    Skipped {
        /// The problem.
        problem: String,
        /// Why.
        reason: String,
    },
    /// New choices were tried in the whole step.
    Step {
        /// How many.
        choices: usize,
        /// Medians with the choices so far and with the new ones, where it came to that.
        times: Option<[Duration; 2]>,
        /// Why they were not accepted, if so.
        refused: Option<String>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Ranked { problems, share } => {
                write!(f, "{problems} problems take {:.0} % of the step", 100.0 * share)
            }
            Event::Timed { problem, share, candidates, before, best } => {
                write!(f, "{problem} ({:.1} %): {} {:.1} us", 100.0 * share, before.0, before.1 / 1e3)?;
                if before.0 != best.0 {
                    write!(f, ", {} {:.1} us", best.0, best.1 / 1e3)?;
                }
                write!(f, ", the best of {candidates}")
            }
            Event::Dropped(Dropped { problem, candidate, reason }) => {
                write!(f, "{problem}: {candidate} is dropped: {reason}")
            }
            Event::Skipped { problem, reason } => write!(f, "{problem} is passed over: {reason}"),
            Event::Step { choices, times, refused } => {
                write!(f, "{choices} new choices in the whole step")?;
                if let Some([before, after]) = times.map(|times| times.map(|t| t.as_secs_f64() * 1e3)) {
                    write!(f, ": {before:.3} ms before, {after:.3} ms after")?;
                }
                match refused {
                    Some(reason) => write!(f, ", refused: {reason}"),
                    None => f.write_str(", accepted"),
                }
            }
        }
    }
}

/// How a search ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Problems whose candidates were timed, of those with a share worth measuring.
    pub problems: [usize; 2],
    /// Candidates that were timed.
    pub candidates: usize,
    /// Candidates that do not count.
    pub dropped: Vec<Dropped>,
    /// The choices that were new and accepted.
    pub accepted: Choices,
    /// Milliseconds of a step as the search found it and as it left it; none where nothing was compared.
    pub milliseconds: Option<[f64; 2]>,
    /// Whether everything worth measuring was tried before the budget ended.
    pub is_complete: bool,
    /// How long the search took.
    pub seconds: f64,
    /// Where the choices are kept; none where nothing is.
    pub file: Option<PathBuf>,
}

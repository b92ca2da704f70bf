//! Where the time of a step goes: each dispatch with its time on the device.
//!
//! A profile is taken by a step of its own, with a timestamp behind every dispatch and a barrier between any two, apart from
//! timed series: the sum of its times is more than the time of an ordinary step, whose levels run together.

use crate::inspect::{DispatchRow, rows};
use griffinfly_compile::program::Program;
use griffinfly_gpu::StepTiming;
use serde::Serialize;

/// One dispatch with its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileRow {
    /// What it is.
    #[serde(flatten)]
    pub dispatch: DispatchRow,
    /// Nanoseconds on the device: the median of the steps taken.
    pub nanoseconds: f64,
}

/// The dispatches of a step in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// One row for each dispatch.
    pub rows: Vec<ProfileRow>,
    /// Nanoseconds from the first to the last: the median of the steps taken.
    pub total_ns: f64,
}

impl Profile {
    /// The medians of some steps of a program.
    pub(crate) fn new(program: &Program, steps: &[StepTiming]) -> Profile {
        let all = rows(program);
        let of = |number: u32| {
            let times = steps.iter().flat_map(|s| s.dispatch_ns.iter().filter(move |(d, _)| *d == number));
            median(times.map(|(_, ns)| *ns).collect())
        };
        let rows = all
            .into_iter()
            .filter_map(|dispatch| Some(ProfileRow { nanoseconds: of(dispatch.dispatch)?, dispatch }));
        let total_ns = median(steps.iter().map(|s| s.total_ns).collect()).unwrap_or(0.0);
        Profile { rows: rows.collect(), total_ns }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

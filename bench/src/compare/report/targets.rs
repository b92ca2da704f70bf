//! What a program costs the host, beside what it may cost: preparation of a workload's sessions, and work per step.
//!
//! Preparation is construction and first step without the median step, over all phases of a workload; work per step is the
//! median time from submission to return, of the phase that has most. Whether caches were empty, the records say.

use super::Part;
use crate::compare::Judged;
use crate::compare::tables::{captioned, hundredths};
use crate::record::{Phase, quartiles};

/// Most seconds of preparation, with empty caches of the driver.
const EMPTY_S: f64 = 1.0;
/// Most seconds of preparation, with warm ones.
const WARM_S: f64 = 0.2;
/// Most microseconds of host work per step.
const HOST_US: f64 = 30.0;

/// A line for each workload that has something to compare.
pub(super) fn beside(part: &Part<'_>) -> String {
    let own: Vec<&Judged<'_>> =
        part.own.ours.iter().filter(|j| j.run.precision == part.contract && j.cell.error.is_none()).collect();
    let mut workloads: Vec<_> = own.iter().map(|j| j.cell.workload).collect();
    workloads.dedup();
    let row = |workload| {
        let cells: Vec<&Judged<'_>> = own.iter().copied().filter(|j| j.cell.workload == workload).collect();
        let empty = sessions(&cells, |j| j.cell.preparation_s);
        let warm = sessions(&cells, |j| j.cell.preparation_again_s);
        let host = cells.iter().filter_map(|j| Some(quartiles(&j.cell.host_us)?.median)).reduce(f64::max);
        let mut verdicts = [(empty, EMPTY_S), (warm, WARM_S), (host, HOST_US)].map(|(x, most)| kept(x, most));
        if empty.is_some() && !cells.iter().all(|j| j.cell.caches_empty == Some(true)) {
            verdicts[0] = "caches not known";
        }
        let numbers = [empty, warm, host].into_iter().zip(verdicts);
        let cells = numbers.flat_map(|(x, verdict)| [hundredths(x), verdict.into()]);
        [workload.text().into()].into_iter().chain(cells).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = workloads.into_iter().map(row).collect();
    let caption = format!(
        "\
Preparation of all three sessions of a workload, in seconds: construction and first step without the median step. First
in a process, with empty caches of pipelines (target: at most {EMPTY_S:.1}); then once more in that process (target: {WARM_S:.1}). Host
work per step from submission to return, in microseconds, of the phase with the largest median (target: {HOST_US:.0})."
    );
    let header = ["workload", "first, s", "target", "once more, s", "target", "host work, us", "target"];
    captioned(&part.title("Preparation and host work beside their targets"), &caption, &header, &rows)
}

/// The seconds of all phases together; none unless all are known.
fn sessions(cells: &[&Judged<'_>], seconds: fn(&Judged<'_>) -> Option<f64>) -> Option<f64> {
    let of = |phase: Phase| {
        let j = cells.iter().find(|j| j.cell.phase == phase)?;
        Some(seconds(j)? - quartiles(&j.cell.samples_us)?.median / 1e6)
    };
    Phase::ALL.into_iter().map(of).sum()
}

/// Whether a target is met.
fn kept(x: Option<f64>, most: f64) -> &'static str {
    match x {
        None => "-",
        Some(x) if x <= most => "met",
        Some(_) => "missed",
    }
}

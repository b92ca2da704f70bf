//! Sections of the page with one line per cell, and the geometric means of all of them.
//!
//! What the reference costs is that of the mode whose time counts, since nobody has the speed of one mode and the memory of
//! another; the least of any mode stands beside it.

use super::Part;
use crate::compare::ratio::{Gap, geometric_mean};
use crate::compare::tables::{captioned, hundredths, mebibytes, table};
use crate::compare::{Comparison, Judged};
use crate::record::{Clocks, Phase};

/// The chart, and the means per contract and device.
pub(super) fn means(parts: &[Part<'_>], chart: Option<&str>) -> String {
    let row = |part: &Part<'_>| {
        let mean = |phase| mean(&part.comparison.ratios(phase));
        let [inference, latency, train] = Phase::ALL.map(|phase| mean(Some(phase)));
        let left_out = part.comparison.left_out();
        let left_out = if left_out.is_empty() { "none".into() } else { left_out.join(", ") };
        let names = [part.platform.text(), part.contract.text().into()];
        names.into_iter().chain([inference, latency, train, mean(None), left_out]).collect()
    };
    let rows: Vec<Vec<String>> = parts.iter().map(row).collect();
    let picture =
        chart.map(|file| format!("![Ratios of times, cell by cell]({file})\n\n")).unwrap_or_default();
    let caption = format!(
        "{picture}Geometric means, and in brackets of how many cells. Below 1 ours is faster. Of PyTorch the fastest mode \
         counts\nwhose results pass the gates; cells without one are left out and named."
    );
    let header = ["device", "contract", "inference", "latency", "train", "all cells", "left out"];
    captioned("Our time by that of the fastest valid PyTorch", &caption, &header, &rows)
}

/// Ratios with the phases they are of.
type Ratios = Vec<(Phase, f64)>;

/// Lines of geometric means, per phase and of all: a name, blanks, then one number per list, with the count of its cells.
fn mean_rows(lists: &[Ratios], blanks: usize) -> Vec<Vec<String>> {
    let phases = Phase::ALL.map(Some).into_iter().chain([None]);
    let row = |phase: Option<Phase>| {
        let of = |list: &Ratios| -> Vec<f64> {
            list.iter().filter(|r| phase.is_none_or(|phase| phase == r.0)).map(|r| r.1).collect()
        };
        let means: Vec<String> = lists.iter().map(|list| mean(&of(list))).collect();
        let names = ["geometric mean", phase.map_or("all", Phase::text)].map(String::from);
        let blanks = (0..blanks).map(|_| String::new());
        let is_empty = lists.iter().all(|list| of(list).is_empty());
        (!is_empty).then(|| names.into_iter().chain(blanks).chain(means).collect())
    };
    phases.filter_map(row).collect()
}

/// A geometric mean, and of how many.
fn mean(ratios: &[f64]) -> String {
    geometric_mean(ratios).map_or_else(|| "-".into(), |m| format!("{m:.2} ({})", ratios.len()))
}

/// The mode of the reference whose time counts.
fn fastest<'a>(comparison: &'a Comparison<'_>, ours: &Judged<'_>) -> Option<&'a Judged<'a>> {
    comparison.fastest(ours.cell.workload, ours.cell.phase).map(|(judged, _)| judged)
}

/// Ours by theirs, if ours is valid.
fn ratio(ours: &Judged<'_>, [a, b]: [Option<f64>; 2]) -> Option<f64> {
    let ratio = a? / b?;
    (ours.is_valid() && ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// The least of a quantity in any mode of the reference, valid or not.
fn least<T: PartialOrd>(
    part: &Part<'_>,
    ours: &Judged<'_>,
    of: impl Fn(&Judged<'_>) -> Option<T>,
) -> Option<T> {
    let all = part.comparison.theirs.iter().filter(|j| j.is_of(ours.cell.workload, ours.cell.phase));
    all.filter(|j| j.cell.error.is_none()).filter_map(of).reduce(|a, b| if b < a { b } else { a })
}

/// Seconds from the model to a program that ran once.
pub(super) fn preparation(part: &Part<'_>) -> String {
    let (mut rows, mut ratios) = (Vec::new(), [Ratios::new(), Ratios::new()]);
    for ours in &part.comparison.ours {
        let theirs = fastest(&part.comparison, ours);
        let own = ours.cell.preparation_s;
        let both = [theirs.and_then(|j| j.cell.preparation_s), least(part, ours, |j| j.cell.preparation_s)];
        let pair = both.map(|theirs| ratio(ours, [own, theirs]));
        for (list, ratio) in ratios.iter_mut().zip(pair) {
            list.extend(ratio.map(|r| (ours.cell.phase, r)));
        }
        let which = theirs.map_or_else(|| Gap::NoReference.text().into(), |j| part.comparison.label(j));
        let names = [ours.cell.workload.text(), ours.cell.phase.text()].map(String::from);
        let seconds = [own, both[0], both[1]].map(hundredths);
        rows.push(names.into_iter().chain([which]).chain(seconds).chain(pair.map(hundredths)).collect());
    }
    rows.extend(mean_rows(&ratios, 4));
    let caption = "\
From the model to a program that ran once, in seconds: of PyTorch in the fastest valid mode, and in whichever mode takes
least, valid or not. Phases follow each other in one process: a later one may find code that an earlier one compiled.";
    let header = [
        "workload",
        "phase",
        "fastest mode",
        "ours, s",
        "fastest mode, s",
        "quickest mode, s",
        "ours / fastest mode",
        "ours / quickest mode",
    ];
    captioned(&part.title("Preparation"), caption, &header, &rows)
}

/// Bytes of our plan beside those of the reference's allocator.
pub(super) fn memory(part: &Part<'_>) -> String {
    let (mut rows, mut ratios) = (Vec::new(), [Ratios::new(), Ratios::new()]);
    for ours in &part.comparison.ours {
        let theirs = fastest(&part.comparison, ours);
        let plan = ours.cell.memory.as_ref();
        let peak = theirs.and_then(|j| j.cell.memory.as_ref()?.peak_allocated);
        let smallest = least(part, ours, |j| j.cell.memory.as_ref()?.peak_allocated);
        let bytes = |bytes: Option<u64>| bytes.map(|b| b as f64);
        let own = bytes(plan.and_then(|m| m.physical));
        let pair = [peak, smallest].map(|theirs| ratio(ours, [own, bytes(theirs)]));
        for (list, ratio) in ratios.iter_mut().zip(pair) {
            list.extend(ratio.map(|r| (ours.cell.phase, r)));
        }
        let names = [ours.cell.workload.text(), ours.cell.phase.text()].map(String::from);
        let numbers = [
            plan.and_then(|m| m.physical),
            plan.and_then(|m| m.logical),
            plan.and_then(|m| m.lower_bound),
            plan.and_then(|m| m.device_used),
            peak,
            theirs.and_then(|j| j.cell.memory.as_ref()?.device_used),
            smallest,
        ];
        rows.push(names.into_iter().chain(numbers.map(mebibytes)).chain(pair.map(hundredths)).collect());
    }
    rows.extend(mean_rows(&ratios, 7));
    let caption = "\
In MiB. The ratios are of our plan, speed first, by the peak of PyTorch's allocator: in the fastest valid mode, and in
whichever mode takes least, valid or not.";
    let header = [
        "workload",
        "phase",
        "plan",
        "without sharing",
        "lower bound",
        "device in use",
        "peak, fastest mode",
        "device in use",
        "peak, smallest mode",
        "plan / fastest mode",
        "plan / smallest mode",
    ];
    captioned(&part.title("Memory"), caption, &header, &rows)
}

/// Sizes of our programs of the contract, and the clocks before and after their timed series.
pub(super) fn programs(part: &Part<'_>) -> String {
    let clock = |c: Option<Clocks>| c.map_or_else(|| "-".into(), |c| format!("{:.0}", c.sm_mhz));
    let row = |ours: &Judged<'_>| {
        let program = ours.cell.program.as_ref()?;
        let names = [ours.cell.workload.text(), ours.cell.phase.text()].map(String::from);
        let numbers = [program.dispatches, program.prefetches, program.levels, program.pipelines]
            .map(|n| n.to_string());
        let clocks = [clock(ours.cell.clocks_before), clock(ours.cell.clocks_after)];
        Some(names.into_iter().chain(numbers).chain(clocks).collect())
    };
    let own = part.own.ours.iter().filter(|j| j.run.precision == part.contract);
    let rows: Vec<Vec<String>> = own.filter_map(row).collect();
    let header =
        ["workload", "phase", "dispatches", "prefetches", "levels", "pipelines", "SM MHz before", "after"];
    table(&part.title("Programs"), &header, &rows)
}

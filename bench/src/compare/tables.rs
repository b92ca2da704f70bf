//! The comparison as Markdown.

use super::judge::{Compared, Verdict};
use super::ratio::geometric_mean;
use super::results::Results;
use super::{Comparison, Judged};
use crate::record::{Phase, Run, quartiles};
use std::fmt::Write as _;

/// Tensors named on the terminal per cell that does not pass.
const NAMED: usize = 10;

/// Everything about a comparison.
pub(super) fn terminal(results: &Results) -> String {
    let comparison = results.comparison();
    let parts = [
        runs(results.runs()),
        times(&comparison),
        gates(&comparison, !results.oracles.is_empty()),
        disagreements("Disagreements, worst first", &comparison, NAMED),
        programs(comparison.ours.iter().chain(&comparison.theirs)),
    ];
    parts.concat()
}

/// A table; empty without rows.
pub(super) fn table(title: &str, header: &[&str], rows: &[Vec<String>]) -> String {
    captioned(title, "", header, rows)
}

/// A table below a sentence about it; empty without rows.
pub(super) fn captioned(title: &str, caption: &str, header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\n## {title}\n\n");
    if !caption.is_empty() {
        text += &format!("{caption}\n\n");
    }
    // Writing to a string does not fail.
    let _ = writeln!(text, "| {} |\n|{}", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        let row: Vec<String> = row.iter().map(|cell| cell.replace(['|', '\n'], " ")).collect();
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// One line per run; what is said once is not said again.
pub(super) fn runs<'a>(runs: impl Iterator<Item = &'a Run>) -> String {
    let row = |run: &Run| {
        let device = &run.device;
        let revision = run.revision.as_deref().unwrap_or("unknown");
        vec![
            format!("{} {}", run.engine, run.version),
            format!("{:?} {:?}", run.precision, run.size).to_lowercase(),
            format!("{} ({})", device.name, device.backend),
            [Some(device.driver.as_str()), device.runtime.as_deref()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
            revision.chars().take(12).collect(),
        ]
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in runs.map(row) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    table("Runs", &["engine", "contract", "device", "driver", "revision"], &rows)
}

/// Median and quartiles in milliseconds.
pub(super) fn milliseconds(samples: &[f64]) -> String {
    let text = |q: crate::record::Quartiles| {
        format!("{:.3} ({:.3}-{:.3})", q.median / 1e3, q.low / 1e3, q.high / 1e3)
    };
    quartiles(samples).map_or_else(|| "-".into(), text)
}

fn times(comparison: &Comparison<'_>) -> String {
    Phase::ALL.map(|phase| times_of((&format!("Time: {}", phase.text()), ""), comparison, phase)).concat()
}

/// Our times of a phase beside those of the fastest valid mode, with the geometric mean of their ratios.
pub(super) fn times_of((title, caption): (&str, &str), comparison: &Comparison<'_>, phase: Phase) -> String {
    let mut rows = Vec::new();
    for ours in comparison.ours.iter().filter(|j| j.cell.phase == phase) {
        let theirs = comparison.fastest(ours.cell.workload, phase);
        let ratio = comparison.ratio(ours.cell.workload, phase).ok();
        rows.push(vec![
            ours.cell.workload.text().into(),
            milliseconds(&ours.cell.samples_us),
            milliseconds(&ours.cell.host_us),
            theirs.map_or_else(|| "-".into(), |(j, _)| milliseconds(&j.cell.samples_us)),
            theirs.map_or_else(|| "none is valid".into(), |(j, _)| comparison.label(j)),
            hundredths(ratio),
            status(ours),
        ]);
    }
    let ratios = comparison.ratios(Some(phase));
    if let Some(mean) = geometric_mean(&ratios) {
        let name = format!("geometric mean of {}", ratios.len());
        rows.push([&name, "", "", "", "", &format!("{mean:.2}"), ""].map(String::from).to_vec());
    }
    let header = ["workload", "ours, ms", "of it host", "theirs, ms", "which", "ours / theirs", "gate"];
    captioned(title, caption, &header, &rows)
}

/// A number with two digits after the point.
pub(super) fn hundredths(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), |x| format!("{x:.2}"))
}

pub(super) fn status(judged: &Judged<'_>) -> String {
    match (&judged.cell.error, &judged.verdict) {
        (Some(error), _) => format!("failed: {error}"),
        (None, None) => "not judged".into(),
        (None, Some(verdict)) if verdict.passes() => "pass".into(),
        (None, Some(_)) => "FAIL".into(),
    }
}

fn gates(comparison: &Comparison<'_>, has_oracle: bool) -> String {
    let mut rows = Vec::new();
    for judged in comparison.ours.iter().chain(&comparison.theirs) {
        let Some(verdict) = judged.verdict else { continue };
        let forward = verdict.forward.first();
        let number = |f: fn(&Compared) -> f64, c: Option<&Compared>| {
            c.map_or_else(|| "-".into(), |c| format!("{:.1e}", f(c)))
        };
        let worst = verdict.backward.first();
        rows.push(vec![
            judged.cell.workload.text().into(),
            judged.cell.phase.text().into(),
            judged.label(),
            number(|c| c.difference.relative(), forward),
            number(|c| c.difference.max, forward),
            number(|c| c.difference.relative(), worst),
            number(|c| 1.0 - c.difference.cosine, worst),
            worst.map_or_else(|| "-".into(), |c| c.name.clone()),
            status(judged),
            paper(verdict),
        ]);
    }
    let title = if has_oracle {
        "Gates, against the f64 oracle"
    } else {
        "Gates, against the reference (no oracle given)"
    };
    let header = [
        "workload",
        "phase",
        "engine",
        "output or loss, relative L2",
        "largest error",
        "worst gradient, relative L2",
        "1 - cosine",
        "which",
        "gate",
        "paper's gates",
    ];
    table(title, &header, &rows)
}

fn paper(verdict: &Verdict) -> String {
    let one = |(what, gate): &(String, crate::gate::Paper)| {
        let verdict = if gate.passes() { "pass" } else { "FAIL" };
        format!("{what} {verdict} ({:.4} %)", 100.0 * gate.error.max(gate.second))
    };
    verdict.paper.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What does not agree, so many tensors per cell.
pub(super) fn disagreements(title: &str, comparison: &Comparison<'_>, named: usize) -> String {
    let mut rows = Vec::new();
    for judged in comparison.ours.iter().chain(&comparison.theirs) {
        let Some(verdict) = judged.verdict else { continue };
        let cell =
            || [judged.cell.workload.text(), judged.cell.phase.text(), &judged.label()].map(String::from);
        let blank = || "".to_owned();
        for fault in verdict.faults.iter().take(named) {
            rows.push(cell().into_iter().chain([fault.clone(), blank(), blank(), blank()]).collect());
        }
        for c in verdict.disagreements().take(named) {
            let d = &c.difference;
            let numbers = [
                c.name.clone(),
                format!("{:.1e}", d.relative()),
                format!("{:.6}", d.cosine),
                format!("{:.1e}", d.reference),
            ];
            rows.push(cell().into_iter().chain(numbers).collect());
        }
    }
    let header = ["workload", "phase", "engine", "tensor", "relative L2", "cosine", "norm of the oracle's"];
    table(title, &header, &rows)
}

/// Bytes in MiB.
pub(super) fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".into(), |b| format!("{:.0}", b as f64 / f64::from(1 << 20)))
}

fn programs<'a>(cells: impl Iterator<Item = &'a Judged<'a>>) -> String {
    let row = |j: &Judged<'_>| {
        let m = j.cell.memory.as_ref();
        let p = j.cell.program;
        let clock =
            |c: Option<crate::record::Clocks>| c.map_or_else(|| "-".into(), |c| format!("{:.0}", c.sm_mhz));
        vec![
            j.cell.workload.text().into(),
            j.cell.phase.text().into(),
            j.label(),
            j.cell.preparation_s.map_or_else(|| "-".into(), |s| format!("{s:.2}")),
            p.map_or_else(|| "-".into(), |p| format!("{} / {} / {}", p.dispatches, p.pipelines, p.levels)),
            mebibytes(m.and_then(|m| m.physical)),
            mebibytes(m.and_then(|m| m.logical)),
            mebibytes(m.and_then(|m| m.lower_bound)),
            mebibytes(m.and_then(|m| m.peak_allocated)),
            mebibytes(m.and_then(|m| m.device_used)),
            format!("{} / {}", clock(j.cell.clocks_before), clock(j.cell.clocks_after)),
        ]
    };
    let rows: Vec<_> = cells.map(row).collect();
    let header = [
        "workload",
        "phase",
        "engine",
        "preparation, s",
        "dispatches / pipelines / levels",
        "plan, MiB",
        "without sharing",
        "lower bound",
        "allocator peak",
        "device in use",
        "SM MHz before / after",
    ];
    table("Preparation and memory", &header, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_row_per_line() {
        assert_eq!(table("T", &["a"], &[]), "");
        let text = table("T", &["a", "b"], &[vec!["1".into(), "2|\n".into()]]);
        assert_eq!(text, "\n## T\n\n| a | b |\n|---|---|\n| 1 | 2   |\n");
        let text = captioned("T", "About it.", &["a"], &[vec!["1".into()]]);
        assert_eq!(text, "\n## T\n\nAbout it.\n\n| a |\n|---|\n| 1 |\n");
    }
}

//! The comparison as Markdown.

use super::judge::{Compared, Verdict};
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
        runs(results),
        times(&comparison),
        gates(&comparison, !results.oracles.is_empty()),
        disagreements(&comparison, NAMED),
        programs(comparison.ours.iter().chain(&comparison.theirs)),
    ];
    parts.concat()
}

/// A table; empty without rows.
pub(super) fn table(title: &str, header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\n## {title}\n\n| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

pub(super) fn runs(results: &Results) -> String {
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
    let mut rows: Vec<_> = results.runs().map(row).collect();
    rows.dedup();
    table("Runs", &["engine", "contract", "device", "driver", "revision"], &rows)
}

/// Median and quartiles in milliseconds.
fn milliseconds(samples: &[f64]) -> String {
    let text = |q: crate::record::Quartiles| {
        format!("{:.3} ({:.3}-{:.3})", q.median / 1e3, q.low / 1e3, q.high / 1e3)
    };
    quartiles(samples).map_or_else(|| "-".into(), text)
}

pub(super) fn times(comparison: &Comparison<'_>) -> String {
    Phase::ALL.map(|phase| times_of(comparison, phase)).concat()
}

fn times_of(comparison: &Comparison<'_>, phase: Phase) -> String {
    let mut ratios = Vec::new();
    let mut rows = Vec::new();
    for ours in comparison.ours.iter().filter(|j| j.cell.phase == phase) {
        let theirs = comparison.fastest(ours.cell.workload, phase);
        let ratio = match (ours.is_valid(), ours.median(), theirs) {
            (true, Some(median), Some((_, other))) => Some(median / other),
            _ => None,
        };
        ratios.extend(ratio);
        rows.push(vec![
            ours.cell.workload.text().into(),
            milliseconds(&ours.cell.samples_us),
            milliseconds(&ours.cell.host_us),
            theirs.map_or_else(|| "-".into(), |(j, _)| milliseconds(&j.cell.samples_us)),
            theirs.map_or_else(|| "none is valid".into(), |(j, _)| j.label()),
            ratio.map_or_else(|| "-".into(), |r| format!("{r:.2}")),
            status(ours),
        ]);
    }
    if let Some(mean) = geometric_mean(&ratios) {
        let name = format!("geometric mean of {}", ratios.len());
        rows.push([&name, "", "", "", "", &format!("{mean:.2}"), ""].map(String::from).to_vec());
    }
    let header = ["workload", "ours, ms", "of it host", "theirs, ms", "which", "ours / theirs", "gate"];
    table(&format!("Time: {}", phase.text()), &header, &rows)
}

pub(super) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
    (!ratios.is_empty()).then(|| (logs / ratios.len() as f64).exp())
}

pub(super) fn status(judged: &Judged<'_>) -> String {
    match (&judged.cell.error, &judged.verdict) {
        (Some(error), _) => format!("failed: {error}").replace(['|', '\n'], " "),
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
pub(super) fn disagreements(comparison: &Comparison<'_>, named: usize) -> String {
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
    table("Disagreements, worst first", &header, &rows)
}

/// Bytes in MiB.
pub(super) fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".into(), |b| format!("{:.0}", b as f64 / f64::from(1 << 20)))
}

pub(super) fn programs<'a>(cells: impl Iterator<Item = &'a Judged<'a>>) -> String {
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
    fn geometric_means_are_those_of_the_logarithms() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[0.5, 2.0, 8.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn tables_have_a_row_per_line() {
        assert_eq!(table("T", &["a"], &[]), "");
        let text = table("T", &["a", "b"], &[vec!["1".into(), "2".into()]]);
        assert_eq!(text, "\n## T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}

//! The metric of performance portability of Pennycook, Sewall and Lee ("A Metric for Performance Portability", 2016,
//! arXiv 1611.07409).
//!
//! Input: comparisons, one per platform. Output: a table of application efficiencies and of the metric, their harmonic mean
//! over the platforms. The efficiency on a platform is the time of the fastest known implementation, ours or a valid one of
//! the reference, by our time; it is 0 where ours has no valid time, and then the metric is 0.

use crate::compare::Comparison;
use crate::compare::ratio::{Gap, all_cells};
use crate::compare::tables::{captioned, hundredths};
use crate::record::Phase;
use crate::workload::Name;

/// Harmonic mean of efficiencies, 0 if one of them is; none without platforms.
pub(super) fn metric(efficiencies: &[f64]) -> Option<f64> {
    if efficiencies.contains(&0.0) {
        return Some(0.0);
    }
    let inverses: f64 = efficiencies.iter().map(|e| 1.0 / e).sum();
    (!efficiencies.is_empty()).then(|| efficiencies.len() as f64 / inverses)
}

/// Our part of the speed of the fastest known implementation.
pub(super) fn efficiency(comparison: &Comparison<'_>, workload: Name, phase: Phase) -> f64 {
    let theirs = comparison.fastest(workload, phase).map_or(f64::INFINITY, |(_, time)| time);
    comparison.our_time(workload, phase).map_or(0.0, |ours| ours.min(theirs) / ours)
}

/// Whether any platform measured a cell.
fn is_measured(comparisons: &[(&str, Comparison<'_>)], workload: Name, phase: Phase) -> bool {
    let has = |c: &Comparison<'_>| c.ours.iter().chain(&c.theirs).any(|j| j.is_of(workload, phase));
    comparisons.iter().any(|(_, comparison)| has(comparison))
}

/// The metric per workload and phase, and its arithmetic mean over the workloads of a phase.
pub(super) fn table(title: &str, comparisons: &[(&str, Comparison<'_>)]) -> String {
    let mut rows = Vec::new();
    let mut metrics: Vec<(Phase, f64)> = Vec::new();
    for (workload, phase) in all_cells().filter(|(w, p)| is_measured(comparisons, *w, *p)) {
        let efficiencies: Vec<f64> =
            comparisons.iter().map(|(_, comparison)| efficiency(comparison, workload, phase)).collect();
        let metric = metric(&efficiencies);
        metrics.extend(metric.map(|metric| (phase, metric)));
        let texts = comparisons.iter().zip(&efficiencies).map(|((_, comparison), e)| {
            let note = match comparison.ratio(workload, phase) {
                Err(Gap::NoReference) => " (only ours is valid)".into(),
                Err(gap) => format!(" ({})", gap.text()),
                Ok(_) => String::new(),
            };
            format!("{e:.2}{note}")
        });
        let names = [workload.text(), phase.text()].map(String::from);
        rows.push(names.into_iter().chain(texts).chain([hundredths(metric)]).collect());
    }
    for phase in Phase::ALL {
        let own: Vec<f64> = metrics.iter().filter(|m| m.0 == phase).map(|m| m.1).collect();
        if !own.is_empty() {
            let mean = own.iter().sum::<f64>() / own.len() as f64;
            let names = [format!("mean of {}", own.len()), phase.text().to_owned()];
            let blank = comparisons.iter().map(|_| String::new());
            rows.push(names.into_iter().chain(blank).chain([hundredths(Some(mean))]).collect());
        }
    }
    let mut header = vec!["workload", "phase"];
    header.extend(comparisons.iter().map(|(name, _)| *name));
    header.push("metric");
    captioned(title, &caption(comparisons.len()), &header, &rows)
}

fn caption(platforms: usize) -> String {
    let count = match platforms {
        1 => "One platform is measured, so the metric equals the efficiency on it.".to_owned(),
        n => format!("{n} platforms are measured."),
    };
    format!(
        "Harmonic mean, over the platforms measured, of the application efficiency: the time of the fastest known\n\
         implementation on that platform, ours or PyTorch's, by our time; 0 where ours has no valid time on one of them\n\
         (S. J. Pennycook, J. D. Sewall, V. W. Lee, \"A Metric for Performance Portability\", 2016, arXiv 1611.07409).\n\
         {count}"
    )
}

//! Our times by those of the fastest valid mode of the reference, cell by cell, and their means.
//!
//! A cell whose ratio means nothing has its reason instead: it is named, never silently left out.

use super::{Comparison, Judged};
use crate::record::Phase;
use crate::workload::Name;

/// Why a cell has no ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    NotMeasured,
    OursInvalid,
    NoReference,
}

impl Gap {
    pub(super) fn text(self) -> &'static str {
        match self {
            Gap::NotMeasured => "not measured",
            Gap::OursInvalid => "ours is not valid",
            Gap::NoReference => "no valid reference",
        }
    }
}

/// The fifteen cells, in the order of all tables.
pub(super) fn all_cells() -> impl Iterator<Item = (Name, Phase)> {
    Name::ALL.into_iter().flat_map(|workload| Phase::ALL.map(|phase| (workload, phase)))
}

impl Comparison<'_> {
    /// Our cell of a workload and phase.
    pub(super) fn ours_of(&self, workload: Name, phase: Phase) -> Option<&Judged<'_>> {
        self.ours.iter().find(|j| j.is_of(workload, phase))
    }

    /// Our median time, if it counts.
    pub(super) fn our_time(&self, workload: Name, phase: Phase) -> Result<f64, Gap> {
        let ours = self.ours_of(workload, phase).ok_or(Gap::NotMeasured)?;
        if !ours.is_valid() {
            return Err(Gap::OursInvalid);
        }
        ours.median().ok_or(Gap::NotMeasured)
    }

    /// Our median by that of the fastest valid mode of the reference.
    pub(super) fn ratio(&self, workload: Name, phase: Phase) -> Result<f64, Gap> {
        let ours = self.our_time(workload, phase)?;
        let (_, theirs) = self.fastest(workload, phase).ok_or(Gap::NoReference)?;
        Ok(ours / theirs)
    }

    /// The ratios of a phase, or of all.
    pub(super) fn ratios(&self, phase: Option<Phase>) -> Vec<f64> {
        let cells = all_cells().filter(|cell| phase.is_none_or(|phase| cell.1 == phase));
        cells.filter_map(|(workload, phase)| self.ratio(workload, phase).ok()).collect()
    }

    /// The cells without a ratio, each with its reason; a workload whose cells all have the same one stands once.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut names = Vec::new();
        for workload in Name::ALL {
            let gaps = Phase::ALL.map(|phase| self.ratio(workload, phase).err());
            if let [Some(a), b, c] = gaps
                && b == Some(a)
                && c == Some(a)
            {
                names.push(format!("{} ({})", workload.text(), a.text()));
                continue;
            }
            for (phase, gap) in Phase::ALL.into_iter().zip(gaps) {
                names.extend(gap.map(|gap| format!("{} {} ({})", workload.text(), phase.text(), gap.text())));
            }
        }
        names
    }
}

pub(super) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
    (!ratios.is_empty()).then(|| (logs / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_means_are_those_of_the_logarithms() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[0.5, 2.0, 8.0]).unwrap() - 2.0).abs() < 1e-12);
    }
}

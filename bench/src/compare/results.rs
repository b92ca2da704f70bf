//! Records with the verdicts on them, as one file: all that is left of a comparison when the dumps are gone.

use super::judge::Verdict;
use super::{Comparison, Judged};
use crate::error::BenchError;
use crate::record::{FORMAT, Phase, Run};
use crate::workload::Name;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A run with what the oracle says about each of its cells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JudgedRun {
    pub(super) run: Run,
    pub(super) verdicts: Vec<Option<Verdict>>,
}

/// Everything about one or more comparisons of one contract and size.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Results {
    format: u32,
    pub(super) ours: Vec<JudgedRun>,
    pub(super) theirs: Vec<JudgedRun>,
    pub(super) oracles: Vec<Run>,
}

impl Results {
    /// Of one comparison.
    pub(super) fn new(ours: JudgedRun, theirs: Vec<JudgedRun>, oracle: Option<Run>) -> Results {
        Results { format: FORMAT, ours: vec![ours], theirs, oracles: oracle.into_iter().collect() }
    }

    /// Dumps are left out: they are as large as the models and stay where they are.
    pub(super) fn write(mut self, path: &Path) -> Result<(), BenchError> {
        let judged = self.ours.iter_mut().chain(&mut self.theirs).map(|j| &mut j.run);
        judged.chain(&mut self.oracles).flat_map(|run| &mut run.cells).for_each(|cell| cell.dump = None);
        let source = |source| BenchError::Record { path: path.to_owned(), source };
        let json = serde_json::to_string(&self).map_err(source)?;
        // One tensor per line: files of results are kept under version control.
        let json = json.replace("{\"name\":", "\n{\"name\":").replace("{\"workload\":", "\n{\"workload\":");
        std::fs::write(path, json + "\n").map_err(BenchError::io(path))
    }

    pub(super) fn read(path: &Path) -> Result<Results, BenchError> {
        let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
        let results: Results = serde_json::from_str(&text)
            .map_err(|source| BenchError::Record { path: path.to_owned(), source })?;
        let fault = |reason| BenchError::File { path: path.to_owned(), reason };
        if results.format != FORMAT {
            return Err(fault(format!("is of format {}, this program reads {FORMAT}", results.format)));
        }
        if results.ours.is_empty() {
            return Err(fault("holds no results of ours".into()));
        }
        for j in results.ours.iter().chain(&results.theirs) {
            let (cells, verdicts) = (j.run.cells.len(), j.verdicts.len());
            if cells != verdicts {
                return Err(fault(format!("has {verdicts} verdicts on {cells} cells")));
            }
        }
        Ok(results)
    }

    /// Adds other comparisons of the same contract and size on the same device.
    ///
    /// # Errors
    /// What differs, or which cell both have.
    pub(super) fn join(&mut self, other: Results) -> Result<(), String> {
        let all = |results: &Results| {
            let run = &results.ours[0].run;
            (run.precision, run.size, run.device.name.clone(), run.device.driver.clone())
        };
        let (a, b) = (all(self), all(&other));
        if a != b {
            return Err(format!("is of {b:?}, the others are of {a:?}"));
        }
        let cells = |results: &Results| -> Vec<(Name, Phase)> {
            results.ours.iter().flat_map(|j| &j.run.cells).map(|cell| (cell.workload, cell.phase)).collect()
        };
        let known = cells(self);
        if let Some((workload, phase)) = cells(&other).iter().find(|cell| known.contains(cell)) {
            return Err(format!("has {} {} a second time", workload.text(), phase.text()));
        }
        self.ours.extend(other.ours);
        self.theirs.extend(other.theirs);
        self.oracles.extend(other.oracles);
        Ok(())
    }

    pub(super) fn comparison(&self) -> Comparison<'_> {
        fn cells(runs: &[JudgedRun]) -> Vec<Judged<'_>> {
            let pairs =
                runs.iter().flat_map(|j| j.run.cells.iter().zip(&j.verdicts).map(move |p| (&j.run, p)));
            pairs.map(|(run, (cell, v))| Judged { run, cell, verdict: v.as_ref() }).collect()
        }
        Comparison { ours: cells(&self.ours), theirs: cells(&self.theirs) }
    }

    /// All runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.ours.iter().chain(&self.theirs).map(|j| &j.run).chain(&self.oracles)
    }
}

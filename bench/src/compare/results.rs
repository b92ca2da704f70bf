//! Records with the verdicts on them, as one file: all that is left of a comparison when the dumps are gone.

use super::judge::Verdict;
use super::{Comparison, Judged};
use crate::error::BenchError;
use crate::json;
use crate::record::{FORMAT, Precision, Run};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A run with what the oracle says about each of its cells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JudgedRun {
    pub(super) run: Run,
    pub(super) verdicts: Vec<Option<Verdict>>,
}

impl JudgedRun {
    /// A run that nothing judged.
    pub(super) fn unjudged(run: Run) -> JudgedRun {
        let verdicts = run.cells.iter().map(|_| None).collect();
        JudgedRun { run, verdicts }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = Judged<'_>> {
        let pairs = self.run.cells.iter().zip(&self.verdicts);
        pairs.map(|(cell, verdict)| Judged { run: &self.run, cell, verdict: verdict.as_ref() })
    }
}

/// All cells of several runs.
pub(super) fn cells(runs: &[JudgedRun]) -> Vec<Judged<'_>> {
    runs.iter().flat_map(JudgedRun::cells).collect()
}

/// Everything about a comparison.
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
        let json = serde_json::to_string(&self).map_err(BenchError::record(path))?;
        // One tensor per line: files of results are kept under version control.
        let json = json.replace("{\"name\":", "\n{\"name\":").replace("{\"workload\":", "\n{\"workload\":");
        std::fs::write(path, json + "\n").map_err(BenchError::io(path))
    }

    /// What the text of a file says.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Results, BenchError> {
        let results: Results = json::parse(path, text)?;
        let fault = |reason| BenchError::File { path: path.to_owned(), reason };
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

    /// That of the reference: ours may be stricter.
    pub(super) fn contract(&self) -> Precision {
        self.theirs.first().unwrap_or(&self.ours[0]).run.precision
    }

    pub(super) fn comparison(&self) -> Comparison<'_> {
        Comparison { contract: self.contract(), ours: cells(&self.ours), theirs: cells(&self.theirs) }
    }

    /// All runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.ours.iter().chain(&self.theirs).map(|j| &j.run).chain(&self.oracles)
    }
}

//! `griffinfly-bench compare`: two engines' results as tables, each cell only as far as its gate allows.
//!
//! Input: records of both engines and of the oracle, a run in `f64`. Output: Markdown on the terminal, and with `--out` a file
//! of everything, verdicts on every tensor included, from which [`report`] makes a page. The fastest valid mode of the
//! reference is what we are compared with.

pub(crate) mod backends;
pub(crate) mod judge;
mod ratio;
pub(crate) mod report;
mod results;
mod tables;

use crate::error::BenchError;
use crate::gate::Limits;
use crate::record::{Cell, Phase, Precision, Run, quartiles};
use crate::workload::Name;
use griffinfly::import::safetensors;
use judge::Verdict;
use results::{JudgedRun, Results};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Our results.
    ours: PathBuf,
    /// Results of the reference, of the same contract and size.
    #[arg(required = true)]
    theirs: Vec<PathBuf>,
    /// Results in f64 to judge both by. Without it the first of the reference's results judge ours.
    #[arg(long)]
    oracle: Option<PathBuf>,
    /// Keeps records and verdicts in this file, for `report`.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// A cell with what the oracle says about it.
struct Judged<'a> {
    run: &'a Run,
    cell: &'a Cell,
    verdict: Option<&'a Verdict>,
}

impl Judged<'_> {
    /// Whether its time counts.
    fn is_valid(&self) -> bool {
        self.cell.error.is_none() && self.verdict.is_none_or(Verdict::passes)
    }

    /// The median time, if it was timed.
    fn median(&self) -> Option<f64> {
        quartiles(&self.cell.samples_us).map(|q| q.median)
    }

    fn label(&self) -> String {
        format!("{} {}", self.run.engine, self.cell.mode)
    }

    fn is_of(&self, workload: Name, phase: Phase) -> bool {
        (self.cell.workload, self.cell.phase) == (workload, phase)
    }
}

/// A record and the folder its dumps are relative to.
struct Source {
    run: Run,
    folder: PathBuf,
}

impl Source {
    fn read(path: &Path) -> Result<Source, BenchError> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Source { run: Run::read(path)?, folder })
    }

    /// The dump of the first cell of a workload and phase that has one.
    fn dump(&self, workload: Name, phase: Phase) -> Option<PathBuf> {
        let same = |c: &&Cell| c.workload == workload && c.phase == phase;
        let dumps = self.run.cells.iter().filter(same).find_map(|c| c.dump.as_ref());
        dumps.map(|dump| self.folder.join(dump))
    }
}

/// Everything that is compared.
struct Comparison<'a> {
    contract: Precision,
    ours: Vec<Judged<'a>>,
    theirs: Vec<Judged<'a>>,
}

impl Comparison<'_> {
    /// The fastest valid cell of the reference.
    fn fastest(&self, workload: Name, phase: Phase) -> Option<(&Judged<'_>, f64)> {
        let valid = self.theirs.iter().filter(|j| j.is_of(workload, phase) && j.is_valid());
        valid.filter_map(|j| Some((j, j.median()?))).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// What a cell is called, with whatever is not as usual about it.
    fn label(&self, judged: &Judged<'_>) -> String {
        let mut text = judged.label();
        if judged.run.precision != self.contract {
            text += &format!(", {}", judged.run.precision.text());
        }
        if judged.verdict.is_none() {
            text += ", not judged";
        }
        text
    }
}

#[allow(clippy::print_stdout, reason = "a report for the terminal")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let ours = Source::read(&arguments.ours)?;
    let theirs: Vec<Source> =
        arguments.theirs.iter().map(|path| Source::read(path)).collect::<Result<_, _>>()?;
    for (other, path) in theirs.iter().zip(&arguments.theirs) {
        comparable(arguments, &ours.run, &theirs[0].run, (&other.run, path))?;
    }
    let oracle = arguments.oracle.as_deref().map(Source::read).transpose()?;
    if let (Some(oracle), Some(path)) = (&oracle, &arguments.oracle)
        && oracle.run.size != ours.run.size
    {
        let reason = format!("is {:?}, the results are {:?}", oracle.run.size, ours.run.size);
        return Err(BenchError::File { path: path.clone(), reason });
    }
    let our_verdicts = verdicts(&ours, oracle.as_ref().or(theirs.first()))?;
    let their_verdicts =
        theirs.iter().map(|source| verdicts(source, oracle.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let judged = |(source, verdicts): (Source, _)| JudgedRun { run: source.run, verdicts };
    let results = Results::new(
        judged((ours, our_verdicts)),
        theirs.into_iter().zip(their_verdicts).map(judged).collect(),
        oracle.map(|source| source.run),
    );
    println!("{}", tables::terminal(&results));
    arguments.out.as_deref().map_or(Ok(()), |path| results.write(path))
}

/// Whether a record of the reference may stand in the comparison: all of them are of one contract and our size. Ours is of
/// that contract or strict, which is at least as precise as fast; then only an oracle can judge both.
fn comparable(
    arguments: &Arguments,
    ours: &Run,
    first: &Run,
    (other, path): (&Run, &PathBuf),
) -> Result<(), BenchError> {
    let contract = other.precision;
    let stands_in = (ours.precision, contract) == (Precision::Strict, Precision::Fast);
    let same = ours.precision == contract || (stands_in && arguments.oracle.is_some());
    if same && contract == first.precision && other.size == ours.size {
        return Ok(());
    }
    let reason = format!(
        "is {} {:?}, {} is {} {:?}: sizes and contracts are not compared with each other, except ours, strict, with one \
         that is fast, by an oracle",
        contract.text(),
        other.size,
        arguments.ours.display(),
        ours.precision.text(),
        ours.size
    );
    Err(BenchError::File { path: path.clone(), reason })
}

/// What the oracle says about the cells of a record, as far as they have results.
fn verdicts(source: &Source, oracle: Option<&Source>) -> Result<Vec<Option<Verdict>>, BenchError> {
    let limits = Limits::of(source.run.precision);
    let one = |cell: &Cell| {
        let reference = oracle.and_then(|oracle| oracle.dump(cell.workload, cell.phase));
        match (&cell.dump, reference) {
            (Some(dump), Some(reference)) => {
                let found = safetensors::read(&source.folder.join(dump))?;
                Ok(Some(judge::judge(&found, &safetensors::read(&reference)?, limits)))
            }
            _ => Ok(None),
        }
    };
    source.run.cells.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Size;

    fn run(precision: Precision, size: Size) -> Run {
        let text = r#"{"format": 1, "engine": "e", "version": "1", "revision": null, "precision": "strict",
            "size": "full", "device": {"backend": "cpu", "name": "n", "driver": ""}, "host": null, "cells": []}"#;
        Run { precision, size, ..serde_json::from_str(text).unwrap() }
    }

    #[test]
    fn strict_programs_may_be_compared_with_fast_ones_by_an_oracle() {
        use Precision::{Fast, Strict};
        let judge = |ours, first, theirs: (Precision, Size), oracle: Option<&str>| {
            let [ours, first] = [ours, first].map(|p| run(p, Size::Full));
            let oracle = oracle.map(PathBuf::from);
            let arguments = Arguments { ours: "a.json".into(), theirs: Vec::new(), oracle, out: None };
            comparable(&arguments, &ours, &first, (&run(theirs.0, theirs.1), &PathBuf::from("b.json")))
        };
        assert!(judge(Strict, Strict, (Strict, Size::Full), None).is_ok());
        assert!(judge(Strict, Fast, (Fast, Size::Full), Some("o.json")).is_ok());
        for refused in [
            judge(Strict, Fast, (Fast, Size::Full), None),
            judge(Strict, Strict, (Fast, Size::Full), Some("o.json")),
            judge(Fast, Strict, (Strict, Size::Full), Some("o.json")),
            judge(Strict, Strict, (Strict, Size::Small), None),
        ] {
            let said = refused.unwrap_err().to_string();
            assert!(said.starts_with("b.json: is ") && said.contains("a.json is "), "{said}");
        }
    }
}

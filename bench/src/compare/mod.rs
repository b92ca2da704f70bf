//! `griffinfly-bench compare`: two engines' results as tables, each cell only as far as its gate allows.
//!
//! Input: records of both engines and of the oracle, a run in `f64`. Output: Markdown on the terminal. The fastest valid mode
//! of the reference is what we are compared with.

pub(crate) mod judge;
mod tables;

use crate::error::BenchError;
use crate::gate::Limits;
use crate::record::{Cell, Phase, Run, quartiles};
use crate::workload::Name;
use griffinfly::import::safetensors;
use judge::Verdict;
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
}

/// A cell with what the oracle says about it.
struct Judged<'a> {
    run: &'a Run,
    cell: &'a Cell,
    verdict: Option<Verdict>,
}

impl Judged<'_> {
    /// Whether its time counts.
    fn is_valid(&self) -> bool {
        self.cell.error.is_none() && self.verdict.as_ref().is_none_or(Verdict::passes)
    }

    /// The median time, if it was timed.
    fn median(&self) -> Option<f64> {
        quartiles(&self.cell.samples_us).map(|q| q.median)
    }

    fn label(&self) -> String {
        format!("{} {}", self.run.engine, self.cell.mode)
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
    ours: Vec<Judged<'a>>,
    theirs: Vec<Judged<'a>>,
}

impl Comparison<'_> {
    /// The fastest valid cell of the reference.
    fn fastest(&self, workload: Name, phase: Phase) -> Option<(&Judged<'_>, f64)> {
        let same = |j: &&Judged<'_>| j.cell.workload == workload && j.cell.phase == phase && j.is_valid();
        let timed = self.theirs.iter().filter(same).filter_map(|j| Some((j, j.median()?)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let ours = Source::read(&arguments.ours)?;
    let theirs: Vec<Source> =
        arguments.theirs.iter().map(|path| Source::read(path)).collect::<Result<_, _>>()?;
    for (other, path) in theirs.iter().zip(&arguments.theirs) {
        if (other.run.precision, other.run.size) != (ours.run.precision, ours.run.size) {
            let reason = format!(
                "is {:?} {:?}, {} is {:?} {:?}: contracts and sizes are not compared with each other",
                other.run.precision,
                other.run.size,
                arguments.ours.display(),
                ours.run.precision,
                ours.run.size
            );
            return Err(BenchError::File { path: path.clone(), reason });
        }
    }
    let oracle = arguments.oracle.as_deref().map(Source::read).transpose()?;
    if let (Some(oracle), Some(path)) = (&oracle, &arguments.oracle)
        && oracle.run.size != ours.run.size
    {
        let reason = format!("is {:?}, the results are {:?}", oracle.run.size, ours.run.size);
        return Err(BenchError::File { path: path.clone(), reason });
    }
    let judging = oracle.as_ref().or(theirs.first());
    let comparison = Comparison {
        ours: judged(&ours, judging)?,
        theirs: {
            let all = theirs.iter().map(|source| judged(source, oracle.as_ref()));
            all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
        },
    };
    let sources: Vec<&Source> = std::iter::once(&ours).chain(&theirs).chain(&oracle).collect();
    tables::print(&sources, &comparison, oracle.is_some());
    Ok(())
}

/// All cells of a record, those with results judged.
fn judged<'a>(source: &'a Source, oracle: Option<&Source>) -> Result<Vec<Judged<'a>>, BenchError> {
    let limits = Limits::of(source.run.precision);
    let one = |cell: &'a Cell| {
        let reference = oracle.and_then(|oracle| oracle.dump(cell.workload, cell.phase));
        let verdict = match (&cell.dump, reference) {
            (Some(dump), Some(reference)) => {
                let found = safetensors::read(&source.folder.join(dump))?;
                Some(judge::judge(&found, &safetensors::read(&reference)?, limits))
            }
            _ => None,
        };
        Ok(Judged { run: &source.run, cell, verdict })
    };
    source.run.cells.iter().map(one).collect()
}

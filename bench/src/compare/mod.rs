//! `griffinfly-bench compare`: two engines' results as tables, each cell only as far as its gate allows.
//!
//! Input: records of both engines and of the oracle, a run in `f64`. Output: Markdown on the terminal, and with `--out` a file
//! of everything, verdicts on every tensor included, from which [`report`] makes a page. The fastest valid mode of the
//! reference is what we are compared with.

pub(crate) mod judge;
pub(crate) mod report;
mod results;
mod tables;

use crate::error::BenchError;
use crate::gate::Limits;
use crate::record::{Cell, Phase, Run, quartiles};
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
    ours: Vec<Judged<'a>>,
    theirs: Vec<Judged<'a>>,
}

impl Comparison<'_> {
    /// The fastest valid cell of the reference.
    fn fastest(&self, workload: Name, phase: Phase) -> Option<(&Judged<'_>, f64)> {
        let valid = self.theirs.iter().filter(|j| j.is_of(workload, phase) && j.is_valid());
        valid.filter_map(|j| Some((j, j.median()?))).min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[allow(clippy::print_stdout, reason = "a report for the terminal")]
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

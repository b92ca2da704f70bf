//! `griffinfly-bench backends`: what a backend costs beside another one, on the same GPU.
//!
//! Input: records of `run` of one revision and contract, the first that of the backend which the others are measured by. Output: a
//! Markdown page with the runs, and per backend a table of the cells: times, their ratio, host work and dispatches.

use super::ratio::geometric_mean;
use super::tables::{captioned, hundredths, milliseconds, runs};
use crate::error::BenchError;
use crate::record::{Cell, Run, quartiles};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Records of `run`: the base, then the others.
    #[arg(required = true, num_args = 2..)]
    records: Vec<PathBuf>,
    /// Where the page goes.
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let read = |path: &PathBuf| Ok((path.clone(), Run::read(path)?));
    let records = arguments.records.iter().map(read).collect::<Result<Vec<_>, BenchError>>()?;
    let page = page(&records)?;
    std::fs::write(&arguments.out, page).map_err(BenchError::io(&arguments.out))
}

const INTRODUCTION: &str = "\
# Backends

Written by `griffinfly-bench backends` from records of `griffinfly-bench run` in `bench/results`: the workloads at full size on one
GPU, natively through Vulkan and through WebGPU. Times are wall-clock medians with quartiles, in milliseconds. What host work is
and how steps are timed: [bench/README.md](../../bench/README.md).
";

/// A record and its file.
type Kept = (PathBuf, Run);

/// The page of records that stand beside each other, the base first.
fn page(records: &[Kept]) -> Result<String, BenchError> {
    let mut text = INTRODUCTION.to_owned() + &runs(records.iter().map(|(_, run)| run));
    let Some((base, others)) = records.split_first() else { return Ok(text) };
    for other in others {
        same(base, other)?;
        text += &beside(&base.1, &other.1);
    }
    Ok(text)
}

/// That two records are of one revision, device, contract and size.
fn same((path, base): &Kept, (other_path, other): &Kept) -> Result<(), BenchError> {
    let facts = |run: &Run| {
        let revision = run.revision.clone().unwrap_or_else(|| "unknown".into());
        let size = format!("{:?}", run.size).to_lowercase();
        [revision, run.device.name.clone(), run.precision.text().to_owned(), size]
    };
    let names = ["the revision", "the device", "the contract", "the size"];
    for ((what, known), found) in names.into_iter().zip(facts(base)).zip(facts(other)) {
        if known != found {
            return Err(BenchError::Mixed {
                path: other_path.clone(),
                what,
                found,
                other: path.clone(),
                known,
            });
        }
    }
    Ok(())
}

/// The table of one backend beside the base.
fn beside(base: &Run, other: &Run) -> String {
    let mut ratios = Vec::new();
    let mut rows = Vec::new();
    for own in &other.cells {
        let same = |cell: &&Cell| (cell.workload, cell.phase) == (own.workload, own.phase);
        let Some(native) = base.cells.iter().find(same) else { continue };
        let median = |cell: &Cell| quartiles(&cell.samples_us).map(|q| q.median);
        let ratio = median(own).zip(median(native)).map(|(own, native)| own / native);
        ratios.extend(ratio);
        let dispatches = |cell: &Cell| {
            cell.program.as_ref().map_or_else(|| "-".into(), |program| program.dispatches.to_string())
        };
        rows.push(vec![
            own.workload.text().to_owned(),
            own.phase.text().to_owned(),
            milliseconds(&native.samples_us),
            milliseconds(&own.samples_us),
            hundredths(ratio),
            milliseconds(&native.host_us),
            milliseconds(&own.host_us),
            dispatches(native),
            dispatches(own),
        ]);
    }
    if let Some(mean) = geometric_mean(&ratios) {
        let name = format!("geometric mean of {}", ratios.len());
        rows.push([&name, "", "", "", &format!("{mean:.2}"), "", "", "", ""].map(String::from).to_vec());
    }
    let (a, b) = (base.device.backend.as_str(), other.device.backend.as_str());
    let header = [
        "workload",
        "phase",
        &format!("{a}, ms"),
        &format!("{b}, ms"),
        &format!("{b} / {a}"),
        &format!("of it host, {a}"),
        &format!("of it host, {b}"),
        &format!("dispatches, {a}"),
        &format!("dispatches, {b}"),
    ];
    let title = format!("{b} beside {a}, {}", base.precision.text());
    captioned(&title, "", &header, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn kept(name: &str) -> Kept {
        let path = format!("results/h200/backends/{name}.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        (path.clone(), Run::read(&path).unwrap())
    }

    #[test]
    fn the_page_is_that_of_the_records() {
        let records = [kept("vulkan"), kept("webgpu")];
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backends/README.md");
        let was = std::fs::read_to_string(path).unwrap();
        assert!(page(&records).unwrap() == was, "see the command in bench/README.md");
        for (path, run) in &records {
            assert_eq!(run.cells.len(), 15, "{path:?}");
            assert!(run.cells.iter().all(|cell| cell.error.is_none()), "{path:?}");
        }
    }

    #[test]
    fn records_that_do_not_stand_beside_each_other_are_refused() {
        let refused = |change: fn(&mut Run)| {
            let mut other = kept("webgpu");
            change(&mut other.1);
            page(&[kept("vulkan"), other]).unwrap_err().to_string()
        };
        assert!(refused(|run| run.revision = None).contains("the revision is unknown"));
        assert!(refused(|run| run.device.name = "another card".into()).contains("another card"));
        assert!(refused(|run| run.precision = crate::record::Precision::Fast).contains("it is strict"));
    }
}

//! `griffinfly-bench report`: the results page, from the files that `compare --out` and `plan` wrote.
//!
//! Input: any number of comparisons of one contract, size and device, no cell twice, and the record of `plan`. Output: a
//! Markdown page. Nothing on it is typed by hand but the column of a published system's memory, which says so.

use super::results::Results;
use super::tables::{disagreements, mebibytes, programs, runs, status, table, times};
use super::{Comparison, Judged};
use crate::error::BenchError;
use crate::plan;
use crate::record::{Cell, Phase, Run};
use crate::workload::Name;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of `compare --out`.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// The file of `plan`.
    #[arg(long)]
    plan: Option<PathBuf>,
    /// Where the page goes.
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let page = page(&arguments.results, arguments.plan.as_deref())?;
    std::fs::write(&arguments.out, page).map_err(BenchError::io(&arguments.out))
}

/// The page.
pub(crate) fn page(files: &[PathBuf], plan: Option<&Path>) -> Result<String, BenchError> {
    let mut all: Option<Results> = None;
    for path in files {
        let results = Results::read(path)?;
        match &mut all {
            None => all = Some(results),
            Some(all) => {
                all.join(results).map_err(|reason| BenchError::File { path: path.clone(), reason })?;
            }
        }
    }
    let plan = plan.map(Run::read).transpose()?;
    let Some(results) = all else { return Ok(String::new()) };
    let comparison = results.comparison();
    let parts = [
        INTRODUCTION.to_owned(),
        runs(&results),
        agreement(&comparison),
        disagreements(&comparison, NAMED),
        times(&comparison),
        plan.map(|plan| memory(&plan, &comparison)).unwrap_or_default(),
        programs(comparison.ours.iter()),
    ];
    Ok(parts.concat())
}

const INTRODUCTION: &str = "\
# Results

Written by `griffinfly-bench report` from the records in `bench/results`; protocol and gates are in
[bench/README.md](../../bench/README.md). Times are wall-clock medians with quartiles, in milliseconds.
";

/// Tensors named on the page per cell that does not pass.
const NAMED: usize = 2;

/// Both engines' errors side by side.
fn agreement(comparison: &Comparison<'_>) -> String {
    let row = |ours: &Judged<'_>| {
        let (workload, phase) = (ours.cell.workload, ours.cell.phase);
        let theirs = comparison.theirs.iter().find(|j| j.is_of(workload, phase) && j.verdict.is_some());
        let [(forward, worst, name), (their_forward, their_worst, their_name)] =
            [Some(ours), theirs].map(errors);
        vec![
            workload.text().into(),
            phase.text().into(),
            forward,
            their_forward,
            worst,
            their_worst,
            name,
            their_name,
            status(ours),
            theirs.map_or_else(|| "-".into(), |j| format!("{} ({})", status(j), j.cell.mode)),
        ]
    };
    let rows: Vec<_> = comparison.ours.iter().map(row).collect();
    let header = [
        "workload",
        "phase",
        "output or loss, ours",
        "theirs",
        "worst gradient, ours",
        "theirs",
        "which of ours",
        "which of theirs",
        "gate, ours",
        "theirs",
    ];
    table("Relative L2 errors against f64, every tensor in full", &header, &rows)
}

/// Forward error, that of the worst gradient and its name.
fn errors(judged: Option<&Judged<'_>>) -> (String, String, String) {
    let verdict = judged.and_then(|j| j.verdict);
    let number = |c: Option<&super::judge::Compared>| {
        c.map_or_else(|| "-".into(), |c| format!("{:.1e}", c.difference.relative()))
    };
    let worst = verdict.and_then(|v| v.backward.first());
    let name = worst.map_or_else(|| "-".into(), |c| c.name.clone());
    (number(verdict.and_then(|v| v.forward.first())), number(worst), name)
}

/// Physical bytes of Meganeura 0.3.0's plans in MiB, inference and training, as measured on an H200 with that release.
const MEGANEURA: [(Name, [u64; 2]); 5] = [
    (Name::SmolLm2, [742, 1561]),
    (Name::SmolVla, [563, 978]),
    (Name::UNet, [82, 108]),
    (Name::ResNet50, [211, 604]),
    (Name::Whisper, [63, 334]),
];

/// Plans of both memory modes beside what others take.
fn memory(plan: &Run, comparison: &Comparison<'_>) -> String {
    let find = |workload, phase, mode: &str| -> Option<&Cell> {
        plan.cells.iter().find(|c| (c.workload, c.phase, c.mode.as_str()) == (workload, phase, mode))
    };
    let mut rows = Vec::new();
    for (workload, published) in MEGANEURA {
        for (phase, published) in [Phase::Inference, Phase::Train].into_iter().zip(published) {
            let bytes = |mode| {
                let memory = find(workload, phase, mode).and_then(|c| c.memory.as_ref());
                [memory.and_then(|m| m.physical), memory.and_then(|m| m.lower_bound)].map(mebibytes)
            };
            let ([physical, bound], [fast, _]) = (bytes(plan::MEMORY_FIRST), bytes(plan::SPEED_FIRST));
            let peaks = comparison.theirs.iter().filter(|j| j.is_of(workload, phase));
            let peak = peaks.filter_map(|j| j.cell.memory.as_ref()?.peak_allocated).min();
            let names = [workload.text(), phase.text()].map(String::from);
            let numbers = [physical, bound, fast, mebibytes(peak), published.to_string()];
            rows.push(names.into_iter().chain(numbers).collect());
        }
    }
    let header = [
        "workload",
        "phase",
        "plan, memory first",
        "its lower bound",
        "plan, speed first",
        "PyTorch's peak, best mode",
        "Meganeura 0.3.0's plan",
    ];
    let title = format!("Memory in MiB, planned for {} ({})", plan.device.name, plan.device.backend);
    table(&title, &header, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("results/h200").join(name)
    }

    #[test]
    fn the_page_is_that_of_the_records() {
        let files = Name::ALL.map(|name| kept(&format!("{}.json", name.text())));
        let page = page(&files, Some(&kept("plan.json"))).unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results/README.md");
        assert_eq!(page, std::fs::read_to_string(path).unwrap(), "see the command in bench/README.md");
    }

    #[test]
    fn a_cell_counts_once() {
        let file = kept("unet.json");
        let error = page(&[file.clone(), file], None).unwrap_err().to_string();
        assert!(error.contains("has unet inference a second time"), "{error}");
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        assert!(page(&[kept("plan.json")], None).unwrap_err().to_string().contains("no record of results"));
        assert!(page(&[kept("none.json")], None).is_err());
    }
}

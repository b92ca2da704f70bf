//! `griffinfly-bench report`: the results page and its chart, from the files that `compare --out`, `plan` and others wrote.
//!
//! Input: any number of comparisons, of several devices and contracts, records of the reference's fast contract, records of
//! `plan` and files of micro-benchmarks. Output: a Markdown page, and beside it a chart of the ratios as SVG. Sections whose
//! data are in no file are left out. Nothing on the page is typed by hand but the column of a published system's memory,
//! which says so.

mod book;
mod chart;
mod checks;
mod errors;
#[cfg(test)]
mod made_up;
mod micro;
mod planned;
mod portability;
mod sections;
mod targets;

use super::Comparison;
use super::tables::{disagreements, runs, times_of};
use crate::error::BenchError;
use crate::record::{Phase, Precision};
use book::{Book, CONTRACTS, Platform, Text};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of `compare --out`, of one or more devices; records of PyTorch's fast contract.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Files of `plan`.
    #[arg(long)]
    plan: Vec<PathBuf>,
    /// Files of micro-benchmarks.
    #[arg(long)]
    micro: Vec<PathBuf>,
    /// Where the page goes; the chart goes beside it.
    #[arg(long)]
    out: PathBuf,
}

/// What is written.
struct Page {
    text: String,
    /// None where no cell has a ratio.
    chart: Option<String>,
}

/// The name of the chart's file.
const CHART: &str = "ratios.svg";

pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let book = Book::read(&texts(&arguments.results)?, &texts(&arguments.plan)?, &texts(&arguments.micro)?)?;
    let page = page(&book);
    std::fs::write(&arguments.out, page.text).map_err(BenchError::io(&arguments.out))?;
    let path = arguments.out.with_file_name(CHART);
    page.chart.map_or(Ok(()), |chart| std::fs::write(&path, chart).map_err(BenchError::io(&path)))
}

fn texts(paths: &[PathBuf]) -> Result<Vec<Text>, BenchError> {
    let one = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
        Ok(Text { path: path.clone(), text })
    };
    paths.iter().map(one).collect()
}

const INTRODUCTION: &str = "\
# Results

Written by `griffinfly-bench report` from the records in `bench/results`; protocol and gates are in
[bench/README.md](../../bench/README.md). Times are wall-clock medians with quartiles, in milliseconds.
";

/// Tensors named on the page per cell that does not pass.
const NAMED: usize = 2;

/// Comparisons of one contract on one device, with what its tables are called.
struct Part<'a> {
    platform: &'a Platform,
    contract: Precision,
    /// What counts.
    comparison: Comparison<'a>,
    /// What the files of the contract hold.
    own: Comparison<'a>,
    /// Whether the page has several devices.
    several: bool,
}

impl Part<'_> {
    fn title(&self, what: &str) -> String {
        let device = if self.several { format!(", {}", self.platform.text()) } else { String::new() };
        format!("{what}, {}{device}", self.contract.text())
    }
}

fn page(book: &Book) -> Page {
    let several = book.platforms.len() > 1;
    let mut parts: Vec<Part<'_>> = Vec::new();
    for platform in &book.platforms {
        for contract in CONTRACTS {
            if let (Some(comparison), Some(own)) = (platform.comparison(contract), platform.own(contract)) {
                parts.push(Part { platform, contract, comparison, own, several });
            }
        }
    }
    let chart = chart::draw(&book.platforms);
    let each = |section: fn(&Part<'_>) -> String| parts.iter().map(section).collect::<String>();
    let sections = [
        INTRODUCTION.to_owned(),
        runs(book.runs()),
        sections::means(&parts, chart.is_some().then_some(CHART)),
        each(errors::agreement),
        each(|part| disagreements(&part.title("Disagreements, worst first"), &part.own, NAMED)),
        each(times),
        portability(&book.platforms),
        each(sections::preparation),
        each(targets::beside),
        book.plans.iter().map(|plan| planned::memory(plan, &book.platforms)).collect(),
        each(sections::memory),
        each(sections::programs),
        book.micro.iter().map(crate::micro::record::Micro::table).collect(),
    ];
    Page { text: sections.concat(), chart }
}

/// One table per phase; those of the fast contract say what stands in them.
fn times(part: &Part<'_>) -> String {
    let table = |phase: Phase| {
        let title = part.title(&format!("Time: {}", phase.text()));
        let caption = if part.contract == Precision::Fast { FAST } else { "" };
        times_of((&title, caption), &part.comparison, phase)
    };
    Phase::ALL.map(table).concat()
}

const FAST: &str = "\
PyTorch may round the inputs of products to TF32. A strict program is allowed on either side, since it is at least as
precise; it is judged by the strict gates, and PyTorch's are named as such. What no oracle judged is named so too.";

/// The metric, one table per contract.
fn portability(platforms: &[Platform]) -> String {
    // One device may be there through two backends.
    let is_twice = |name: &str| platforms.iter().filter(|p| p.name == name).count() > 1;
    let labels: Vec<String> =
        platforms.iter().map(|p| if is_twice(&p.name) { p.text() } else { p.name.clone() }).collect();
    let table = |contract: Precision| {
        let comparisons: Vec<(&str, Comparison<'_>)> = labels
            .iter()
            .zip(platforms)
            .filter_map(|(l, p)| Some((l.as_str(), p.comparison(contract)?)))
            .collect();
        portability::table(&format!("Performance portability, {}", contract.text()), &comparisons)
    };
    CONTRACTS.map(table).concat()
}

#[cfg(test)]
mod tests;

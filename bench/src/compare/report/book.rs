//! All records of a page, checked and sorted by device.
//!
//! Input: the texts of files of `compare --out`, of fast records of the reference as `bench/pytorch/run.py` writes them, of
//! `plan`, and of micro-benchmarks. Output: a [`Book`], or which file and cell do not fit. All records of ours are of one
//! revision and size; a device has one driver; no cell stands twice.

use super::checks::{Seen, Shared, check_run};
use crate::compare::results::{JudgedRun, Results, cells};
use crate::compare::{Comparison, Judged};
use crate::error::BenchError;
use crate::json;
use crate::micro::record::Micro;
use crate::record::{DeviceRecord, Precision, Run};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

/// A file and what it says.
pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The contracts that have tables, in their order.
pub(super) const CONTRACTS: [Precision; 2] = [Precision::Strict, Precision::Fast];

/// Everything that a page is made of.
#[derive(Default)]
pub(super) struct Book {
    pub(super) platforms: Vec<Platform>,
    pub(super) plans: Vec<Run>,
    pub(super) micro: Vec<Micro>,
}

/// What was compared on one device.
pub(super) struct Platform {
    pub(super) name: String,
    backend: String,
    driver: Shared,
    /// The device as the reference calls it.
    theirs: Shared,
    strict: Group,
    fast: Group,
}

/// Comparisons of one contract.
#[derive(Default)]
struct Group {
    ours: Vec<JudgedRun>,
    theirs: Vec<JudgedRun>,
    oracles: Vec<Run>,
}

/// What all records share, and the cells there are so far.
#[derive(Default)]
struct Checks {
    revision: Shared,
    size: Shared,
    seen: Seen,
}

/// Which of the two kinds of files one is: comparisons have `ours`, records have `cells`.
#[derive(Deserialize)]
struct Kind {
    ours: Option<IgnoredAny>,
    cells: Option<IgnoredAny>,
}

impl Book {
    pub(super) fn read(results: &[Text], plans: &[Text], micro: &[Text]) -> Result<Book, BenchError> {
        let (mut book, mut checks) = (Book::default(), Checks::default());
        let mut references = Vec::new();
        for file in results {
            match json::parse(&file.path, &file.text)? {
                Kind { ours: None, cells: Some(_) } => references.push(file),
                _ => book.add(&file.path, Results::parse(&file.path, &file.text)?, &mut checks)?,
            }
        }
        // Records of the reference alone belong to devices that comparisons told of.
        for file in references {
            book.add_reference(&file.path, json::parse(&file.path, &file.text)?, &mut checks)?;
        }
        for file in plans {
            let plan: Run = json::parse(&file.path, &file.text)?;
            checks.ours(&file.path, &plan)?;
            checks.cells(&file.path, &plan, ("planned", &named(&plan.device)), true)?;
            book.plans.push(plan);
        }
        for file in micro {
            let micro = Micro::parse(&file.path, &file.text)?;
            checks.revision.agree(&file.path, "our revision", &micro.revision)?;
            book.micro.push(micro);
        }
        Ok(book)
    }

    fn add(&mut self, path: &Path, results: Results, checks: &mut Checks) -> Result<(), BenchError> {
        let contract = results.contract();
        let file = |reason: String| BenchError::File { path: path.to_owned(), reason };
        if contract == Precision::F64 {
            return Err(file("compares f64, which has no tables".into()));
        }
        let device = &results.ours[0].run.device;
        let at = self.platform(device);
        let place = named(device);
        let platform = &mut self.platforms[at];
        for ours in &results.ours {
            if ours.run.precision != contract && ours.run.precision != Precision::Strict {
                let (ours, theirs) = (ours.run.precision.text(), contract.text());
                return Err(file(format!("compares ours, {ours}, with theirs, {theirs}")));
            }
            if named(&ours.run.device) != place {
                return Err(file(format!("has results of ours of {place} and {}", named(&ours.run.device))));
            }
            platform.driver.agree(path, "the driver", &ours.run.device.driver)?;
            checks.ours(path, &ours.run)?;
            checks.cells(path, &ours.run, (contract.text(), &place), false)?;
        }
        for theirs in &results.theirs {
            if theirs.run.precision != contract {
                return Err(file(format!("mixes {} and {}", contract.text(), theirs.run.precision.text())));
            }
            platform.add_reference(path, &theirs.run, checks)?;
        }
        results.oracles.iter().try_for_each(|oracle| check_run(path, oracle))?;
        let group = platform.group_mut(contract);
        group.ours.extend(results.ours);
        group.theirs.extend(results.theirs);
        group.oracles.extend(results.oracles);
        Ok(())
    }

    /// Adds a record of the reference that nothing judged.
    fn add_reference(&mut self, path: &Path, run: Run, checks: &mut Checks) -> Result<(), BenchError> {
        let file = |reason: String| BenchError::File { path: path.to_owned(), reason };
        if run.engine == "griffinfly" || run.precision != Precision::Fast {
            let what = format!("{} {}", run.engine, run.precision.text());
            return Err(file(format!("is a record of {what} without verdicts: `compare --out` adds them")));
        }
        let name = &run.device.name;
        let known = self.platforms.iter_mut().find(|p| p.theirs.is(name) || p.name == *name);
        let platform = known.ok_or_else(|| file(format!("is of {name}, of which there is no comparison")))?;
        platform.add_reference(path, &run, checks)?;
        platform.fast.theirs.push(JudgedRun::unjudged(run));
        Ok(())
    }

    fn platform(&mut self, device: &DeviceRecord) -> usize {
        let same = |p: &Platform| (&p.name, &p.backend) == (&device.name, &device.backend);
        self.platforms.iter().position(same).unwrap_or_else(|| {
            self.platforms.push(Platform {
                name: device.name.clone(),
                backend: device.backend.clone(),
                driver: Shared::default(),
                theirs: Shared::default(),
                strict: Group::default(),
                fast: Group::default(),
            });
            self.platforms.len() - 1
        })
    }

    /// All runs that were compared: ours, theirs, oracles.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        fn all<'a>(
            platform: &'a Platform,
            pick: fn(&'a Group) -> Vec<&'a Run>,
        ) -> impl Iterator<Item = &'a Run> {
            [&platform.strict, &platform.fast].into_iter().flat_map(pick)
        }
        self.platforms.iter().flat_map(|platform| {
            let ours = all(platform, |group| group.ours.iter().map(|j| &j.run).collect());
            let theirs = all(platform, |group| group.theirs.iter().map(|j| &j.run).collect());
            ours.chain(theirs).chain(all(platform, |group| group.oracles.iter().collect()))
        })
    }
}

impl Platform {
    /// Device and backend.
    pub(super) fn text(&self) -> String {
        format!("{} ({})", self.name, self.backend)
    }

    fn group(&self, contract: Precision) -> &Group {
        if contract == Precision::Fast { &self.fast } else { &self.strict }
    }

    fn group_mut(&mut self, contract: Precision) -> &mut Group {
        if contract == Precision::Fast { &mut self.fast } else { &mut self.strict }
    }

    fn add_reference(&mut self, path: &Path, run: &Run, checks: &mut Checks) -> Result<(), BenchError> {
        self.theirs.agree(path, "the reference's device", &run.device.name)?;
        checks.size.agree(path, "the size", &format!("{:?}", run.size).to_lowercase())?;
        checks.cells(path, run, (run.precision.text(), &self.text()), true)
    }

    /// What the files of a contract compare, and nothing else; none where there are none.
    pub(super) fn own(&self, contract: Precision) -> Option<Comparison<'_>> {
        let group = self.group(contract);
        let mut comparison = Comparison { contract, ours: cells(&group.ours), theirs: cells(&group.theirs) };
        comparison.ours.sort_by_key(|j| (j.cell.workload, j.cell.phase));
        let is_empty = group.ours.is_empty() && group.theirs.is_empty();
        (!is_empty).then_some(comparison)
    }

    /// What counts under a contract: in cells of the fast one, strict programs too; of ours only where it has no fast one.
    pub(super) fn comparison(&self, contract: Precision) -> Option<Comparison<'_>> {
        let mut comparison = self.own(contract)?;
        if contract == Precision::Fast {
            let all = comparison.ours.iter().chain(&comparison.theirs);
            let measured: Vec<_> = all.map(|j| (j.cell.workload, j.cell.phase)).collect();
            let has = |j: &Judged<'_>| measured.contains(&(j.cell.workload, j.cell.phase));
            comparison.ours.extend(cells(&self.strict.ours).into_iter().filter(has));
            comparison.theirs.extend(cells(&self.strict.theirs).into_iter().filter(has));
            // Stable: of two strict ones of a cell, that of the fast comparison stays.
            let order = |j: &Judged<'_>| (j.cell.workload, j.cell.phase, j.run.precision != Precision::Fast);
            comparison.ours.sort_by_key(order);
            comparison.ours.dedup_by(|b, a| a.is_of(b.cell.workload, b.cell.phase));
        }
        Some(comparison)
    }
}

impl Checks {
    /// What records of ours share.
    fn ours(&mut self, path: &Path, run: &Run) -> Result<(), BenchError> {
        self.revision.agree(path, "our revision", run.revision.as_deref().unwrap_or("unknown"))?;
        self.size.agree(path, "the size", &format!("{:?}", run.size).to_lowercase())
    }

    /// Cells that are right, each once in its `section` of the page; modes tell cells apart only where there may be several.
    fn cells(
        &mut self,
        path: &Path,
        run: &Run,
        (section, place): (&str, &str),
        modes: bool,
    ) -> Result<(), BenchError> {
        check_run(path, run)?;
        for cell in &run.cells {
            let name = format!("{} {}", cell.workload.text(), cell.phase.text());
            let mode = if modes { cell.mode.as_str() } else { "" };
            let key = format!("{section}: {} {} {name} {mode} {place}", run.engine, run.precision.text());
            self.seen.once(path, &format!("{name} {}", cell.mode), key)?;
        }
        Ok(())
    }
}

/// A device of ours as errors call it.
fn named(device: &DeviceRecord) -> String {
    format!("{} ({})", device.name, device.backend)
}

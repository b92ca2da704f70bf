//! What makes a record unfit for a page: values that cannot be, cells that stand twice, records that do not go together.

use crate::error::BenchError;
use crate::json::check_format;
use crate::record::{Cell, Run};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A property that all records share, with the file that first said it.
#[derive(Default)]
pub(super) struct Shared(Option<(String, PathBuf)>);

impl Shared {
    /// Whether it is known to be this.
    pub(super) fn is(&self, value: &str) -> bool {
        self.0.as_ref().is_some_and(|(known, _)| known == value)
    }

    /// Takes the property from a file, or finds it different there.
    pub(super) fn agree(&mut self, path: &Path, what: &'static str, value: &str) -> Result<(), BenchError> {
        let (known, other) = self.0.get_or_insert_with(|| (value.to_owned(), path.to_owned()));
        if known == value {
            return Ok(());
        }
        let (known, other) = (known.clone(), other.clone());
        Err(BenchError::Mixed { path: path.to_owned(), what, found: value.to_owned(), other, known })
    }
}

/// Keys of cells, with the files that they stand in.
#[derive(Default)]
pub(super) struct Seen(HashMap<String, PathBuf>);

impl Seen {
    pub(super) fn once(&mut self, path: &Path, cell: &str, key: String) -> Result<(), BenchError> {
        match self.0.insert(key, path.to_owned()) {
            None => Ok(()),
            Some(other) => Err(fault(path, cell, format!("stands in {} already", other.display()))),
        }
    }
}

/// An error about a cell.
pub(super) fn fault(path: &Path, cell: &str, reason: String) -> BenchError {
    BenchError::Cell { path: path.to_owned(), cell: cell.to_owned(), reason }
}

/// A time that can be.
pub(super) fn is_time(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

/// Formats and times of all cells.
pub(super) fn check_run(path: &Path, run: &Run) -> Result<(), BenchError> {
    check_format(path, run.format)?;
    for cell in &run.cells {
        if let Some(reason) = wrong(cell) {
            let name = format!("{} {} {}", cell.workload.text(), cell.phase.text(), cell.mode);
            return Err(fault(path, &name, reason));
        }
    }
    Ok(())
}

fn wrong(cell: &Cell) -> Option<String> {
    if let Some(x) = cell.samples_us.iter().find(|x| !is_time(**x)) {
        return Some(format!("a sample takes {x} us"));
    }
    if let Some(x) = cell.host_us.iter().find(|x| !x.is_finite() || **x < 0.0) {
        return Some(format!("a sample takes {x} us of the host"));
    }
    let (samples, host) = (cell.samples_us.len(), cell.host_us.len());
    if host != 0 && host != samples {
        return Some(format!("{samples} samples have {host} times of the host"));
    }
    let preparations = [cell.preparation_s, cell.preparation_again_s];
    let preparation = preparations.into_iter().flatten().find(|x| !is_time(*x))?;
    Some(format!("preparation takes {preparation} s"))
}

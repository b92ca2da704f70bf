//! What can go wrong with a benchmark. It is a tool: errors are texts with their cause.

use std::path::{Path, PathBuf};

/// A benchmark that did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The library refused something.
    #[error(transparent)]
    Library(#[from] griffinfly::Error),
    /// A weight file cannot be read or written.
    #[error(transparent)]
    Import(#[from] griffinfly::import::ImportError),
    /// Another file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// A record that means nothing.
    #[error("{} is no record of results: {source}{place}", path.display())]
    Record { path: PathBuf, source: serde_json::Error, place: String },
    /// A file that is not what it should be.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A cell of a record, or a row of a file of micro-benchmarks, that cannot be.
    #[error("{}: {cell}: {reason}", path.display())]
    Cell { path: PathBuf, cell: String, reason: String },
    /// Records that do not belong on one page.
    #[error("{}: {what} is {found}, in {} it is {known}", path.display(), other.display())]
    Mixed { path: PathBuf, what: &'static str, found: String, other: PathBuf, known: String },
    /// Weights that are not those of the workload: everything that does not fit.
    #[error("{} does not fit: {}", path.display(), faults.join("; "))]
    Weights { path: PathBuf, faults: Vec<String> },
}

impl BenchError {
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> BenchError + '_ {
        |source| BenchError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn record(path: &Path) -> impl Fn(serde_json::Error) -> BenchError + '_ {
        |source| BenchError::Record { path: path.to_owned(), source, place: String::new() }
    }
}

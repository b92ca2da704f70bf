//! What can go wrong with a file.
//!
//! Each error names the path where there is one; faults of a format are their own type, one variant per way in which
//! a file can lie.

use std::io;
use std::path::{Path, PathBuf};

use crate::safetensors::SafetensorsFault;

/// An import or export that did not happen. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The path cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path names a directory, a device or another thing that is not a regular file.
    #[error("{} is not a regular file: give the path of a file", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file cannot be written; what was there before is still there.
    #[error("cannot write {}: failed to {step}: {source}", path.display())]
    Unwritable {
        /// The file asked for.
        path: PathBuf,
        /// The step that failed, such as `create a temporary file beside it`.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The content is not a valid safetensors file.
    #[error("{}: {fault}", origin(path.as_deref()))]
    Safetensors {
        /// The file, or none for bytes in memory.
        path: Option<PathBuf>,
        /// What is wrong with it.
        #[source]
        fault: SafetensorsFault,
    },
}

fn origin(path: Option<&Path>) -> String {
    path.map_or_else(|| "safetensors bytes in memory".to_owned(), |path| path.display().to_string())
}

//! Replaces a file as a whole or not at all.
//!
//! Input: a path and a function that fills a fresh file. The content goes to a temporary file in the same directory,
//! is flushed to disk and renamed over the path, and then the directory is flushed, so that after a crash the path
//! holds the old content or the new one. On any failure the temporary file is removed and the old file is untouched.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::ImportError;

/// How many names a temporary file may try: more than this many left-overs of one process means something else.
const NAMES: u32 = 1000;

/// Puts what `fill` writes at `path`.
///
/// # Errors
/// No such directory, no permission, something at the path that is no file, a full disk; then the path holds what it held.
pub fn replace(path: &Path, fill: &mut dyn FnMut(&mut File) -> io::Result<()>) -> Result<(), ImportError> {
    let failed = |step| move |source| ImportError::Unwritable { path: path.to_owned(), step, source };
    let before = previous(path)?;
    let (temporary, mut file) = create_beside(path)?;
    let guard = RemoveOnDrop { path: &temporary };
    fill(&mut file).map_err(failed("write its content"))?;
    if let Some(before) = before {
        file.set_permissions(before.permissions()).map_err(failed("keep its permissions"))?;
    }
    file.sync_all().map_err(failed("flush its content to disk"))?;
    drop(file);
    fs::rename(&temporary, path).map_err(failed("rename the temporary file over it"))?;
    std::mem::forget(guard);
    sync_directory(directory(path)).map_err(failed("flush its directory to disk"))
}

/// Fails where [`replace`] would for the path alone: no such directory, no permission, something else in its place.
pub(crate) fn probe(path: &Path) -> Result<(), ImportError> {
    previous(path)?;
    let (temporary, _) = create_beside(path)?;
    drop(RemoveOnDrop { path: &temporary });
    Ok(())
}

/// What is at the path now. Devices and directories are refused: renaming over `/dev/null` would replace it.
fn previous(path: &Path) -> Result<Option<fs::Metadata>, ImportError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(_) => Err(ImportError::NotAFile { path: path.to_owned() }),
        Err(_) => Ok(None),
    }
}

/// The directory the path lies in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file that did not exist, in the same directory and so on the same file system.
fn create_beside(path: &Path) -> Result<(PathBuf, File), ImportError> {
    let name = path.file_name().ok_or_else(|| ImportError::NotAFile { path: path.to_owned() })?;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES {
        let mut temporary_name = std::ffi::OsString::from(".");
        temporary_name.push(name);
        temporary_name.push(format!(".{}-{number}.tmp", std::process::id()));
        let temporary = directory(path).join(temporary_name);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) => last = error,
        }
        if last.kind() != io::ErrorKind::AlreadyExists {
            break;
        }
    }
    let step = "create a temporary file beside it";
    Err(ImportError::Unwritable { path: path.to_owned(), step, source: last })
}

/// Removes the temporary file unless it was renamed away.
struct RemoveOnDrop<'a> {
    path: &'a Path,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        // The first error is the one to report.
        let _ = fs::remove_file(self.path);
    }
}

/// Makes the rename itself durable. Some file systems cannot flush a directory and say so: not a failure.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

/// Directories cannot be opened as files here; the rename is as durable as the file system makes it.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;

//! The files of the repository as text, for the tasks that read them.
//!
//! Input: a directory. Output: every text file below it, tracked or not, but no build output and nothing hidden apart
//! from `.ci` and `.cargo`. Rust files also come as *code*, in which comments and literals are blank, and know which of
//! their lines are tests.

mod blank;
mod test_code;

use std::fs;
use std::path::{Path, PathBuf};

/// The kinds of files that are read.
const KINDS: [&str; 12] = ["rs", "md", "toml", "sh", "py", "yml", "yaml", "wgsl", "js", "mjs", "html", "css"];

/// Hidden directories that belong to the repository.
const HIDDEN: [&str; 2] = [".ci", ".cargo"];

/// A text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
    /// A Rust file with comments and literals blanked, every line and column where it was; empty for other files.
    pub(crate) code: String,
    /// The same without tests; empty where the whole file is tests.
    pub(crate) library_code: String,
}

impl Source {
    /// A file of this text.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if is_rust(path) { blank::comments_and_literals(text) } else { String::new() };
        let library_code =
            if test_code::is_test_path(path) { String::new() } else { test_code::without_tests(&code) };
        Source { path: path.to_owned(), text: text.to_owned(), code, library_code }
    }

    /// Whether this is a Rust file.
    pub(crate) fn is_rust(&self) -> bool {
        is_rust(&self.path)
    }

    /// The crate of a file below `crates/*/src/`.
    pub(crate) fn library(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src/").then_some(name)
    }
}

/// The number of the line, from 1, of a byte position in a text.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    text.bytes().take(position).filter(|&byte| byte == b'\n').count() + 1
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

/// Reads every file below the root.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    walk(root, &mut paths)?;
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        sources.push(Source::new(&relative(root, &path), &text));
    }
    test_code::mark_test_modules(&mut sources);
    Ok(sources)
}

fn relative(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = inner.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    // Cargo marks its build output so, wherever it is.
    if directory.join("CACHEDIR.TAG").exists() {
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().map_err(wrong)?;
        let is_hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
        // What npm installs is not ours.
        if is_hidden || name == "node_modules" {
            continue;
        }
        if kind.is_dir() {
            walk(&path, paths)?;
        } else if kind.is_file() && is_text(&path) {
            paths.push(path);
        }
    }
    Ok(())
}

/// Files of a known kind, and scripts of `.ci`.
fn is_text(path: &Path) -> bool {
    let in_ci = path.parent().and_then(Path::file_name).is_some_and(|name| name == ".ci");
    let kind = path.extension().map(|kind| kind.to_string_lossy());
    in_ci || kind.is_some_and(|kind| KINDS.contains(&kind.as_ref()))
}

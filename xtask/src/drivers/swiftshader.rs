//! SwiftShader out of Debian's Chromium, unpacked below the target directory and never installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::manifest;
use crate::apt;
use crate::workspace;

/// The package that holds the driver.
pub(super) const PACKAGE: &str = "chromium-common";

const LIBRARY: &str = "libvk_swiftshader.so";
const MANIFEST: &str = "vk_swiftshader_icd.json";

/// The manifest, if an earlier run unpacked it.
pub(super) fn unpacked() -> Option<PathBuf> {
    let manifest = home().join(MANIFEST);
    manifest::check(&manifest).is_ok().then_some(manifest)
}

/// Downloads and unpacks it; returns the manifest.
pub(super) fn fetch() -> Result<PathBuf, String> {
    let work = workspace::target().join("swiftshader-download");
    // What an interrupted run left.
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).map_err(|error| at(&work, error))?;
    let result = fetch_through(&work);
    let _ = fs::remove_dir_all(&work);
    result
}

fn fetch_through(work: &Path) -> Result<PathBuf, String> {
    apt::download(PACKAGE, work)?;
    let package = find(work, &|name| name.ends_with(".deb"))
        .ok_or_else(|| format!("apt-get download {PACKAGE} left no package file"))?;
    let tree = work.join("tree");
    fs::create_dir_all(&tree).map_err(|error| at(&tree, error))?;
    apt::unpack(&package, &tree)?;
    let library =
        find(&tree, &|name| name == LIBRARY).ok_or_else(|| format!("{PACKAGE} does not hold {LIBRARY}"))?;
    settle(&library, find(&tree, &|name| name == MANIFEST).as_deref())
}

/// Puts library and manifest side by side in their place; writes our own manifest where theirs leads nowhere.
fn settle(library: &Path, theirs: Option<&Path>) -> Result<PathBuf, String> {
    let home = home();
    fs::create_dir_all(&home).map_err(|error| at(&home, error))?;
    let place = home.join(LIBRARY);
    fs::copy(library, &place).map_err(|error| at(&place, error))?;
    let manifest = home.join(MANIFEST);
    if let Some(theirs) = theirs {
        fs::copy(theirs, &manifest).map_err(|error| at(&manifest, error))?;
    }
    if manifest::check(&manifest).is_err() {
        fs::write(&manifest, manifest::for_library(LIBRARY)).map_err(|error| at(&manifest, error))?;
    }
    manifest::check(&manifest)?;
    Ok(manifest)
}

fn home() -> PathBuf {
    workspace::target().join("swiftshader")
}

/// The first file below a directory whose name is wanted.
fn find(directory: &Path, wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(directory).ok()?.flatten().collect();
    let here = entries.iter().find(|entry| wanted(&entry.file_name().to_string_lossy()));
    here.map(|entry| entry.path()).or_else(|| {
        let is_directory = |entry: &&fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        entries.iter().filter(is_directory).find_map(|entry| find(&entry.path(), wanted))
    })
}

fn at(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

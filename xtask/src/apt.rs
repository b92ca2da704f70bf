//! Debian's package tools, and whether programs are there.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether packages can be installed: apt-get is there and we are root.
pub(crate) fn can_install() -> bool {
    is_root() && runs("apt-get")
}

/// Whether packages can be downloaded and unpacked, for which root is not needed.
pub(crate) fn can_download() -> bool {
    runs("apt-get") && runs("dpkg")
}

/// Installs packages.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    update()?;
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "--no-install-recommends"]).args(packages);
    run(command.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Downloads a package into a directory. A fresh machine has no package lists, an old one lists of packages that are
/// gone: where the download fails and we are root, it is tried again with new lists.
pub(crate) fn download(package: &str, directory: &Path) -> Result<(), String> {
    let once = || run(Command::new("apt-get").args(["download", package]).current_dir(directory));
    match once() {
        Err(_) if is_root() => update().and_then(|()| once()),
        result => result,
    }
}

/// Unpacks a package file into a directory, without installing it.
pub(crate) fn unpack(package: &Path, directory: &Path) -> Result<(), String> {
    run(Command::new("dpkg").args([OsStr::new("-x"), package.as_os_str(), directory.as_os_str()]))
}

fn update() -> Result<(), String> {
    run(Command::new("apt-get").arg("update"))
}

fn run(command: &mut Command) -> Result<(), String> {
    println!("{command:?}");
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("cannot start {command:?}: {error}")),
    }
}

/// Whether a program is there.
pub(crate) fn runs(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

//! The Vulkan drivers that device tests run on: Mesa's lavapipe and SwiftShader.
//!
//! Output: the drivers found, after installing what is missing where that is allowed. What cannot be had is reported
//! with what to do about it, and the tests that need it do not run.

mod manifest;
mod swiftshader;

use std::path::{Path, PathBuf};

use crate::apt;
use crate::report::{Failure, Outcome, Report};

/// What lavapipe, the Vulkan loader and the validation layer come in.
const PACKAGES: [&str; 3] = ["mesa-vulkan-drivers", "libvulkan1", "vulkan-validationlayers"];

/// Where systems keep the manifests of drivers and layers.
const SYSTEM: [&str; 3] = ["/usr/share/vulkan", "/etc/vulkan", "/usr/local/share/vulkan"];

/// Variables that name a driver's manifest elsewhere.
const LAVAPIPE_VARIABLE: &str = "GRIFFINFLY_LAVAPIPE_ICD";
const SWIFTSHADER_VARIABLE: &str = "GRIFFINFLY_SWIFTSHADER_ICD";

/// A driver to test on.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) name: &'static str,
    /// The JSON file that leads the Vulkan loader to it.
    pub(crate) manifest: PathBuf,
}

/// What device tests can use.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) drivers: Vec<Driver>,
    /// Whether the validation layer is there.
    pub(crate) validation: bool,
}

/// Finds the drivers, installing what is missing if that is allowed and possible.
pub(crate) fn set_up(report: &mut Report, may_install: bool) -> Found {
    let mut found = Found::default();
    report.stage("set-up of lavapipe", || set_up_system(may_install));
    found.validation = validation_layer().is_some();
    if let Some(manifest) = lavapipe() {
        found.drivers.push(Driver { name: "lavapipe", manifest });
    }
    let mut fetched = None;
    report.stage("set-up of SwiftShader", || match swiftshader(may_install)? {
        Ok(manifest) => {
            let note = manifest.display().to_string();
            fetched = Some(manifest);
            Ok(Outcome::Passed(note))
        }
        Err(reason) => Ok(Outcome::NotRun(reason)),
    });
    found.drivers.extend(fetched.map(|manifest| Driver { name: "SwiftShader", manifest }));
    found
}

/// Installs the loader, lavapipe and the validation layer where one of them is missing.
fn set_up_system(may_install: bool) -> Result<Outcome, Failure> {
    if !missing().is_empty() && may_install && apt::can_install() {
        apt::install(&PACKAGES)?;
        if let missing @ [_, ..] = missing().as_slice() {
            return Err(format!(
                "still missing after installing {}: {}",
                PACKAGES.join(" "),
                missing.join(", ")
            ));
        }
    }
    match missing().as_slice() {
        [] => Ok(Outcome::Passed(lavapipe().map_or_else(String::new, |path| path.display().to_string()))),
        missing => Ok(Outcome::NotRun(format!(
            "missing: {}. On Debian: apt-get install {}. Elsewhere: install Mesa's software Vulkan driver, the Vulkan \
             loader and the Khronos validation layer, or set {LAVAPIPE_VARIABLE} to the driver's JSON file",
            missing.join(", "),
            PACKAGES.join(" ")
        ))),
    }
}

fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if lavapipe().is_none() {
        missing.push("the driver lavapipe");
    }
    if !has_loader() {
        missing.push("the Vulkan loader");
    }
    if validation_layer().is_none() {
        missing.push("the Vulkan validation layer");
    }
    missing
}

fn lavapipe() -> Option<PathBuf> {
    let named = std::env::var_os(LAVAPIPE_VARIABLE).map(PathBuf::from);
    let installed = || system_manifest("icd.d", |name| name.starts_with("lvp_icd"));
    named.or_else(installed).filter(|manifest| manifest::check(manifest).is_ok())
}

fn validation_layer() -> Option<PathBuf> {
    system_manifest("explicit_layer.d", |name| name.starts_with("VkLayer_khronos_validation"))
}

/// The manifest of this kind and name, the one for this processor first.
fn system_manifest(kind: &str, wanted: fn(&str) -> bool) -> Option<PathBuf> {
    let mut manifests = Vec::new();
    for directory in SYSTEM.iter().filter_map(|system| std::fs::read_dir(Path::new(system).join(kind)).ok()) {
        manifests.extend(directory.flatten().map(|entry| entry.path()));
    }
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    manifests.retain(|path| name(path).is_some_and(|name| wanted(&name)));
    manifests.sort_by_key(|path| (!path.to_string_lossy().contains(std::env::consts::ARCH), path.clone()));
    manifests.into_iter().next()
}

/// Whether `libvulkan.so.1` lies in a directory where the dynamic linker looks.
fn has_loader() -> bool {
    let mut directories: Vec<PathBuf> =
        ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"].iter().map(PathBuf::from).collect();
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    directories.extend(["/lib", "/usr/lib"].iter().map(|parent| Path::new(parent).join(&triple)));
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        directories.extend(std::env::split_paths(&path));
    }
    directories.iter().any(|directory| directory.join("libvulkan.so.1").exists())
}

/// The manifest of SwiftShader; the inner error says why there is none although nothing failed.
fn swiftshader(may_install: bool) -> Result<Result<PathBuf, String>, Failure> {
    if let Some(named) = std::env::var_os(SWIFTSHADER_VARIABLE).map(PathBuf::from) {
        return manifest::check(&named).map(|()| Ok(named));
    }
    if let Some(manifest) = swiftshader::unpacked() {
        return Ok(Ok(manifest));
    }
    if may_install && apt::can_download() {
        return swiftshader::fetch().map(Ok);
    }
    Ok(Err(format!(
        "not unpacked yet, and it may not or cannot be downloaded here. Debian's package {} holds it; elsewhere build \
         it and set {SWIFTSHADER_VARIABLE} to its JSON file",
        swiftshader::PACKAGE
    )))
}

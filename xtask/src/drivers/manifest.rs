//! Driver manifests: small JSON files that tell the Vulkan loader where a driver's library is.

use std::path::{Path, PathBuf};

/// Checks that a manifest leads to a library that exists.
pub(super) fn check(manifest: &Path) -> Result<(), String> {
    let wrong = |what: String| format!("{}: {what}", manifest.display());
    let text = std::fs::read_to_string(manifest).map_err(|error| wrong(error.to_string()))?;
    let library = library_path(&text).ok_or_else(|| wrong("has no library_path".to_owned()))?;
    match resolve(manifest, &library) {
        Some(path) if !path.exists() => Err(wrong(format!("names {}, which does not exist", path.display()))),
        _ => Ok(()),
    }
}

/// A manifest for a library that lies beside it.
pub(super) fn for_library(name: &str) -> String {
    format!(
        "{{\"file_format_version\": \"1.0.0\", \
         \"ICD\": {{\"library_path\": \"./{name}\", \"api_version\": \"1.3.0\"}}}}\n"
    )
}

/// The value of the first `library_path`.
fn library_path(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("\"library_path\"")?;
    let (_, rest) = rest.split_once('"')?;
    rest.split_once('"').map(|(path, _)| path.to_owned())
}

/// The library's place, or none where the dynamic linker searches for it: a bare name.
fn resolve(manifest: &Path, library: &str) -> Option<PathBuf> {
    library.contains('/').then(|| manifest.parent().unwrap_or(Path::new(".")).join(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_manifest_reads_back() {
        assert_eq!(library_path(&for_library("lib.so")).as_deref(), Some("./lib.so"));
        assert_eq!(library_path("{}"), None);
    }

    #[test]
    fn libraries_are_found_as_the_loader_does() {
        let manifest = Path::new("/a/b.json");
        assert_eq!(resolve(manifest, "./lib.so"), Some(PathBuf::from("/a/./lib.so")));
        assert_eq!(resolve(manifest, "/c/lib.so"), Some(PathBuf::from("/c/lib.so")));
        assert_eq!(resolve(manifest, "lib.so"), None);
    }

    #[test]
    fn a_manifest_that_leads_nowhere_is_refused() {
        let directory =
            std::env::temp_dir().join(format!("griffinfly-xtask-manifest-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let manifest = directory.join("icd.json");
        assert!(check(&manifest).is_err());
        std::fs::write(&manifest, for_library("lib.so")).unwrap();
        assert!(check(&manifest).unwrap_err().contains("lib.so, which does not exist"));
        std::fs::write(directory.join("lib.so"), "").unwrap();
        assert_eq!(check(&manifest), Ok(()));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

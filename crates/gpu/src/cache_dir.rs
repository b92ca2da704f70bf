//! Where caches lie on disk.

use std::path::PathBuf;

/// The directory of caches: what `GRIFFINFLY_CACHE_DIR` names (empty: none), else `XDG_CACHE_HOME/griffinfly`, else
/// `HOME/.cache/griffinfly`; none where nothing of that is set, as in a browser.
#[must_use]
pub fn cache_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if std::env::var_os("GRIFFINFLY_CACHE_DIR").is_some() {
        return set("GRIFFINFLY_CACHE_DIR");
    }
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("griffinfly"))
}

//! Old file or new file, never anything else.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use super::replace;
use crate::ImportError;
use crate::scratch::Scratch;

#[test]
fn creates_and_replaces() {
    let scratch = Scratch::new("replace");
    let path = scratch.0.join("file");
    for content in [b"first".as_slice(), b"second, longer", b"3"] {
        replace(&path, &mut |file| file.write_all(content)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(scratch.names(), ["file"]);
    }
}

#[test]
fn failure_keeps_the_old_file_and_leaves_nothing() {
    let scratch = Scratch::new("keep");
    let path = scratch.0.join("file");
    fs::write(&path, "old").unwrap();
    let error = replace(&path, &mut |file| {
        file.write_all(b"half of the ne")?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    })
    .unwrap_err();
    assert!(
        matches!(&error, ImportError::Unwritable { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    );
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(scratch.names(), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_error_of_a_really_full_device_comes_through() {
    let scratch = Scratch::new("full");
    let path = scratch.0.join("file");
    let mut fill = |_: &mut fs::File| OpenOptions::new().write(true).open("/dev/full")?.write_all(b"x");
    let error = replace(&path, &mut fill).unwrap_err();
    assert!(
        matches!(&error, ImportError::Unwritable { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    );
    assert_eq!(scratch.names(), [""; 0]);
}

#[test]
fn left_over_temporary_files_are_not_reused() {
    let scratch = Scratch::new("stale");
    let stale = format!(".file.{}-0.tmp", std::process::id());
    fs::write(scratch.0.join(&stale), "stale").unwrap();
    replace(&scratch.0.join("file"), &mut |file| file.write_all(b"new")).unwrap();
    assert_eq!(scratch.names(), [stale.as_str(), "file"]);
}

#[test]
fn things_that_are_not_files_are_refused() {
    let scratch = Scratch::new("not-file");
    let mut fill = |file: &mut fs::File| file.write_all(b"new");
    for path in [scratch.0.clone(), PathBuf::from("/"), PathBuf::from(".."), PathBuf::from("")] {
        let error = replace(&path, &mut fill).unwrap_err();
        assert!(matches!(error, ImportError::NotAFile { .. }), "{}: {error}", path.display());
    }
    #[cfg(unix)]
    assert!(matches!(replace("/dev/null".as_ref(), &mut fill), Err(ImportError::NotAFile { .. })));
}

#[test]
fn missing_directories_are_named() {
    let scratch = Scratch::new("missing");
    fs::write(scratch.0.join("plain"), "").unwrap();
    for inner in ["absent/file", "plain/file"] {
        let path = scratch.0.join(inner);
        let error = replace(&path, &mut |_| Ok(())).unwrap_err();
        assert!(matches!(error, ImportError::Unwritable { .. }), "{error}");
        assert!(error.to_string().contains(inner), "{error}");
    }
    assert_eq!(scratch.names(), ["plain"]);
}

#[cfg(unix)]
#[test]
fn permissions_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("permissions");
    let path = scratch.0.join("file");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    replace(&path, &mut |file| file.write_all(b"new")).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

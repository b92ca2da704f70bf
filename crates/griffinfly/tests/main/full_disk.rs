//! Saving where there is no room, and where nothing can be written or read: the old file stays, nothing else is left.
//!
//! Room is taken away for real: a second process, which is this test binary again, may write files of 512 bytes only, so
//! the system refuses the rest of the checkpoint in the middle of it, as a full disk does.

#![cfg(target_os = "linux")]

use crate::fixtures::{Scratch, batch, bits, trainer};
use griffinfly::import::ImportError;
use griffinfly::{Device, Error, Optimizer};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the directory of the checkpoint to the second process.
const VARIABLE: &str = "GRIFFINFLY_FULL_DISK";
const CHECKPOINT: &str = "c.safetensors";
const TEST: &str = "full_disk::a_save_without_room_leaves_the_old_file";

#[test]
fn a_save_without_room_leaves_the_old_file() {
    if let Some(directory) = std::env::var_os(VARIABLE) {
        save_without_room(&PathBuf::from(directory));
        println!("refused as it must be");
        return;
    }
    let scratch = Scratch::new("full-disk");
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.01));
    trainer.step(&batch()).unwrap();
    let path = scratch.file(CHECKPOINT);
    trainer.save(&path).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(before.len() > 1024, "it fits into what the second process may write");
    // The signal that comes with the refusal would end the process; ignored, it leaves the error.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(VARIABLE, scratch.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("refused as it must be"), "{text}");
    assert!(std::fs::read(&path).unwrap() == before, "the old checkpoint changed");
    let names: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, [CHECKPOINT]);
}

/// The second process: goes on from the checkpoint, cannot save, and can still train.
fn save_without_room(directory: &Path) {
    let path = directory.join(CHECKPOINT);
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.01));
    trainer.load(&path).unwrap();
    trainer.step(&batch()).unwrap();
    let weights = bits(trainer.weights());
    for path in [path, directory.join("new.safetensors")] {
        match trainer.save(&path).unwrap_err() {
            Error::Import(ImportError::Unwritable { path: named, step, source }) => {
                assert_eq!((named, step), (path, "write its content"));
                assert_eq!(source.kind(), ErrorKind::FileTooLarge, "{source}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((trainer.steps(), bits(trainer.weights())), (2, weights));
    trainer.step(&batch()).unwrap();
}

#[test]
fn what_cannot_be_written_or_read_is_an_error_that_names_it() {
    let scratch = Scratch::new("unusable");
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.01));
    trainer.save(scratch.file(CHECKPOINT)).unwrap();
    std::os::unix::fs::symlink("loop", scratch.file("loop")).unwrap();
    let long = scratch.file(&"n".repeat(300));
    // Permissions do not stop root; these do.
    let unwritable =
        [long.clone(), scratch.file(CHECKPOINT).join("inner"), PathBuf::from("/proc/c.safetensors")];
    for path in unwritable {
        let error = trainer.save(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Import(ImportError::Unwritable { path: p, .. }) if *p == path),
            "{error}"
        );
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    for path in [long, scratch.file("loop"), scratch.file(CHECKPOINT).join("inner")] {
        let error = trainer.load(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Import(ImportError::Unreadable { path: p, .. }) if *p == path),
            "{error}"
        );
    }
    trainer.step(&batch()).unwrap();
    trainer.load(scratch.file(CHECKPOINT)).unwrap();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2);
}

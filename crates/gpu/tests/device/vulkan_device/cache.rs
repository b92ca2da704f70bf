//! The pipeline cache on disk.

use super::{enabled, options};
use crate::device_executing::adding;
use griffinfly_gpu::Device;
use griffinfly_gpu::vulkan::{OpenOptions, Selector, open_with};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn instantiate_with(cache_dir: &Path) {
    let options = OpenOptions { cache_dir: Some(cache_dir.into()), ..options() };
    let device = open_with(&Selector::Best, &options).unwrap();
    let log = device.validation_log();
    device.instantiate(Arc::new(adding(device.target(), 10).program), &[]).unwrap();
    drop(device);
    assert_eq!(log.messages(), Vec::<String>::new());
}

fn files(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn is_written_read_and_survives_damage() {
    if !enabled() {
        return;
    }
    let base = std::env::temp_dir().join(format!("griffinfly-device-cache-{}", std::process::id()));
    let directory = base.join("made/on/demand");
    instantiate_with(&directory);
    let [file] = files(&directory).try_into().expect("one file");
    let whole = std::fs::read(&file).unwrap();
    instantiate_with(&directory);
    for damaged in [vec![], whole[..whole.len() / 2].to_vec(), vec![0xff; whole.len()], b"text".to_vec()] {
        std::fs::write(&file, damaged).unwrap();
        instantiate_with(&directory);
    }
    assert_eq!(files(&directory), [file]);
    std::fs::remove_dir_all(&base).unwrap();
}

#[test]
fn an_unusable_directory_is_no_error() {
    if !enabled() {
        return;
    }
    let file = std::env::temp_dir().join(format!("griffinfly-device-cache-file-{}", std::process::id()));
    std::fs::write(&file, b"not a directory").unwrap();
    instantiate_with(&file);
    std::fs::remove_file(&file).unwrap();
}

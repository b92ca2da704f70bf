//! What is written is checked first and appears whole or not at all.

use std::io::{self, Write};
use std::path::Path;

use super::super::write::Encoded;
use super::super::{read, write_atomic};
use super::*;
use crate::scratch::Scratch;

#[test]
fn files_round_trip_and_are_replaced() {
    let scratch = Scratch::new("round-trip");
    let path = scratch.0.join("model.safetensors");
    for value in [1, 2] {
        let data = [value; 8];
        let tensors = [tensor("a", Dtype::U8, &[3], &data[..3]), tensor("b", Dtype::F64, &[], &data)];
        write_atomic(&path, &tensors, &BTreeMap::new()).unwrap();
        let file = read(&path).unwrap();
        assert_eq!(names(&file), ["b", "a"]);
        assert_eq!(file.tensor("a").unwrap().bytes, &data[..3]);
        assert_eq!(file.tensor("b").unwrap().bytes, &data);
    }
    assert_eq!(scratch.names(), ["model.safetensors"]);
}

#[test]
fn bad_tensors_are_refused_before_the_file_is_touched() {
    let scratch = Scratch::new("bad-tensors");
    let path = scratch.0.join("model.safetensors");
    std::fs::write(&path, "old").unwrap();
    let good = tensor("a", Dtype::U8, &[2], &[0, 0]);
    let cases: [(&[TensorSource<'_>], &str); 4] = [
        (&[good, good], "two tensors are named \"a\""),
        (&[tensor("__metadata__", Dtype::U8, &[0], &[])], "reserves"),
        (&[tensor("a", Dtype::F32, &[2], &[0; 4])], "tensor \"a\" of F32 [2] needs 8 bytes but has 4"),
        (&[tensor("a", Dtype::U8, &[usize::MAX, 2], &[])], "more bytes than this machine can address"),
    ];
    for (tensors, part) in cases {
        let message = write_atomic(&path, tensors, &BTreeMap::new()).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("model.safetensors"), "{message}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(scratch.names(), ["model.safetensors"]);
}

/// A disk with this much room left.
struct Disk {
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 && !bytes.is_empty() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let count = bytes.len().min(self.room);
        self.room -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_fills_up_anywhere_is_an_error() {
    let tensors = [tensor("a", Dtype::U8, &[3], &[1, 2, 3]), tensor("b", Dtype::U8, &[2], &[4, 5])];
    let encoded = Encoded::new(&tensors, &BTreeMap::new()).unwrap();
    let length = to_bytes(&tensors, &BTreeMap::new()).unwrap().len();
    for room in 0..length {
        let error = encoded.write_to(&mut Disk { room }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
    encoded.write_to(&mut Disk { room: length }).unwrap();
}

#[test]
fn unreadable_paths_are_named() {
    let scratch = Scratch::new("unreadable");
    let absent = scratch.0.join("absent.safetensors");
    let error = read(&absent).unwrap_err();
    assert!(matches!(error, ImportError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("absent.safetensors"), "{error}");
    assert!(matches!(read(&scratch.0), Err(ImportError::NotAFile { .. })));
    #[cfg(unix)]
    assert!(matches!(read(Path::new("/dev/zero")), Err(ImportError::NotAFile { .. })));
    assert!(read(Path::new("")).is_err());
}

#[test]
fn read_and_parse_agree_on_every_truncation() {
    let scratch = Scratch::new("truncated");
    let path = scratch.0.join("model.safetensors");
    let bytes = to_bytes(&[tensor("a", Dtype::U8, &[3], &[1, 2, 3])], &BTreeMap::new()).unwrap();
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        match read(&path) {
            Err(ImportError::Safetensors { path: Some(named), fault }) => {
                assert_eq!(named, path);
                assert_eq!(fault, fault_of(bytes[..length].to_vec()));
            }
            other => panic!("{length} bytes: {other:?}"),
        }
    }
}

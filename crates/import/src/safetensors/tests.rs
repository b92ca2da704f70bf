//! Valid files read back as they were written; every lie has its own error.

mod lies;
mod properties;
mod writing;

use std::collections::BTreeMap;

use super::{Dtype, File, SafetensorsFault, TensorSource, parse, to_bytes};
use crate::ImportError;

/// A file of this header, without padding, and this data.
fn file_of(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// The fault in these bytes.
fn fault_of(bytes: Vec<u8>) -> SafetensorsFault {
    match parse(bytes) {
        Err(ImportError::Safetensors { path: None, fault }) => fault,
        other => panic!("expected a fault, got {other:?}"),
    }
}

fn tensor<'a>(name: &'a str, dtype: Dtype, shape: &'a [usize], bytes: &'a [u8]) -> TensorSource<'a> {
    TensorSource { name, dtype, shape, bytes }
}

fn names(file: &File) -> Vec<&str> {
    file.names().collect()
}

#[test]
fn reads_a_file_of_another_writer() {
    let header = r#"{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},
        "a":{"data_offsets":[0,2],"shape":[],"dtype":"BF16","extra":null},
        "none":{"dtype":"I64","shape":[3,0],"data_offsets":[2,2]}}   "#;
    let file = parse(file_of(header, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).unwrap();
    assert_eq!(names(&file), ["a", "none", "b"]);
    assert_eq!(file.metadata(), &BTreeMap::from([("format".to_owned(), "pt".to_owned())]));
    let a = file.tensor("a").unwrap();
    assert_eq!((a.dtype, a.shape, a.bytes), (Dtype::BF16, [].as_slice(), [1, 2].as_slice()));
    let b = file.tensor("b").unwrap();
    assert_eq!(
        (b.dtype, b.shape, b.bytes),
        (Dtype::F32, [2].as_slice(), [3, 4, 5, 6, 7, 8, 9, 10].as_slice())
    );
    let none = file.tensor("none").unwrap();
    assert_eq!((none.shape, none.bytes), ([3, 0].as_slice(), [].as_slice()));
    assert_eq!(file.tensor("c"), None);
    assert_eq!(file.tensor("__metadata__"), None);
}

#[test]
fn a_file_without_tensors_is_valid() {
    let file = parse(file_of("{}", &[])).unwrap();
    assert_eq!(file.names().len(), 0);
    assert!(file.metadata().is_empty());
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let bytes = to_bytes(
        &[tensor("flag", Dtype::Bool, &[1], &[1]), tensor("w\"", Dtype::F32, &[1, 1], &[0, 0, 128, 63])],
        &BTreeMap::from([("step".to_owned(), "7".to_owned())]),
    )
    .unwrap();
    let header = concat!(
        r#"{"__metadata__":{"step":"7"},"w\"":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"#,
        r#""flag":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}}"#
    );
    let padded = format!("{header:<width$}", width = header.len().next_multiple_of(8));
    assert_eq!(bytes, file_of(&padded, &[0, 0, 128, 63, 1]));
}

#[test]
fn every_type_round_trips() {
    let data = [7; 16];
    for dtype in Dtype::all() {
        let bytes =
            to_bytes(&[tensor("x", dtype, &[2], &data[..2 * dtype.size()])], &BTreeMap::new()).unwrap();
        let file = parse(bytes).unwrap();
        assert_eq!(file.tensor("x").unwrap().dtype, dtype);
    }
}

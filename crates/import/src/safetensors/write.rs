//! From tensors to a safetensors file.
//!
//! Tensors are laid out by falling element size and, among equals, in the order given; the header is padded with
//! spaces to a multiple of eight bytes. So every tensor starts at a multiple of its element size from the start of
//! the file, and equal input gives equal bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::{Dtype, HEADER_LIMIT, METADATA_KEY, PREFIX, SafetensorsFault as Fault};
use crate::{ImportError, atomic};

/// A tensor to be written.
#[derive(Debug, Clone, Copy)]
pub struct TensorSource<'a> {
    /// Name, distinct from all others.
    pub name: &'a str,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Extents, outermost first; none for a scalar.
    pub shape: &'a [usize],
    /// Elements, row-major and little-endian.
    pub bytes: &'a [u8],
}

/// Fails where [`write_atomic`] would for the path alone; leaves nothing behind.
///
/// # Errors
/// An unwritable directory, something at the path that is no file.
pub fn probe(path: &Path) -> Result<(), ImportError> {
    atomic::probe(path)
}

/// Writes a file: to a temporary one in the same directory, flushed to disk and renamed over `path`. On any failure,
/// such as a full disk, what was at `path` is still there and the temporary file is gone. A symbolic link is replaced
/// by the file.
pub fn write_atomic(
    path: &Path,
    tensors: &[TensorSource<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<(), ImportError> {
    let encoded = Encoded::new(tensors, metadata)
        .map_err(|fault| ImportError::Safetensors { path: Some(path.to_owned()), fault })?;
    atomic::replace(path, &mut |file| {
        let mut buffered = BufWriter::with_capacity(1 << 20, file);
        encoded.write_to(&mut buffered)?;
        buffered.flush()
    })
}

/// The bytes of a file.
pub fn to_bytes(
    tensors: &[TensorSource<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, ImportError> {
    let encoded = Encoded::new(tensors, metadata);
    let encoded = encoded.map_err(|fault| ImportError::Safetensors { path: None, fault })?;
    let mut bytes = encoded.header.clone();
    for tensor in &encoded.tensors {
        bytes.extend_from_slice(tensor.bytes);
    }
    Ok(bytes)
}

/// A file about to be written.
pub(super) struct Encoded<'a> {
    /// Length, JSON and padding.
    header: Vec<u8>,
    /// In the order of the data.
    tensors: Vec<TensorSource<'a>>,
}

impl<'a> Encoded<'a> {
    pub(super) fn new(
        tensors: &[TensorSource<'a>],
        metadata: &BTreeMap<String, String>,
    ) -> Result<Self, Fault> {
        check(tensors)?;
        let mut tensors = tensors.to_vec();
        tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.dtype.size()));
        let mut json = header_json(&tensors, metadata);
        while !json.len().is_multiple_of(PREFIX) {
            json.push(' ');
        }
        if json.len() > HEADER_LIMIT {
            return Err(Fault::HeaderTooLong { header: json.len() as u64 });
        }
        let mut header = (json.len() as u64).to_le_bytes().to_vec();
        header.extend_from_slice(json.as_bytes());
        Ok(Encoded { header, tensors })
    }

    pub(super) fn write_to(&self, writer: &mut dyn Write) -> io::Result<()> {
        writer.write_all(&self.header)?;
        self.tensors.iter().try_for_each(|tensor| writer.write_all(tensor.bytes))
    }
}

fn check(tensors: &[TensorSource<'_>]) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for &TensorSource { name, dtype, shape, bytes } in tensors {
        let tensor = name.to_owned();
        if name == METADATA_KEY {
            return Err(Fault::ReservedName { tensor });
        }
        if !seen.insert(name) {
            return Err(Fault::DuplicateName { tensor });
        }
        let Some(expected) = dtype.byte_count(shape) else {
            let shape = shape.iter().map(|&extent| extent as u64).collect();
            return Err(Fault::SizeOverflow { tensor, dtype, shape });
        };
        if expected != bytes.len() {
            let (expected, found) = (expected as u64, bytes.len() as u64);
            return Err(Fault::ByteCountMismatch { tensor, dtype, shape: shape.to_vec(), expected, found });
        }
    }
    Ok(())
}

fn header_json(tensors: &[TensorSource<'_>], metadata: &BTreeMap<String, String>) -> String {
    let mut members = Vec::with_capacity(tensors.len() + 1);
    if !metadata.is_empty() {
        let pairs: Vec<_> =
            metadata.iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
        members.push(format!("\"{METADATA_KEY}\":{{{}}}", pairs.join(",")));
    }
    let mut begin = 0;
    for tensor in tensors {
        let end = begin + tensor.bytes.len() as u64;
        members.push(member(tensor, begin, end));
        begin = end;
    }
    format!("{{{}}}", members.join(","))
}

fn member(tensor: &TensorSource<'_>, begin: u64, end: u64) -> String {
    let mut shape = String::new();
    for (axis, extent) in tensor.shape.iter().enumerate() {
        let comma = if axis == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(shape, "{comma}{extent}");
    }
    let (name, dtype) = (quoted(tensor.name), tensor.dtype);
    format!("{name}:{{\"dtype\":\"{dtype}\",\"shape\":[{shape}],\"data_offsets\":[{begin},{end}]}}")
}

/// The text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

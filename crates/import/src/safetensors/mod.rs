//! The safetensors format: eight bytes of little-endian header length, a JSON header that names, types and places the
//! tensors, then their bytes.
//!
//! Input: a path or bytes. Output: a [`File`] whose views are all in range, or an [`ImportError`] that says what is
//! wrong. The tensors cover the data exactly: no gap, no overlap, nothing after the last. The other way,
//! [`write_atomic`] replaces a file as a whole or not at all. [`read_all`] reads weights that lie in several files. Source: the format section of the README of
//! <https://github.com/huggingface/safetensors>.

mod dtype;
mod fault;
mod header;
mod json;
mod layout;
mod sharded;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

pub use dtype::Dtype;
pub use fault::SafetensorsFault;
pub use sharded::{Shards, read_all};
pub use write::{TensorSource, probe, to_bytes, write_atomic};

use crate::ImportError;
use layout::{Layout, Placed};

/// The longest header the format allows.
pub const HEADER_LIMIT: usize = 100_000_000;

/// Bytes of the header length.
const PREFIX: usize = 8;

/// The key of the header that holds metadata instead of a tensor.
const METADATA_KEY: &str = "__metadata__";

/// A checked file in memory.
#[derive(Debug, Clone)]
pub struct File {
    layout: Layout,
    /// Position in `layout.tensors` by name.
    index: BTreeMap<String, usize>,
    bytes: Vec<u8>,
    /// Where in `bytes` the data starts.
    base: usize,
}

/// One tensor of a [`File`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorView<'a> {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Extents, outermost first; none for a scalar.
    pub shape: &'a [usize],
    /// Elements, row-major and little-endian; the start may have any alignment.
    pub bytes: &'a [u8],
}

impl File {
    fn new(layout: Layout, bytes: Vec<u8>, base: usize) -> Self {
        let index = layout.tensors.iter().enumerate().map(|(at, tensor)| (tensor.name.clone(), at)).collect();
        File { layout, index, bytes, base }
    }

    /// The names of the tensors, in the order of their data.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.layout.tensors.iter().map(|tensor| tensor.name.as_str())
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let Placed { dtype, shape, range, .. } = self.layout.tensors.get(*self.index.get(name)?)?;
        let bytes = self.bytes.get(self.base + range.start..self.base + range.end)?;
        Some(TensorView { dtype: *dtype, shape, bytes })
    }

    /// The metadata: strings by key, empty where the file has none.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.layout.metadata
    }
}

/// Reads and checks a file. The header is checked before any data is read, so a wrong file is refused quickly
/// whatever its size.
pub fn read(path: &Path) -> Result<File, ImportError> {
    let unreadable = |source| ImportError::Unreadable { path: path.to_owned(), source };
    let wrong = |fault| ImportError::Safetensors { path: Some(path.to_owned()), fault };
    // Before opening: to open a pipe waits for a writer.
    let length = match fs::metadata(path).map_err(unreadable)? {
        metadata if metadata.is_file() => metadata.len(),
        _ => return Err(ImportError::NotAFile { path: path.to_owned() }),
    };
    let mut file = fs::File::open(path).map_err(unreadable)?;
    if length < PREFIX as u64 {
        return Err(wrong(SafetensorsFault::TooShort { length }));
    }
    let mut prefix = [0; PREFIX];
    file.read_exact(&mut prefix).map_err(unreadable)?;
    let header_length = layout::header_length(prefix, length).map_err(wrong)?;
    let header = read_bytes(&mut file, header_length as u64).map_err(unreadable)?;
    let data_length = length - (PREFIX + header_length) as u64;
    let layout =
        header::parse(&header).and_then(|header| layout::place(header, data_length)).map_err(wrong)?;
    let data = read_bytes(&mut file, data_length).map_err(unreadable)?;
    Ok(File::new(layout, data, 0))
}

/// Reads exactly this many bytes; too little memory is an error like any other.
fn read_bytes(file: &mut fs::File, length: u64) -> io::Result<Vec<u8>> {
    let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
    let count = usize::try_from(length).map_err(|_| out_of_memory())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count).map_err(|_| out_of_memory())?;
    if file.take(length).read_to_end(&mut bytes)? < count {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    Ok(bytes)
}

/// Checks bytes in memory.
pub fn parse(bytes: Vec<u8>) -> Result<File, ImportError> {
    match parse_layout(&bytes) {
        Ok((layout, base)) => Ok(File::new(layout, bytes, base)),
        Err(fault) => Err(ImportError::Safetensors { path: None, fault }),
    }
}

/// Returns the layout and where the data starts.
fn parse_layout(bytes: &[u8]) -> Result<(Layout, usize), SafetensorsFault> {
    let length = bytes.len() as u64;
    let too_short = SafetensorsFault::TooShort { length };
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX>().ok_or(too_short)?;
    let header_length = layout::header_length(*prefix, length)?;
    let (header, data) = rest.split_at(header_length);
    let layout = layout::place(header::parse(header)?, data.len() as u64)?;
    Ok((layout, PREFIX + header_length))
}

#[cfg(test)]
mod tests;

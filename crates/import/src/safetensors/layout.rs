//! From entries to the places of their bytes: together they cover the data exactly, without gap or overlap.

use std::collections::BTreeMap;
use std::ops::Range;

use super::header::{Entry, Header};
use super::{Dtype, HEADER_LIMIT, PREFIX, SafetensorsFault as Fault};

/// A tensor with its place within the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

/// All of a file but its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// In the order of the data.
    pub(super) tensors: Vec<Placed>,
    pub(super) metadata: BTreeMap<String, String>,
}

/// The length of the header, from the first eight bytes of a file of `length` bytes.
pub(super) fn header_length(prefix: [u8; PREFIX], length: u64) -> Result<usize, Fault> {
    let header = u64::from_le_bytes(prefix);
    let available = length.saturating_sub(PREFIX as u64);
    if header > available {
        return Err(Fault::HeaderBeyondFile { header, available });
    }
    match usize::try_from(header) {
        Ok(small) if small <= HEADER_LIMIT => Ok(small),
        _ => Err(Fault::HeaderTooLong { header }),
    }
}

/// Places the entries in `available` bytes of data.
pub(super) fn place(header: Header, available: u64) -> Result<Layout, Fault> {
    let Header { mut entries, metadata } = header;
    if let Some(entry) = entries.iter().find(|entry| entry.end > available) {
        let (tensor, begin, end) = (entry.name.clone(), entry.begin, entry.end);
        return Err(Fault::OffsetsOutOfRange { tensor, begin, end, available });
    }
    // Stable: empty tensors at one place stay in the order of the header.
    entries.sort_by_key(|entry| (entry.begin, entry.end));
    let used = check_contiguous(&entries)?;
    if used != available {
        return Err(Fault::TrailingBytes { used, available });
    }
    let tensors = entries.into_iter().map(placed).collect::<Result<_, _>>()?;
    Ok(Layout { tensors, metadata })
}

/// Each entry begins where the one before ends; returns where the last one ends.
fn check_contiguous(entries: &[Entry]) -> Result<u64, Fault> {
    let mut previous: Option<&Entry> = None;
    for entry in entries {
        let previous_end = previous.map_or(0, |previous| previous.end);
        let (tensor, begin) = (entry.name.clone(), entry.begin);
        if begin > previous_end {
            return Err(Fault::Gap { tensor, begin, previous_end });
        }
        if let Some(previous) = previous.filter(|_| begin < previous_end) {
            return Err(Fault::Overlap { tensor, begin, previous: previous.name.clone(), previous_end });
        }
        previous = Some(entry);
    }
    Ok(previous.map_or(0, |previous| previous.end))
}

fn placed(entry: Entry) -> Result<Placed, Fault> {
    let Entry { name, dtype, shape, begin, end } = entry;
    match (usize::try_from(begin), usize::try_from(end)) {
        (Ok(begin), Ok(end)) => Ok(Placed { name, dtype, shape, range: begin..end }),
        _ => Err(Fault::SizeOverflow {
            tensor: name,
            dtype,
            shape: shape.iter().map(|&extent| extent as u64).collect(),
        }),
    }
}

//! From the bytes of a header to entries and metadata: everything that can be judged without the data.
//!
//! Output: entries in the order of the header, names distinct, types known, byte counts in range and equal to the
//! length of the place the entry claims. Whether the places fit the data is the business of `layout`.

use std::collections::{BTreeMap, BTreeSet};

use super::json::Json;
use super::{Dtype, METADATA_KEY, SafetensorsFault as Fault};

/// One tensor's description, its place not yet compared with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// First byte within the data, and the byte after the last; `begin <= end`.
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// A header that is consistent in itself.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) entries: Vec<Entry>,
    pub(super) metadata: BTreeMap<String, String>,
}

/// Reads a header.
pub(super) fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| Fault::HeaderNotUtf8 { position: error.valid_up_to() })?;
    if !text.starts_with('{') {
        let found = text.chars().next().map_or_else(|| "nothing".to_owned(), |c| format!("{c:?}"));
        return Err(Fault::HeaderNotObject { found });
    }
    let json =
        serde_json::from_str(text).map_err(|error| Fault::HeaderNotJson { reason: error.to_string() })?;
    let Json::Object(members) = json else {
        return Err(Fault::HeaderNotObject { found: json.kind().to_owned() });
    };
    let mut header = Header { entries: Vec::new(), metadata: BTreeMap::new() };
    let mut seen = BTreeSet::new();
    for (name, value) in members {
        if !seen.insert(name.clone()) {
            return Err(Fault::DuplicateName { tensor: name });
        }
        if name == METADATA_KEY {
            header.metadata = metadata(value)?;
        } else {
            header.entries.push(entry(name, value)?);
        }
    }
    Ok(header)
}

fn metadata(value: Json) -> Result<BTreeMap<String, String>, Fault> {
    let wrong = |key: &str, expected, found| Fault::MetadataType { key: key.to_owned(), expected, found };
    let Json::Object(members) = value else {
        return Err(wrong(METADATA_KEY, "an object", value.kind()));
    };
    let mut metadata = BTreeMap::new();
    for (key, value) in members {
        let Json::Text(text) = value else {
            return Err(wrong(&key, "a string", value.kind()));
        };
        if metadata.insert(key.clone(), text).is_some() {
            return Err(Fault::DuplicateMetadata { key });
        }
    }
    Ok(metadata)
}

fn entry(name: String, value: Json) -> Result<Entry, Fault> {
    let Json::Object(members) = value else {
        return Err(field_type(&name, "its description", "an object", value.kind()));
    };
    let mut fields = Fields { tensor: &name, members: BTreeMap::new() };
    for (field, value) in members {
        if fields.members.insert(field.clone(), value).is_some() {
            return Err(Fault::DuplicateField { tensor: name, field });
        }
    }
    let dtype = fields.dtype()?;
    let extents = fields.counts("shape")?;
    let (begin, end) = fields.offsets()?;
    if begin > end {
        return Err(Fault::OffsetsReversed { tensor: name, begin, end });
    }
    let shape: Option<Vec<usize>> = extents.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let sized = shape.and_then(|shape| Some((dtype.byte_count(&shape)? as u64, shape)));
    let Some((expected, shape)) = sized else {
        return Err(Fault::SizeOverflow { tensor: name, dtype, shape: extents });
    };
    if expected != end - begin {
        return Err(Fault::ByteCountMismatch { tensor: name, dtype, shape, expected, found: end - begin });
    }
    Ok(Entry { name, dtype, shape, begin, end })
}

/// The fields of one description. Unknown ones are passed over, as other readers do.
struct Fields<'a> {
    tensor: &'a str,
    members: BTreeMap<String, Json>,
}

impl Fields<'_> {
    fn get(&self, field: &'static str) -> Result<&Json, Fault> {
        let missing = || Fault::MissingField { tensor: self.tensor.to_owned(), field };
        self.members.get(field).ok_or_else(missing)
    }

    fn dtype(&self) -> Result<Dtype, Fault> {
        match self.get("dtype")? {
            Json::Text(name) => Dtype::from_name(name)
                .ok_or_else(|| Fault::UnknownDtype { tensor: self.tensor.to_owned(), dtype: name.clone() }),
            other => Err(field_type(self.tensor, "dtype", "a string", other.kind())),
        }
    }

    fn counts(&self, field: &'static str) -> Result<Vec<u64>, Fault> {
        let wrong = |found| field_type(self.tensor, field, "an array of whole numbers", found);
        let Json::List(items) = self.get(field)? else {
            return Err(wrong(self.get(field)?.kind()));
        };
        let count = |item: &Json| match item {
            Json::Count(count) => Ok(*count),
            other => Err(wrong(other.kind())),
        };
        items.iter().map(count).collect()
    }

    fn offsets(&self) -> Result<(u64, u64), Fault> {
        match self.counts("data_offsets")?[..] {
            [begin, end] => Ok((begin, end)),
            _ => Err(field_type(self.tensor, "data_offsets", "two numbers", "another count of numbers")),
        }
    }
}

fn field_type(tensor: &str, field: &'static str, expected: &'static str, found: &'static str) -> Fault {
    Fault::FieldType { tensor: tensor.to_owned(), field, expected, found }
}

//! The ways in which a safetensors file can lie, one variant each.

use super::{Dtype, HEADER_LIMIT};

/// What is wrong with a file, or with tensors that were to be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the names and numbers of the message beside them")]
pub enum SafetensorsFault {
    /// Fewer than the eight bytes of the header length.
    #[error("{length} bytes are too few for a safetensors file, which starts with 8 bytes of header length")]
    TooShort { length: u64 },
    /// The header would end after the file: truncated, or another format.
    #[error(
        "the header length is {header} bytes but only {available} bytes follow: truncated, or not a safetensors file"
    )]
    HeaderBeyondFile { header: u64, available: u64 },
    /// The header is longer than the format allows.
    #[error("the header length is {header} bytes, over the limit of {HEADER_LIMIT} bytes")]
    HeaderTooLong { header: u64 },
    /// The header is not text.
    #[error("the header is not UTF-8: the first wrong byte is at {position} in the header")]
    HeaderNotUtf8 { position: usize },
    /// The header is text but not JSON.
    #[error("the header is not JSON: {reason}")]
    HeaderNotJson { reason: String },
    /// The header does not start with `{`.
    #[error("the header is not a JSON object: it must start with '{{' but starts with {found}")]
    HeaderNotObject { found: String },
    /// Two tensors of one name.
    #[error("two tensors are named {tensor:?}")]
    DuplicateName { tensor: String },
    /// A name that the format keeps for itself.
    #[error("a tensor cannot be named {tensor:?}, which the format reserves")]
    ReservedName { tensor: String },
    /// The metadata is not an object of strings.
    #[error("metadata {key:?} must be {expected}, found {found}")]
    MetadataType { key: String, expected: &'static str, found: &'static str },
    /// Two metadata values of one key.
    #[error("metadata {key:?} is given twice")]
    DuplicateMetadata { key: String },
    /// A tensor's description lacks a field.
    #[error("tensor {tensor:?} has no field {field:?}")]
    MissingField { tensor: String, field: &'static str },
    /// A tensor's description gives a field twice.
    #[error("tensor {tensor:?} has the field {field:?} twice")]
    DuplicateField { tensor: String, field: String },
    /// A field, or the description itself, is not of the right kind.
    #[error("tensor {tensor:?}: {field} must be {expected}, found {found}")]
    FieldType { tensor: String, field: &'static str, expected: &'static str, found: &'static str },
    /// An element type that does not exist here.
    #[error("tensor {tensor:?} has the unknown dtype {dtype:?}")]
    UnknownDtype { tensor: String, dtype: String },
    /// The shape multiplies to more bytes than can be addressed.
    #[error("tensor {tensor:?} of {dtype} {shape:?} has more bytes than this machine can address")]
    SizeOverflow { tensor: String, dtype: Dtype, shape: Vec<u64> },
    /// The tensor ends before it begins.
    #[error("tensor {tensor:?} ends at byte {end}, before it begins at {begin}")]
    OffsetsReversed { tensor: String, begin: u64, end: u64 },
    /// The tensor ends after the data.
    #[error("tensor {tensor:?} lies at bytes {begin}..{end} but there are {available} bytes of data")]
    OffsetsOutOfRange { tensor: String, begin: u64, end: u64, available: u64 },
    /// Shape and place disagree.
    #[error("tensor {tensor:?} of {dtype} {shape:?} needs {expected} bytes but has {found}")]
    ByteCountMismatch { tensor: String, dtype: Dtype, shape: Vec<usize>, expected: u64, found: u64 },
    /// Two tensors share bytes.
    #[error("tensor {tensor:?} begins at byte {begin}, inside {previous:?}, which ends at {previous_end}")]
    Overlap { tensor: String, begin: u64, previous: String, previous_end: u64 },
    /// Bytes before a tensor belong to none.
    #[error("tensor {tensor:?} begins at byte {begin}, but the data before it ends at {previous_end}")]
    Gap { tensor: String, begin: u64, previous_end: u64 },
    /// An index of shards that is no index.
    #[error("the index of the shards is wrong: {reason}")]
    Index { reason: String },
    /// An index that names a shard elsewhere than beside it.
    #[error("the index names the shard {file:?}, which is no plain file name")]
    ShardPath { file: String },
    /// A tensor of a shard that the index does not know there.
    #[error("tensor {tensor:?} lies in {file:?}, the index says {}", said.as_deref().unwrap_or("nothing about it"))]
    Misplaced { tensor: String, file: String, said: Option<String> },
    /// A tensor that the index names and the shard lacks.
    #[error("the shard {file:?} has no tensor {tensor:?}, which the index says it has")]
    NotInShard { tensor: String, file: String },
    /// Bytes after the last tensor.
    #[error("there are {available} bytes of data but the tensors end at {used}")]
    TrailingBytes { used: u64, available: u64 },
}

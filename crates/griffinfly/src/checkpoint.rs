//! Checkpoints: sets of named tensors and metadata as safetensors files.
//!
//! Reading checks everything (names, dtypes, shapes, metadata) and collects all that does not fit before anything changes.
//! Writing replaces the file as a whole or leaves it alone. Metadata keys: `griffinfly.format`, `griffinfly.state` (names
//! of the tensors that are not parameters), and for trainers `griffinfly.step`, `griffinfly.seed`,
//! `griffinfly.learning_rate` and `griffinfly.optimizer`.

use crate::error::Error;
use crate::tensors::{Entry, Images, Tensors, replace};
use griffinfly_import::safetensors::{self, Dtype, Shards, TensorSource, TensorView};
use griffinfly_ir::types::{DType, TensorType};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Version of our use of metadata.
const FORMAT: &str = "1";
const FORMAT_KEY: &str = "griffinfly.format";
const STATE_KEY: &str = "griffinfly.state";

/// One thing about a file that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the names and numbers of the message beside them")]
pub enum CheckpointFault {
    /// A tensor the model has and the file has not.
    #[error("{} {expected} is missing", shown(.name))]
    Missing { name: String, expected: TensorType },
    /// A tensor the file has and the model has not.
    #[error("{} {dtype} {shape:?} is not part of the model", shown(.name))]
    Unexpected { name: String, dtype: Dtype, shape: Vec<usize> },
    /// Another shape.
    #[error("{} has shape {found:?}, the model has {expected:?}", shown(.name))]
    Shape { name: String, found: Vec<usize>, expected: Vec<usize> },
    /// Another dtype.
    #[error("{} is {found}, the model has {expected}", shown(.name))]
    Dtype { name: String, found: Dtype, expected: Dtype },
    /// Metadata that is missing or means nothing.
    #[error("metadata '{key}' {reason}")]
    Metadata { key: &'static str, reason: String },
}

/// A name that a file may have made up, for a terminal: quoted, without control characters, not without end.
fn shown(name: &str) -> String {
    const LONGEST: usize = 200;
    let start: String = name.chars().take(LONGEST).collect();
    let more = if start.len() < name.len() { format!("... ({} bytes)", name.len()) } else { String::new() };
    format!("'{}{more}'", start.escape_debug())
}

/// Where tensors are loaded from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// A file, an index of files or a directory with either.
    Path(&'a Path),
    /// The bytes of a file, and what to call it.
    Bytes(&'a [u8], &'a str),
}

impl Source<'_> {
    fn open(self) -> Result<Shards, Error> {
        Ok(match self {
            Source::Path(path) => safetensors::read_all(path)?,
            Source::Bytes(bytes, _) => safetensors::parse(bytes.to_vec())?.into(),
        })
    }

    /// What errors call it.
    fn name(self) -> PathBuf {
        match self {
            Source::Path(path) => path.to_owned(),
            Source::Bytes(_, name) => name.into(),
        }
    }
}

/// A file to be loaded into sets of tensors.
pub(crate) struct Loading<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) sets: &'a [&'a Tensors],
    /// Whether tensors that the file marks as state may be there without being wanted.
    pub(crate) other_state: bool,
}

/// What a file holds for each set.
pub(crate) struct Loaded {
    pub(crate) images: Vec<Images>,
}

impl Loading<'_> {
    /// Reads the file; all that does not fit is one error.
    pub(crate) fn read(&self) -> Result<Loaded, Error> {
        self.read_with(|_| Vec::new())
    }

    /// The same, with more to check in the metadata.
    pub(crate) fn read_with(
        &self,
        check: impl FnOnce(&BTreeMap<String, String>) -> Vec<CheckpointFault>,
    ) -> Result<Loaded, Error> {
        let file = self.source.open()?;
        let mut faults = self.faults(&file);
        let metadata = file.metadata();
        if let Some(other) = metadata.get(FORMAT_KEY).filter(|format| *format != FORMAT) {
            let reason = format!("is {other:?}, this version reads {FORMAT:?}");
            faults.push(CheckpointFault::Metadata { key: FORMAT_KEY, reason });
        }
        faults.extend(check(&metadata));
        if !faults.is_empty() {
            return Err(Error::Checkpoint { path: self.source.name(), faults });
        }
        let image = |set: &&Tensors| {
            let mut images = set.blank();
            for entry in set.entries() {
                if let Some(view) = file.tensor(&entry.name) {
                    from_file(&view, set.slice_mut(&mut images, entry));
                }
            }
            images
        };
        let images = self.sets.iter().map(image).collect();
        Ok(Loaded { images })
    }

    fn faults(&self, file: &Shards) -> Vec<CheckpointFault> {
        let mut faults = Vec::new();
        for entry in self.sets.iter().flat_map(|set| set.entries()) {
            match file.tensor(&entry.name) {
                None => {
                    let (name, expected) = (entry.name.clone(), entry.ty.clone());
                    faults.push(CheckpointFault::Missing { name, expected });
                }
                Some(view) => faults.extend(misfit(entry, &view)),
            }
        }
        let marked = match state_names(&file.metadata()) {
            Ok(names) => names,
            Err(fault) => {
                faults.push(fault);
                BTreeSet::new()
            }
        };
        let wanted = |name: &str| self.sets.iter().any(|set| set.find(name).is_some());
        // PyTorch counts the batches of its batch norms, which matters to averages without momentum only.
        let counts_batches = |name: &str| {
            name.strip_suffix("num_batches_tracked")
                .is_some_and(|layer| wanted(&format!("{layer}running_mean")))
        };
        let passed_over = |name: &str| (self.other_state && marked.contains(name)) || counts_batches(name);
        for name in file.names().filter(|name| !wanted(name) && !passed_over(name)) {
            if let Some(TensorView { dtype, shape, .. }) = file.tensor(name) {
                faults.push(CheckpointFault::Unexpected { name: name.into(), dtype, shape: shape.to_vec() });
            }
        }
        faults
    }
}

/// What is wrong with a tensor that is there: every difference, not the byte count.
fn misfit(entry: &Entry, view: &TensorView<'_>) -> Vec<CheckpointFault> {
    let (name, expected) = (|| entry.name.clone(), file_dtype(entry.ty.dtype));
    let mut faults = Vec::new();
    let widens = expected == Dtype::F32 && matches!(view.dtype, Dtype::BF16 | Dtype::F16);
    if view.dtype != expected && !widens {
        faults.push(CheckpointFault::Dtype { name: name(), found: view.dtype, expected });
    }
    if view.shape != entry.ty.dims {
        let (found, expected) = (view.shape.to_vec(), entry.ty.dims.clone());
        faults.push(CheckpointFault::Shape { name: name(), found, expected });
    }
    faults
}

/// Names of the tensors a file marks as state.
fn state_names(metadata: &BTreeMap<String, String>) -> Result<BTreeSet<String>, CheckpointFault> {
    let Some(text) = metadata.get(STATE_KEY) else { return Ok(BTreeSet::new()) };
    serde_json::from_str(text).map_err(|e| CheckpointFault::Metadata {
        key: STATE_KEY,
        reason: format!("is no list of names: {e}"),
    })
}

/// Booleans are stored as words of 0 or 1.
fn file_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::I32 => Dtype::I32,
        DType::U32 | DType::Bool => Dtype::U32,
    }
}

/// The metadata every file gets, and the marks on what is state.
pub(crate) fn metadata(state: &[&Tensors]) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([(FORMAT_KEY.to_owned(), FORMAT.to_owned())]);
    let names: Vec<&str> = state.iter().flat_map(|set| set.entries()).map(|e| e.name.as_str()).collect();
    if !names.is_empty() {
        metadata.insert(STATE_KEY.into(), serde_json::Value::from(names).to_string());
    }
    metadata
}

/// Tensors as they go into a file.
pub(crate) struct Contents<'a> {
    sets: Vec<(&'a Tensors, Images)>,
    metadata: BTreeMap<String, String>,
}

impl<'a> Contents<'a> {
    /// All tensors of these sets.
    pub(crate) fn read(sets: &[&'a Tensors], metadata: BTreeMap<String, String>) -> Result<Self, Error> {
        let images = sets.iter().map(|set| set.images()).collect::<Result<Vec<_>, _>>()?;
        Ok(Contents::of(sets, images, metadata))
    }

    /// The same, without blocking a browser.
    pub(crate) async fn read_async(
        sets: &[&'a Tensors],
        metadata: BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        // All are asked for before the first is waited for: what they hold goes together, whatever is submitted in between.
        let asked: Vec<_> = sets.iter().map(|set| set.images_later()).collect();
        let mut images = Vec::new();
        for set in asked {
            let mut of_set = Images::new();
            for image in set {
                of_set.push(image.await?);
            }
            images.push(of_set);
        }
        Ok(Contents::of(sets, images, metadata))
    }

    fn of(sets: &[&'a Tensors], mut images: Vec<Images>, metadata: BTreeMap<String, String>) -> Self {
        images.iter_mut().flatten().for_each(|image| to_little_endian(image));
        Contents { sets: sets.iter().copied().zip(images).collect(), metadata }
    }

    /// Puts a file at a path, as a whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        Ok(safetensors::write_atomic(path, &self.sources(), &self.metadata)?)
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(safetensors::to_bytes(&self.sources(), &self.metadata)?)
    }

    fn sources(&self) -> Vec<TensorSource<'_>> {
        self.sets
            .iter()
            .flat_map(|(set, images)| {
                set.entries().iter().map(move |e| TensorSource {
                    name: &e.name,
                    dtype: file_dtype(e.ty.dtype),
                    shape: &e.ty.dims,
                    bytes: set.slice(images, e),
                })
            })
            .collect()
    }
}

/// Puts what was loaded into the sets, all or nothing.
pub(crate) fn apply(sets: &[&Tensors], loaded: &Loaded) -> Result<(), Error> {
    let pairs: Vec<(&Tensors, &Images)> = sets.iter().copied().zip(&loaded.images).collect();
    replace(&pairs)
}

/// Elements of a file, which are little-endian, as words of this machine; 16-bit floats become the `f32` of the same value.
fn from_file(view: &TensorView<'_>, out: &mut [u8]) {
    let widen: fn(u16) -> u32 = match view.dtype {
        Dtype::BF16 => |half| u32::from(half) << 16,
        Dtype::F16 => f32_of_f16,
        _ => {
            out.copy_from_slice(view.bytes);
            return to_little_endian(out);
        }
    };
    for (half, word) in view.bytes.chunks_exact(2).zip(out.chunks_exact_mut(4)) {
        word.copy_from_slice(&widen(u16::from_le_bytes([half[0], half[1]])).to_ne_bytes());
    }
}

/// The bits of the `f32` that has the value of an IEEE half.
fn f32_of_f16(half: u16) -> u32 {
    let (sign, exponent, fraction) =
        (u32::from(half >> 15), u32::from(half >> 10 & 31), u32::from(half & 1023));
    sign << 31
        | match exponent {
            0 => (fraction as f32 * 2.0_f32.powi(-24)).to_bits(),
            31 => 0xff << 23 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        }
}

/// Turns words of this machine into those of a file, or back.
fn to_little_endian(bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    }
}

//! The file of a workload: weights by their canonical names, inputs as `input.full.NAME` and `input.minimal.NAME`, and the
//! configuration as metadata. Both engines read it, so neither has a table of its own.

use crate::error::BenchError;
use crate::fill;
use crate::workload::{Fill, InputTensor, Name, Parameter, Shape, Size, Values, Workload};
use griffinfly::import::safetensors::{self, Dtype, File, TensorSource};
use griffinfly::{Device, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The metadata's key.
const KEY: &str = "griffinfly.workload";

/// What the metadata says.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    workload: Name,
    size: Size,
    /// Where the weights come from.
    weights: String,
    /// The configuration of the model.
    config: serde_json::Value,
}

/// Tensors about to be written: name, type, shape and little-endian bytes.
type Tensors = Vec<(String, Dtype, Vec<usize>, Vec<u8>)>;

/// Writes the file of a workload into a folder; its weights are drawn, or those of a checkpoint.
pub(crate) fn write(
    name: Name,
    size: Size,
    folder: &Path,
    checkpoint: Option<&Path>,
) -> Result<PathBuf, BenchError> {
    let workload = name.at(size);
    let (mut tensors, weights) = match checkpoint {
        Some(path) => (read_checkpoint(workload.as_ref(), path)?, path.display().to_string()),
        None => (drawn(workload.as_ref()), "name-index-uniform-v1, identity norms".to_owned()),
    };
    for shape in [Shape::Full, Shape::Minimal] {
        tensors.extend(workload.inputs(shape).into_iter().map(|input| encode_input(shape, input)));
    }
    let path = folder.join(name.file(size));
    let json = |source| BenchError::Record { path: path.clone(), source, place: String::new() };
    let config = workload.config().map_err(json)?;
    let text = serde_json::to_string(&Description { workload: name, size, weights, config }).map_err(json)?;
    std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    let sources: Vec<TensorSource<'_>> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| TensorSource { name, dtype: *dtype, shape, bytes })
        .collect();
    safetensors::write_atomic(&path, &sources, &BTreeMap::from([(KEY.to_owned(), text)]))?;
    Ok(path)
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn drawn(workload: &dyn Workload) -> Tensors {
    let one = |p: Parameter| {
        let values = values(&p, workload);
        (p.name, Dtype::F32, p.shape, little_endian(&values))
    };
    workload.parameters().into_iter().map(one).collect()
}

fn values(p: &Parameter, workload: &dyn Workload) -> Vec<f32> {
    let count = p.shape.iter().product();
    let name = p.name.strip_prefix(workload.unseeded_prefix()).unwrap_or(&p.name);
    let uniform = || fill::uniform(name, count, workload.amplitude());
    match (p.fill, p.shape.as_slice()) {
        (Fill::Ones, _) => vec![1.0; count],
        (Fill::Zeros, _) => vec![0.0; count],
        (Fill::Product, &[outputs, inputs]) => fill::transposed(&uniform(), [outputs, inputs]),
        (Fill::Product | Fill::Natural, _) => uniform(),
    }
}

/// The parameters of a real checkpoint: one file, the index of several, or a directory with either. It must hold exactly
/// these; 16-bit floats widen.
fn read_checkpoint(workload: &dyn Workload, path: &Path) -> Result<Tensors, BenchError> {
    let model = workload.model(Shape::Full)?;
    let weights = Weights::empty(&Device::host(), &model.graph)?;
    weights.load(path)?;
    let one = |p: Parameter| {
        let bytes = little_endian(&weights.get(&p.name)?);
        Ok((p.name, Dtype::F32, p.shape, bytes))
    };
    workload.parameters().into_iter().map(one).collect()
}

fn encode_input(shape: Shape, input: InputTensor) -> (String, Dtype, Vec<usize>, Vec<u8>) {
    let name = format!("{}{}", shape.prefix(), input.name);
    match input.values {
        Values::F32(v) => (name, Dtype::F32, input.shape, little_endian(&v)),
        Values::I32(v) => (name, Dtype::I32, input.shape, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
    }
}

/// The file of a workload, read.
pub(crate) struct Bundle {
    path: PathBuf,
    file: File,
}

impl Bundle {
    /// Reads the file; it must be of this workload and size, with the configuration that the workload has now.
    pub(crate) fn read(folder: &Path, name: Name, size: Size) -> Result<Bundle, BenchError> {
        let path = folder.join(name.file(size));
        let file = safetensors::read(&path)?;
        let wrong = |reason: String| BenchError::File { path: path.clone(), reason };
        let text = file.metadata().get(KEY).ok_or_else(|| wrong(format!("has no metadata '{KEY}'")))?;
        let json = |source| BenchError::Record { path: path.clone(), source, place: String::new() };
        let found: Description = serde_json::from_str(text).map_err(json)?;
        let config = name.at(size).config().map_err(json)?;
        if (found.workload, found.size, &found.config) != (name, size, &config) {
            let reason = format!(
                "is of {} with {}, wanted is {} with {config}",
                found.workload.text(),
                found.config,
                name.text()
            );
            return Err(wrong(reason));
        }
        Ok(Bundle { path, file })
    }

    /// Sets all parameters. Everything that does not fit is one error, and then nothing changed.
    pub(crate) fn load(&self, weights: &Weights) -> Result<(), BenchError> {
        let mut faults = Vec::new();
        for name in weights.names() {
            let dims = weights.dims(name)?;
            match self.file.tensor(name) {
                None => faults.push(format!("'{name}' is missing")),
                Some(view) if view.shape != dims || view.dtype != Dtype::F32 => {
                    faults.push(format!(
                        "'{name}' is {} {:?}, the model has f32 {dims:?}",
                        view.dtype, view.shape
                    ));
                }
                Some(_) => {}
            }
        }
        let extra = self.file.names().filter(|n| !n.starts_with("input.") && weights.dims(n).is_err());
        faults.extend(extra.map(|name| format!("'{name}' is not part of the model")));
        if !faults.is_empty() {
            return Err(BenchError::Weights { path: self.path.clone(), faults });
        }
        for name in weights.names() {
            if let Some(view) = self.file.tensor(name) {
                weights.set(name, &words(view.bytes, f32::from_le_bytes))?;
            }
        }
        Ok(())
    }

    /// The inputs of a shape.
    pub(crate) fn inputs(&self, shape: Shape) -> Vec<InputTensor> {
        let tensors = self
            .file
            .names()
            .filter_map(|name| Some((name.strip_prefix(shape.prefix())?, self.file.tensor(name)?)));
        tensors
            .map(|(name, view)| {
                let values = match view.dtype {
                    Dtype::I32 => Values::I32(words(view.bytes, i32::from_le_bytes)),
                    _ => Values::F32(words(view.bytes, f32::from_le_bytes)),
                };
                InputTensor { name: name.into(), shape: view.shape.to_vec(), values }
            })
            .collect()
    }
}

fn words<T>(bytes: &[u8], word: impl Fn([u8; 4]) -> T) -> Vec<T> {
    bytes.chunks_exact(4).map(|b| word([b[0], b[1], b[2], b[3]])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("griffinfly-bench-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = folder("bundle");
        for name in Name::ALL {
            write(name, Size::Small, &folder, None).unwrap();
            let bundle = Bundle::read(&folder, name, Size::Small).unwrap();
            let workload = name.at(Size::Small);
            for shape in [Shape::Full, Shape::Minimal] {
                let mut expected = workload.inputs(shape);
                let mut found = bundle.inputs(shape);
                expected.sort_by(|a, b| a.name.cmp(&b.name));
                found.sort_by(|a, b| a.name.cmp(&b.name));
                assert_eq!(found, expected, "{name:?} {shape:?}");
            }
            let weights =
                Weights::empty(&Device::host(), &workload.model(Shape::Full).unwrap().graph).unwrap();
            bundle.load(&weights).unwrap();
            for p in workload.parameters() {
                assert_eq!(weights.get(&p.name).unwrap(), values(&p, workload.as_ref()), "{}", p.name);
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_file_of_another_workload_is_refused() {
        let folder = folder("other");
        let path = write(Name::UNet, Size::Small, &folder, None).unwrap();
        std::fs::rename(path, folder.join(Name::Whisper.file(Size::Small))).unwrap();
        let text = Bundle::read(&folder, Name::Whisper, Size::Small).err().unwrap().to_string();
        assert!(text.contains("is of unet"), "{text}");
        let workload = Name::Whisper.at(Size::Small);
        let weights = Weights::empty(&Device::host(), &workload.model(Shape::Full).unwrap().graph).unwrap();
        let path = folder.join(Name::Whisper.file(Size::Small));
        let bundle = Bundle { file: safetensors::read(&path).unwrap(), path };
        let text = bundle.load(&weights).unwrap_err().to_string();
        assert!(text.contains("'model.encoder.conv1.weight' is missing"), "{text}");
        assert!(text.contains("'conv_in.weight' is not part of the model"), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn weights_of_products_are_drawn_in_the_other_order() {
        let workload = Name::Whisper.at(Size::Small);
        let table = workload.parameters();
        let p = table.iter().find(|p| p.name.ends_with("layers.0.fc1.weight")).unwrap();
        let drawn = fill::uniform("layers.0.fc1.weight", 131 * 128, fill::AMPLITUDE);
        let found = values(p, workload.as_ref());
        assert_eq!((found[0], found[1], found[128]), (drawn[0], drawn[131], drawn[1]));
    }

    #[test]
    fn a_checkpoint_must_have_exactly_the_parameters() {
        let folder = folder("checkpoint");
        let path = write(Name::SmolLm2, Size::Small, &folder, None).unwrap();
        let text = write(Name::SmolLm2, Size::Small, &folder, Some(&path)).unwrap_err().to_string();
        assert!(text.contains("'input.full.ids'") && text.contains("is not part of the model"), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

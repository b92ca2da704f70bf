//! Weights in several files, and an index that says which tensor lies in which: `model.safetensors.index.json`.
//!
//! Input: the path of a file, of an index, or of a directory with either under its usual name. Output: [`Shards`], whose
//! tensors are those of all files, each of one name once. The files lie beside the index: a name with a path in it is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{File, SafetensorsFault as Fault, TensorView, read};
use crate::ImportError;

/// The usual name of a file that holds all weights.
const WHOLE: &str = "model.safetensors";
/// The usual name of an index.
const INDEX: &str = "model.safetensors.index.json";

/// One or several files, read and checked.
#[derive(Debug, Clone)]
pub struct Shards {
    files: Vec<File>,
    /// Which file has the tensor of a name.
    index: BTreeMap<String, usize>,
}

/// The content of an index; its metadata says nothing about the tensors.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Reads a file, the files of an index (a path that ends in `.json`), or what a directory holds of either.
///
/// # Errors
/// A path that cannot be read, an invalid file or index, tensors that are not where the index says, a name in two files.
pub fn read_all(path: &Path) -> Result<Shards, ImportError> {
    let path = match path {
        directory if directory.is_dir() => {
            let index = directory.join(INDEX);
            if index.is_file() { index } else { directory.join(WHOLE) }
        }
        file => file.to_owned(),
    };
    if path.extension().is_some_and(|extension| extension == "json") {
        return read_index(&path);
    }
    Ok(read(&path)?.into())
}

impl From<File> for Shards {
    /// A file alone.
    fn from(file: File) -> Shards {
        let index = file.names().map(|name| (name.to_owned(), 0)).collect();
        Shards { files: vec![file], index }
    }
}

fn read_index(path: &Path) -> Result<Shards, ImportError> {
    let unreadable = |source| ImportError::Unreadable { path: path.to_owned(), source };
    let wrong = |fault| ImportError::Safetensors { path: Some(path.to_owned()), fault };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let Index { weight_map } =
        serde_json::from_str(&text).map_err(|e| wrong(Fault::Index { reason: e.to_string() }))?;
    let names: BTreeSet<&String> = weight_map.values().collect();
    let mut shards = Shards { files: Vec::new(), index: BTreeMap::new() };
    for name in names {
        let file = read(&beside(path, name).map_err(wrong)?)?;
        for tensor in file.names() {
            if shards.index.insert(tensor.to_owned(), shards.files.len()).is_some() {
                return Err(wrong(Fault::DuplicateName { tensor: tensor.to_owned() }));
            }
            if weight_map.get(tensor) != Some(name) {
                let said = weight_map.get(tensor).cloned();
                return Err(wrong(Fault::Misplaced { tensor: tensor.to_owned(), file: name.clone(), said }));
            }
        }
        shards.files.push(file);
    }
    if let Some((tensor, file)) = weight_map.iter().find(|(tensor, _)| !shards.index.contains_key(*tensor)) {
        return Err(wrong(Fault::NotInShard { tensor: tensor.clone(), file: file.clone() }));
    }
    Ok(shards)
}

/// The path of a shard: a plain name beside the index.
fn beside(index: &Path, name: &str) -> Result<PathBuf, Fault> {
    let plain = Path::new(name).file_name().is_some_and(|last| last == name);
    if plain && !name.contains(['/', '\\']) {
        return Ok(index.with_file_name(name));
    }
    Err(Fault::ShardPath { file: name.to_owned() })
}

impl Shards {
    /// The names of all tensors, file by file in the order of their data.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(File::names)
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        self.files.get(*self.index.get(name)?)?.tensor(name)
    }

    /// The metadata of a single file; several have none in common.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        match self.files.as_slice() {
            [file] => file.metadata().clone(),
            _ => BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safetensors::{Dtype, TensorSource, write_atomic};
    use crate::scratch::Scratch;

    fn write(scratch: &Scratch, file: &str, names: &[&str]) {
        let tensor =
            |name| TensorSource { name, dtype: Dtype::U8, shape: &[1], bytes: &file.as_bytes()[..1] };
        let tensors: Vec<_> = names.iter().copied().map(tensor).collect();
        write_atomic(&scratch.0.join(file), &tensors, &BTreeMap::new()).unwrap();
    }

    fn index(scratch: &Scratch, text: &str) -> Result<Shards, ImportError> {
        std::fs::write(scratch.0.join(INDEX), text).unwrap();
        read_all(&scratch.0)
    }

    fn scratch(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        write(&scratch, "a.safetensors", &["x", "y"]);
        write(&scratch, "b.safetensors", &["z"]);
        scratch
    }

    #[test]
    fn an_index_joins_its_files() {
        let scratch = scratch("shards");
        let map = r#"{"metadata": {"total_size": 3}, "weight_map":
            {"z": "b.safetensors", "x": "a.safetensors", "y": "a.safetensors"}}"#;
        let shards = index(&scratch, map).unwrap();
        assert_eq!(shards.names().collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(shards.tensor("z").unwrap().bytes, b"b");
        assert_eq!(shards.tensor("y").unwrap().bytes, b"a");
        assert!(shards.tensor("w").is_none());
    }

    #[test]
    fn a_file_alone_needs_no_index() {
        let scratch = scratch("whole");
        assert!(matches!(read_all(&scratch.0), Err(ImportError::Unreadable { .. })));
        write(&scratch, WHOLE, &["x"]);
        assert_eq!(read_all(&scratch.0).unwrap().names().count(), 1);
        assert_eq!(read_all(&scratch.0.join("a.safetensors")).unwrap().names().count(), 2);
    }

    #[test]
    fn an_index_that_lies_is_refused() {
        let scratch = scratch("lies");
        let both = r#""x": "a.safetensors", "y": "a.safetensors""#;
        let refused = |text: &str, part: &str| {
            let error = index(&scratch, text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        };
        refused("[]", "the index of the shards is wrong");
        refused("{}", "weight_map");
        refused(
            &format!(r#"{{"weight_map": {{{both}, "w": "b.safetensors"}}}}"#),
            "\"z\" lies in \"b.safetensors\"",
        );
        refused(r#"{"weight_map": {"x": "a.safetensors"}}"#, "\"y\" lies in \"a.safetensors\"");
        refused(&format!(r#"{{"weight_map": {{{both}, "w": "a.safetensors"}}}}"#), "has no tensor \"w\"");
        for path in ["../a.safetensors", "/etc/passwd", "", "..", "sub/a.safetensors", "c:\\a"] {
            let map = serde_json::json!({"weight_map": {"x": path}});
            refused(&map.to_string(), "is no plain file name");
        }
        write(&scratch, "b.safetensors", &["x"]);
        refused(
            r#"{"weight_map": {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"}}"#,
            "two tensors",
        );
    }
}

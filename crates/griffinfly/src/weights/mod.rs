//! Weights: the parameters of a model in the memory of one device.
//!
//! The layout is a function of the ordered parameter set alone, so every program over the same parameters agrees on it:
//! trainers and sessions for any input shape share one `Weights`. The handle is cheap to clone and can be sent to threads.
//!
//! State of the model (running averages) belongs to the programs, because only the graph that updates it knows it. The weights
//! know where the trainer that made the last step has its own, so that other programs over them can follow it. Files hold what
//! inference of the model needs: the parameters, and the running averages of the graph that the weights were made for. Those of
//! a file are followed as if a trainer had left them.
//!
//! Invariants: a parameter without a value is known as such, and a program over it refuses to run; `version` changes
//! whenever parameters do, which is how programs know that what they prepared from them is stale.

mod averages;
mod init;

use crate::checkpoint::{self, Contents, Loading, Source};
use crate::device::Device;
use crate::error::Error;
use crate::tensors::{Entry, Tensors};
use griffinfly_ir::graph::{Graph, LeafKind};
use griffinfly_ir::layout::{ParameterLayout, ParameterSpec, Slot, parameters};
use griffinfly_ir::types::DType;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The parameters of a model on a device.
#[derive(Clone)]
pub struct Weights(Arc<Inner>);

struct Inner {
    tensors: Tensors,
    specs: Vec<ParameterSpec>,
    /// Running averages of the graph as the last file has them, or as they start.
    averages: Arc<Tensors>,
    /// Parameters without a value.
    unset: Mutex<BTreeSet<String>>,
    version: AtomicU64,
    model_state: Mutex<Option<ModelState>>,
}

/// State of the model, such as running averages, as the trainer that made the last step or a file loaded since left it.
#[derive(Clone)]
pub(crate) struct ModelState {
    pub(crate) tensors: Arc<Tensors>,
    /// The version of the weights it belongs to.
    pub(crate) version: u64,
}

impl Weights {
    /// Memory for the parameters of a graph, without values: load a file or set them.
    ///
    /// # Errors
    /// Build errors, a parameter that is not `f32` or over the device's limits, out of memory, device lost.
    pub fn empty(device: &Device, graph: &Graph) -> Result<Weights, Error> {
        graph.finish()?;
        let specs = parameters(graph);
        if let Some(p) = specs.iter().find(|p| p.ty.dtype != DType::F32) {
            let given = "a parameter, and parameters are f32".into();
            return Err(Error::TensorType { name: p.name.clone(), ty: p.ty.clone(), given });
        }
        let tensors = placed(device, &specs)?;
        let averages = Arc::new(averages::initial(device, graph)?);
        let unset = Mutex::new(specs.iter().map(|p| p.name.clone()).collect());
        let (version, model_state) = (AtomicU64::new(1), Mutex::new(None));
        Ok(Weights(Arc::new(Inner { tensors, specs, averages, unset, version, model_state })))
    }

    /// Weights with the initial values the graph declares. A parameter's values depend on the seed and its name only.
    ///
    /// # Errors
    /// As [`Weights::empty`].
    pub fn init(device: &Device, graph: &Graph, seed: u64) -> Result<Weights, Error> {
        let weights = Weights::empty(device, graph)?;
        let tensors = &weights.0.tensors;
        let mut images = tensors.blank();
        for (_, leaf) in graph.leaves() {
            let LeafKind::Parameter { init, .. } = &leaf.kind else { continue };
            let Some(entry) = tensors.find(&leaf.name) else { continue };
            init::fill(tensors.slice_mut(&mut images, entry), *init, seed, &leaf.name);
        }
        crate::tensors::replace(&[(tensors, &images)])?;
        weights.all_set();
        Ok(weights)
    }

    /// The device they live on.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.0.tensors.device()
    }

    /// The names, in order of declaration.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.specs.iter().map(|p| p.name.as_str())
    }

    /// The dimensions of a parameter.
    ///
    /// # Errors
    /// No parameter of this name.
    pub fn dims(&self, name: &str) -> Result<&[usize], Error> {
        self.find(name).map(|e| e.ty.dims.as_slice())
    }

    /// The values of a parameter, row-major.
    ///
    /// # Errors
    /// No parameter of this name, device lost.
    pub fn get(&self, name: &str) -> Result<Vec<f32>, Error> {
        let bytes = self.0.tensors.read(self.find(name)?)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    /// Sets a parameter, row-major.
    ///
    /// # Errors
    /// No parameter of this name, another count of values, device lost.
    pub fn set(&self, name: &str, values: &[f32]) -> Result<(), Error> {
        let entry = self.find(name)?;
        if values.len() != entry.ty.elements() {
            let (ty, given) = (entry.ty.clone(), format!("{} values", values.len()));
            return Err(Error::TensorType { name: name.into(), ty, given });
        }
        self.0.tensors.write(entry, bytemuck::cast_slice(values))?;
        self.unset().remove(name);
        self.changed();
        Ok(())
    }

    /// Loads a file, the files of an index (`model.safetensors.index.json`) or a directory with either: exactly these
    /// parameters and the running averages of the graph that the weights were made for, with their shapes; 16-bit floats widen.
    /// Trainers and sessions over the weights go on from these averages. Optimizer state and other state that a checkpoint
    /// marks as such is passed over. Everything is checked before anything changes.
    ///
    /// # Errors
    /// An unreadable or invalid file; all names, dtypes and shapes that do not fit; device lost.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.load_from(Source::Path(path.as_ref()))
    }

    /// The same with the bytes of a single file; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Weights::load`].
    pub fn load_bytes(&self, bytes: &[u8], name: &str) -> Result<(), Error> {
        self.load_from(Source::Bytes(bytes, name))
    }

    fn load_from(&self, source: Source<'_>) -> Result<(), Error> {
        let sets = [&self.0.tensors, &*self.0.averages];
        let loaded = Loading { source, sets: &sets, other_state: true }.read()?;
        checkpoint::apply(&sets, &loaded)?;
        self.all_set();
        if !self.0.averages.entries().is_empty() {
            self.set_model_state(ModelState { tensors: self.0.averages.clone(), version: self.version() });
        }
        Ok(())
    }

    /// Writes the parameters, and the running averages that go with them, to a safetensors file, as a whole or not at all.
    ///
    /// # Errors
    /// Parameters without a value, an unwritable path, a full disk, device lost.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let averages = self.current_averages()?;
        let metadata = checkpoint::metadata(&[averages]);
        Contents::read(&[&self.0.tensors, averages], metadata)?.write(path.as_ref())
    }

    /// The bytes of the file that [`Weights::save`] would write, without blocking a browser.
    ///
    /// # Errors
    /// Parameters without a value, device lost.
    pub async fn to_bytes_async(&self) -> Result<Vec<u8>, Error> {
        let averages = self.current_averages()?;
        let metadata = checkpoint::metadata(&[averages]);
        Contents::read_async(&[&self.0.tensors, averages], metadata).await?.to_bytes()
    }

    /// The running averages that go with the parameters, which all have a value.
    fn current_averages(&self) -> Result<&Tensors, Error> {
        self.check_set()?;
        let averages = &self.0.averages;
        if let Some(ModelState { tensors, .. }) =
            self.model_state().filter(|s| !Arc::ptr_eq(&s.tensors, averages))
        {
            averages.copy_from(&tensors, |_| true)?;
        }
        Ok(averages)
    }

    /// The parameter set in order.
    pub(crate) fn specs(&self) -> &[ParameterSpec] {
        &self.0.specs
    }

    pub(crate) fn tensors(&self) -> &Tensors {
        &self.0.tensors
    }

    /// Changes whenever parameters change.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Notes that parameters changed, and gives the new version.
    pub(crate) fn changed(&self) -> u64 {
        self.0.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The state of the model that goes with the parameters, if a trainer made steps or a checkpoint was loaded.
    pub(crate) fn model_state(&self) -> Option<ModelState> {
        self.0.model_state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes who has the state of the model.
    pub(crate) fn set_model_state(&self, state: ModelState) {
        *self.0.model_state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// Notes that every parameter has a value.
    pub(crate) fn all_set(&self) {
        self.unset().clear();
        self.changed();
    }

    /// That every parameter has a value.
    pub(crate) fn check_set(&self) -> Result<(), Error> {
        let unset = self.unset();
        if unset.is_empty() { Ok(()) } else { Err(Error::Unset(unset.iter().cloned().collect())) }
    }

    fn unset(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.unset.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Result<&Entry, Error> {
        self.0.tensors.find(name).ok_or_else(|| Error::NoSuchTensor {
            what: "parameter",
            name: name.into(),
            known: self.names().map(Into::into).collect(),
        })
    }
}

/// Tensors of these types in memory of their own, where every program over such a set looks for them.
fn placed(device: &Device, specs: &[ParameterSpec]) -> Result<Tensors, Error> {
    let layout = ParameterLayout::of(specs, device.target().chunk_bytes())?;
    let entry = |(p, slot): (&ParameterSpec, &Slot)| Entry {
        name: p.name.clone(),
        ty: p.ty.clone(),
        arena: slot.chunk as usize,
        offset: slot.offset as usize,
    };
    let entries: Vec<Entry> = specs.iter().zip(&layout.slots).map(entry).collect();
    let buffers: Result<Vec<_>, _> = layout.chunks.iter().map(|b| device.backend().buffer(*b)).collect();
    Ok(Tensors::new(device, entries, buffers?))
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weights({} parameters on {:?})", self.0.specs.len(), self.device())
    }
}

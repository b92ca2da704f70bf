//! Named tensors in device memory: what weights and a session's state have in common.
//!
//! Tensors lie at fixed offsets in arenas, each arena one buffer. Reads and writes go through whole images of the arenas,
//! so that a change of many tensors is a few transfers that are undone when one of them fails.

use crate::device::Device;
use crate::error::Error;
use griffinfly_gpu::{Buffer, GpuError, Later};
use griffinfly_ir::types::TensorType;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A tensor with its place.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) ty: TensorType,
    /// Which buffer.
    pub(crate) arena: usize,
    /// Where in it, in bytes.
    pub(crate) offset: usize,
}

impl Entry {
    /// The bytes of the tensor in an image of its arena.
    fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.ty.bytes()
    }
}

/// The content of all arenas.
pub(crate) type Images = Vec<Vec<u8>>;

/// Tensors and the buffers they lie in.
pub(crate) struct Tensors {
    device: Device,
    entries: Vec<Entry>,
    index: BTreeMap<String, usize>,
    buffers: Vec<Arc<dyn Buffer>>,
}

impl Tensors {
    /// Tensors at places inside these buffers.
    pub(crate) fn new(device: &Device, entries: Vec<Entry>, buffers: Vec<Arc<dyn Buffer>>) -> Tensors {
        let index = entries.iter().enumerate().map(|(i, e)| (e.name.clone(), i)).collect();
        Tensors { device: device.clone(), entries, index, buffers }
    }

    /// Those of the tensors that are wanted, in the same memory; buffers that hold none of them are let go.
    pub(crate) fn subset(&self, wanted: impl Fn(&str) -> bool) -> Tensors {
        let (mut entries, mut buffers, mut arenas) = (Vec::new(), Vec::new(), BTreeMap::new());
        for entry in self.entries.iter().filter(|entry| wanted(&entry.name)) {
            let arena = *arenas.entry(entry.arena).or_insert_with(|| {
                buffers.push(self.buffers[entry.arena].clone());
                buffers.len() - 1
            });
            entries.push(Entry { arena, ..entry.clone() });
        }
        Tensors::new(&self.device, entries, buffers)
    }

    /// Takes over the values of those wanted that `other` has too, with the same type.
    pub(crate) fn copy_from(&self, other: &Tensors, wanted: impl Fn(&str) -> bool) -> Result<(), Error> {
        for entry in self.entries.iter().filter(|entry| wanted(&entry.name)) {
            if let Some(theirs) = other.find(&entry.name).filter(|theirs| theirs.ty == entry.ty) {
                let from = (&other.buffers[theirs.arena], theirs.offset as u64);
                let to = (&self.buffers[entry.arena], entry.offset as u64);
                self.device.backend().copy(from, to, entry.ty.bytes())?;
            }
        }
        Ok(())
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn buffers(&self) -> &[Arc<dyn Buffer>] {
        &self.buffers
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        self.index.get(name).map(|i| &self.entries[*i])
    }

    /// The bytes of one tensor.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; entry.ty.bytes()];
        self.device.backend().read(&self.buffers[entry.arena], entry.offset as u64, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes one tensor; the bytes are as many as it has.
    pub(crate) fn write(&self, entry: &Entry, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.device.backend().write(&self.buffers[entry.arena], entry.offset as u64, bytes)?)
    }

    /// Everything.
    pub(crate) fn images(&self) -> Result<Images, Error> {
        let image = |buffer: &Arc<dyn Buffer>| {
            let mut bytes = vec![0; buffer.bytes() as usize];
            self.device.backend().read(buffer, 0, &mut bytes)?;
            Ok(bytes)
        };
        self.buffers.iter().map(image).collect()
    }

    /// Everything as it is now, to be awaited.
    pub(crate) fn images_later(&self) -> Vec<Later<Vec<u8>>> {
        let backend = self.device.backend();
        self.buffers.iter().map(|buffer| backend.read_async(buffer, 0, buffer.bytes() as usize)).collect()
    }

    /// All zeros, to be filled with [`Tensors::slice_mut`].
    pub(crate) fn blank(&self) -> Images {
        self.buffers.iter().map(|buffer| vec![0; buffer.bytes() as usize]).collect()
    }

    /// A tensor's bytes in images of these arenas.
    pub(crate) fn slice<'a>(&self, images: &'a Images, entry: &Entry) -> &'a [u8] {
        &images[entry.arena][entry.range()]
    }

    /// The same, to be written.
    pub(crate) fn slice_mut<'a>(&self, images: &'a mut Images, entry: &Entry) -> &'a mut [u8] {
        &mut images[entry.arena][entry.range()]
    }
}

/// Replaces the content of several sets together: all of them, or none unless the device is lost.
pub(crate) fn replace(sets: &[(&Tensors, &Images)]) -> Result<(), Error> {
    let writes: Vec<_> = sets
        .iter()
        .flat_map(|(set, images)| set.buffers.iter().zip(*images).map(|(b, image)| (&set.device, b, image)))
        .collect();
    // A single transfer happens or does not; only several need a copy to go back to. A device that cannot be waited for has no
    // transfer that fails on its own: it says so later, when it is lost.
    let mut before = Images::new();
    if writes.len() > 1 {
        for (set, _) in sets {
            match set.images() {
                Err(Error::Gpu(GpuError::WouldBlock { .. })) => {}
                images => before.extend(images?),
            }
        }
    }
    for (i, (device, buffer, image)) in writes.iter().enumerate() {
        let Err(error) = device.backend().write(buffer, 0, image) else { continue };
        for ((device, buffer, _), old) in writes[..i].iter().zip(&before) {
            if let Err(again) = device.backend().write(buffer, 0, old) {
                tracing::error!(%again, "the device cannot be put back as it was");
            }
        }
        return Err(error.into());
    }
    Ok(())
}

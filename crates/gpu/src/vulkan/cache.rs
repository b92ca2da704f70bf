//! The driver's pipeline cache, kept on disk.
//!
//! File: a 32-byte header of ours (magic, length and digest of the rest), then the driver's data. Its name holds vendor,
//! device, driver version, the driver's cache id and our version, so no file is ever offered to another driver. A file that
//! is missing, unreadable or damaged is ignored, and failing to write one is only logged: a cache is never a reason to fail.

use super::adapter::Facts;
use super::context::{Context, Owned};
use crate::error::GpuError;
use ash::vk;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const MAGIC: [u8; 16] = *b"griffinfly-vk-01";
const HEADER_BYTES: usize = 32;
/// Larger files are not ours.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// A pipeline cache and where it is kept.
pub(super) struct PipelineCache {
    handle: Owned<vk::PipelineCache>,
    file: Option<PathBuf>,
    saved_bytes: AtomicUsize,
}

impl PipelineCache {
    /// Loads what is on disk, or starts empty.
    pub(super) fn new(context: &Arc<Context>, directory: Option<&Path>) -> Result<Self, GpuError> {
        let file = directory.map(|directory| directory.join(file_name(&context.facts)));
        let data = file.as_deref().and_then(|file| load(file, &context.facts.properties)).unwrap_or_default();
        let create = |data: &[u8]| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: `data` is empty or was written by this driver, as its header says.
            unsafe { context.raw.create_pipeline_cache(&info, None) }
        };
        let handle = create(&data)
            .or_else(|_| create(&[]))
            .map_err(|result| context.fail("vkCreatePipelineCache", result))?;
        // SAFETY: called once by the owner, after the last use.
        let destroy = |device: &ash::Device, handle| unsafe { device.destroy_pipeline_cache(handle, None) };
        let saved_bytes = AtomicUsize::new(data.len());
        Ok(PipelineCache { handle: Owned::new(context, handle, destroy), file, saved_bytes })
    }

    pub(super) fn handle(&self) -> vk::PipelineCache {
        self.handle.get()
    }

    /// Writes the cache to disk if it grew.
    pub(super) fn save(&self) {
        let Some(file) = &self.file else { return };
        // SAFETY: the cache is alive and internally synchronised.
        let Ok(data) = (unsafe { self.handle.context.raw.get_pipeline_cache_data(self.handle.get()) }) else {
            return;
        };
        if self.saved_bytes.swap(data.len(), Ordering::Relaxed) == data.len() {
            return;
        }
        if let Err(error) = store(file, &data) {
            tracing::warn!(file = %file.display(), %error, "the pipeline cache was not saved");
        }
    }
}

fn file_name(facts: &Facts) -> String {
    let properties = &facts.properties;
    let uuid: String = properties.pipeline_cache_uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "vulkan-{:04x}-{:04x}-{:08x}-{uuid}-{}.bin",
        properties.vendor_id,
        properties.device_id,
        properties.driver_version,
        env!("CARGO_PKG_VERSION")
    )
}

fn load(file: &Path, properties: &vk::PhysicalDeviceProperties) -> Option<Vec<u8>> {
    if std::fs::metadata(file).ok()?.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut data = unpack(std::fs::read(file).ok()?)?;
    if is_of_driver(&data, properties) {
        return Some(std::mem::take(&mut data));
    }
    None
}

fn store(file: &Path, data: &[u8]) -> std::io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let Some(directory) = file.parent() else { return Ok(()) };
    std::fs::create_dir_all(directory)?;
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = file.with_extension(format!("{}-{unique}.tmp", std::process::id()));
    let written = std::fs::File::create(&temporary).and_then(|mut out| {
        out.write_all(&header(data))?;
        out.write_all(data)
    });
    let renamed = written.and_then(|()| std::fs::rename(&temporary, file));
    if renamed.is_err() {
        // Best effort: the first error is the one worth reporting.
        let _removed = std::fs::remove_file(&temporary);
    }
    renamed
}

fn header(data: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(&MAGIC);
    header[16..24].copy_from_slice(&(data.len() as u64).to_le_bytes());
    header[24..].copy_from_slice(&digest(data).to_le_bytes());
    header
}

/// The driver's data of a file of ours, if it is whole.
fn unpack(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let expected = header(file.get(HEADER_BYTES..)?);
    if file.get(..HEADER_BYTES)? != expected {
        return None;
    }
    file.drain(..HEADER_BYTES);
    Some(file)
}

/// FNV-1a over 64 bits.
fn digest(data: &[u8]) -> u64 {
    data.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether the data begins with VkPipelineCacheHeaderVersionOne of this driver.
fn is_of_driver(data: &[u8], properties: &vk::PhysicalDeviceProperties) -> bool {
    let word = |index: usize| {
        let bytes = data.get(index * 4..index * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    word(0).is_some_and(|length| length >= 32)
        && word(1) == Some(1)
        && word(2) == Some(properties.vendor_id)
        && word(3) == Some(properties.device_id)
        && data.get(16..32) == Some(properties.pipeline_cache_uuid.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_ignored() {
        let data = b"some driver data".to_vec();
        let mut file = header(&data).to_vec();
        file.extend(&data);
        assert_eq!(unpack(file.clone()), Some(data));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(unpack(damaged), None);
            assert_eq!(unpack(file[..at].to_vec()), None);
        }
        assert_eq!(unpack(vec![]), None);
    }

    #[test]
    fn data_of_another_driver_is_ignored() {
        let ours = vk::PhysicalDeviceProperties { vendor_id: 7, device_id: 8, ..Default::default() };
        let words: Vec<u8> = [32_u32, 1, 7, 8].iter().flat_map(|word| word.to_le_bytes()).collect();
        let data = [words, vec![0; 16]].concat();
        assert!(is_of_driver(&data, &ours));
        assert!(!is_of_driver(&data, &vk::PhysicalDeviceProperties { device_id: 9, ..ours }));
        assert!(!is_of_driver(&data[..20], &ours));
    }

    #[test]
    fn stores_through_a_temporary_file() {
        let directory = std::env::temp_dir().join(format!("griffinfly-cache-{}", std::process::id()));
        let file = directory.join("a.bin");
        store(&file, b"one").unwrap();
        store(&file, b"two").unwrap();
        assert_eq!(unpack(std::fs::read(&file).unwrap()), Some(b"two".to_vec()));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        std::fs::remove_dir_all(&directory).unwrap();
        let blocked = std::env::temp_dir().join(format!("griffinfly-cache-file-{}", std::process::id()));
        std::fs::write(&blocked, b"").unwrap();
        assert!(store(&blocked.join("a.bin"), b"one").is_err());
        std::fs::remove_file(&blocked).unwrap();
    }
}

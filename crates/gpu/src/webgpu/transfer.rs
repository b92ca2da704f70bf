//! Uploads and downloads outside of steps, after all submitted work.
//!
//! WebGPU copies whole words: a range that begins or ends within one is read first and written with its surroundings. Large
//! ranges go in chunks, so that what lies between host and device stays small.

use super::buffer::{READBACK, create};
use super::context::{Context, lock};
use crate::clock::Instant;
use crate::device::{Later, at_once};
use crate::error::GpuError;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wgpu::{MapMode, SubmissionIndex};

/// How long the answer of a submission that is done may take to come.
const ANSWER: Duration = Duration::from_secs(10);

/// Most bytes on their way at once.
const CHUNK: usize = 64 << 20;

/// Writes bytes into a buffer from an offset on; the range was checked.
pub(super) fn upload(
    context: &Context,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: &[u8],
) -> Result<(), GpuError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let (first, last) = (offset % 4, (offset + bytes.len() as u64) % 4);
    if first != 0 || last != 0 {
        let start = offset - first;
        let mut words = vec![0; (first as usize + bytes.len()).next_multiple_of(4)];
        download(context, buffer, start, &mut words)?;
        words[first as usize..][..bytes.len()].copy_from_slice(bytes);
        return upload(context, buffer, start, &words);
    }
    for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
        let at = offset + (number * CHUNK) as u64;
        context.attempt_often(("an upload", chunk.len() as u64), || {
            context.queue.write_buffer(buffer, at, chunk);
            context.queue.submit([]);
        })?;
    }
    Ok(())
}

/// Reads bytes of a buffer from an offset on; the range was checked.
pub(super) fn download(
    context: &Context,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), GpuError> {
    let first = (offset % 4) as usize;
    if first != 0 || !bytes.len().is_multiple_of(4) {
        let mut words = vec![0; (first + bytes.len()).next_multiple_of(4)];
        download(context, buffer, offset - first as u64, &mut words)?;
        bytes.copy_from_slice(&words[first..][..bytes.len()]);
        return Ok(());
    }
    if bytes.is_empty() {
        return Ok(());
    }
    if cfg!(target_arch = "wasm32") {
        return Err(GpuError::WouldBlock { what: "reading a buffer" });
    }
    let size = bytes.len().min(CHUNK) as u64;
    let staging = create(context, "a download", (size, READBACK))?;
    for (number, chunk) in bytes.chunks_mut(CHUNK).enumerate() {
        let (at, length) = (offset + (number * CHUNK) as u64, chunk.len() as u64);
        let submission = copy(context, (buffer, at), (&staging, 0), length)?;
        let mapping = Mapping::start(context, &staging, length);
        context.wait(Some(submission), None)?;
        mapping.copy(context, &staging, (0, chunk))?;
        staging.unmap();
    }
    Ok(())
}

/// Submits a copy of whole words from a place in a buffer to one in another; the ranges were checked.
pub(super) fn copy(
    context: &Context,
    (from, start): (&wgpu::Buffer, u64),
    (to, end): (&wgpu::Buffer, u64),
    bytes: u64,
) -> Result<SubmissionIndex, GpuError> {
    context.attempt_often(("a copy", bytes), || {
        let mut encoder = context.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(from, start, to, end, bytes);
        context.queue.submit([encoder.finish()])
    })
}

/// Reads bytes of a buffer from an offset on, as they are now, without blocking; the range was checked.
pub(super) fn download_async(
    context: &Arc<Context>,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: usize,
) -> Result<Later<Vec<u8>>, GpuError> {
    if bytes == 0 {
        return Ok(at_once(Ok(Vec::new())));
    }
    let first = offset % 4;
    let length = (first + bytes as u64).next_multiple_of(4);
    let staging = create(context, "a download", (length, READBACK))?;
    copy(context, (buffer, offset - first), (&staging, 0), length)?;
    let mapping = Mapping::start(context, &staging, length);
    let context = context.clone();
    // In a browser a buffer that is only dropped keeps its memory until somebody collects it.
    let staging = Destroyed(staging);
    Ok(Box::pin(async move {
        let answered = mapping.clone();
        context.clone().until("read", move || answered.is_answered()).await?;
        let mut words = vec![0; length as usize];
        mapping.copy(&context, &staging.0, (0, &mut words))?;
        words.drain(..first as usize);
        words.truncate(bytes);
        Ok(words)
    }))
}

/// A buffer that gives its memory back when it goes, also with a future that nobody awaits any more.
struct Destroyed(wgpu::Buffer);

impl Drop for Destroyed {
    fn drop(&mut self) {
        self.0.destroy();
    }
}

/// A buffer on its way to be readable by the host.
#[derive(Clone)]
pub(super) struct Mapping(Arc<Mutex<Option<bool>>>);

impl Mapping {
    /// Asks for the first bytes of a buffer.
    pub(super) fn start(context: &Context, buffer: &wgpu::Buffer, bytes: u64) -> Self {
        let state = Arc::new(Mutex::new(None));
        let (told, ring) = (state.clone(), context.bell());
        buffer.slice(..bytes).map_async(MapMode::Read, move |result| {
            *lock(&told) = Some(result.is_ok());
            ring();
        });
        Mapping(state)
    }

    /// Whether it is readable, or was refused.
    pub(super) fn is_answered(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Copies bytes from an offset on to the host; the submission that wrote them is done.
    pub(super) fn copy(
        &self,
        context: &Context,
        buffer: &wgpu::Buffer,
        (offset, bytes): (u64, &mut [u8]),
    ) -> Result<(), GpuError> {
        // Another thread that asked the device may have taken the answer and not passed it on yet.
        let start = Instant::now();
        while lock(&self.0).is_none() && !context.is_lost() {
            context.poll();
            if cfg!(target_arch = "wasm32") {
                return Err(GpuError::WouldBlock { what: "reading outputs" });
            }
            if start.elapsed() > ANSWER {
                break;
            }
            std::thread::yield_now();
        }
        match *lock(&self.0) {
            Some(true) => {}
            Some(false) => return Err(self.failed(context, "it was refused")),
            None => return Err(self.failed(context, "it is not done yet")),
        }
        let range = buffer.slice(offset..offset + bytes.len() as u64).get_mapped_range();
        let range = range.map_err(|error| self.failed(context, &error.to_string()))?;
        bytes.copy_from_slice(&range);
        Ok(())
    }

    fn failed(&self, context: &Context, why: &str) -> GpuError {
        if context.is_lost() {
            return context.lost("read");
        }
        GpuError::Driver { call: "mapAsync", result: why.into() }
    }
}

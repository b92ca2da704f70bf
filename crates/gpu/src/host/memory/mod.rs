//! The memory of the host device: zeroed, aligned words shared by threads, and checked views of them.
//!
//! This module (with `product` below it) is the only place of the host backend that touches memory with `unsafe` code.
//! What makes it sound:
//!
//! * all access goes through the device's lock: reads and writes by the user and whole steps exclude each other;
//! * dispatches of a step run one after another; within one, threads write disjoint elements, because a store is a
//!   bijection (proved by the loop verifier) and each point belongs to one task;
//! * a range that a dispatch writes overlaps a range it reads only exactly in place, and then every point reads just the
//!   element it writes (proved by `host::overlap` when a program is instantiated);
//! * elements are copied through raw pointers into registers and back; no reference to arena memory is ever made;
//! * every access is checked against the view: what lies outside reads as zero and is not written.
#![allow(unsafe_code, reason = "shared words written by disjoint tasks; every use carries its argument")]

pub(super) mod product;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Alignment of every allocation in bytes.
const ALIGNMENT: usize = 256;

/// Zeroed words, shared.
pub(super) struct Words {
    start: NonNull<u32>,
    layout: Layout,
}

// SAFETY: `Words` owns its allocation; the module's rules exclude conflicting accesses.
unsafe impl Send for Words {}
// SAFETY: as above: shared access is to disjoint elements or under the device's lock.
unsafe impl Sync for Words {}

impl Words {
    /// Zeroed words of at least `bytes` bytes, or nothing if the system refuses.
    pub(super) fn zeroed(bytes: u64) -> Option<Arc<Words>> {
        let bytes = usize::try_from(bytes).ok()?.max(4).checked_next_multiple_of(ALIGNMENT)?;
        let layout = Layout::from_size_align(bytes, ALIGNMENT).ok()?;
        // SAFETY: the size of the layout is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Arc::new(Words { start: start.cast(), layout }))
    }

    /// Sets all words.
    pub(super) fn fill(&self, word: u32) {
        for i in 0..self.layout.size() / 4 {
            self.write_bytes(4 * i, &word.to_ne_bytes());
        }
    }

    /// Copies bytes in, if the range is inside.
    pub(super) fn write_bytes(&self, offset: usize, bytes: &[u8]) -> bool {
        let inside = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.layout.size());
        if inside {
            // SAFETY: the range is inside the allocation and `bytes` is not part of it (no references to it exist).
            unsafe {
                let to = self.start.as_ptr().cast::<u8>().add(offset);
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        inside
    }

    /// Copies bytes out, if the range is inside.
    pub(super) fn read_bytes(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let inside = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.layout.size());
        if inside {
            // SAFETY: as in `write_bytes`; the allocation is initialised (zeroed at creation).
            unsafe {
                let from = self.start.as_ptr().cast::<u8>().add(offset);
                bytes.as_mut_ptr().copy_from_nonoverlapping(from, bytes.len());
            }
        }
        inside
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
    }
}

/// Copies words; short runs are too many to call a function for each.
///
/// # Safety
/// Both are valid for `n` words and do not overlap.
#[inline(always)]
unsafe fn copy(from: *const u32, to: *mut u32, n: usize) {
    /// Words copied at once.
    const STEP: usize = 4;
    // SAFETY: as the caller promises; the last step of a short run overlaps the one before it.
    unsafe {
        match n {
            0..STEP => (0..n).for_each(|i| to.add(i).write(from.add(i).read())),
            STEP..=16 => {
                let mut i = 0;
                while i + STEP < n {
                    to.add(i)
                        .cast::<[u32; STEP]>()
                        .write_unaligned(from.add(i).cast::<[u32; STEP]>().read_unaligned());
                    i += STEP;
                }
                let last = n - STEP;
                let words = from.add(last).cast::<[u32; STEP]>().read_unaligned();
                to.add(last).cast::<[u32; STEP]>().write_unaligned(words);
            }
            _ => to.copy_from_nonoverlapping(from, n),
        }
    }
}

/// A range of words.
#[derive(Clone)]
pub(super) struct View {
    words: Arc<Words>,
    start: usize,
    len: usize,
}

impl View {
    /// Words `start..start + len`, if that is inside.
    pub(super) fn new(words: &Arc<Words>, start: usize, len: usize) -> Option<View> {
        let end = start.checked_add(len)?;
        (end <= words.layout.size() / 4).then(|| View { words: words.clone(), start, len })
    }

    /// Whether `base + stride * (0..n)` is inside.
    fn covers(&self, base: i64, stride: i64, n: usize) -> bool {
        let last = base + stride * (n as i64 - 1);
        base >= 0 && last >= 0 && base.max(last) < self.len as i64
    }

    fn pointer(&self) -> *mut u32 {
        // SAFETY: `start` is inside the allocation.
        unsafe { self.words.start.as_ptr().add(self.start) }
    }

    /// Reads `out.len()` words at `base`, `base + stride`, ...
    pub(super) fn read_run(&self, base: i64, stride: i64, out: &mut [u32]) {
        if out.is_empty() || !self.covers(base, stride, out.len()) {
            out.fill(0);
            return;
        }
        // SAFETY: first and last word are inside the view, so all are.
        unsafe {
            let from = self.pointer().offset(base as isize);
            match stride {
                0 => out.fill(from.read()),
                1 => copy(from, out.as_mut_ptr(), out.len()),
                _ => {
                    for (j, o) in out.iter_mut().enumerate() {
                        *o = from.offset(j as isize * stride as isize).read();
                    }
                }
            }
        }
    }

    /// Reads the words at `base` plus `offsets`; `fill` where an offset is negative (or outside).
    pub(super) fn gather(&self, base: i64, offsets: &[i32], fill: u32, out: &mut [u32]) {
        let (from, len) = (self.pointer(), self.len);
        for (&offset, o) in offsets.iter().zip(out) {
            // Places before the view become huge.
            let at = (base + i64::from(offset)) as u64 as usize;
            // SAFETY: checked to be inside the view.
            *o = if (offset >= 0) & (at < len) { unsafe { from.add(at).read() } } else { fill };
        }
    }

    /// Writes `values` at `base`, `base + stride`, ...
    pub(super) fn write_run(&self, base: i64, stride: i64, values: &[u32]) {
        if values.is_empty() || !self.covers(base, stride, values.len()) {
            return;
        }
        // SAFETY: first and last word are inside the view, so all are; `values` lies outside arena memory.
        unsafe {
            let to = self.pointer().offset(base as isize);
            if stride == 1 {
                copy(values.as_ptr(), to, values.len());
                return;
            }
            for (j, v) in values.iter().enumerate() {
                to.offset(j as isize * stride as isize).write(*v);
            }
        }
    }

    /// Writes `values` at `offsets`.
    pub(super) fn scatter(&self, offsets: &[i32], values: &[u32]) {
        let to = self.pointer();
        for (&at, v) in offsets.iter().zip(values) {
            if at >= 0 && (at as usize) < self.len {
                // SAFETY: checked to be inside the view.
                unsafe { to.add(at as usize).write(*v) }
            }
        }
    }

    /// Adds floats to the floats at `base`, `base + 1`, ...
    pub(super) fn add_run(&self, base: i64, values: &[f32]) {
        if values.is_empty() || !self.covers(base, 1, values.len()) {
            return;
        }
        // SAFETY: first and last word are inside the view, so all are; every bit pattern is a float.
        unsafe {
            let to = self.pointer().offset(base as isize).cast::<f32>();
            for (j, v) in values.iter().enumerate() {
                to.add(j).write(to.add(j).read() + v);
            }
        }
    }
}

//! Buffers: one allocation each, since arenas are few and large.
//!
//! Invariants: sizes are checked against the device's limits before anything is allocated; memory of a mapped buffer is
//! host-coherent and stays mapped; handles are destroyed once, buffer before memory.

use super::context::{Context, Owned};
use crate::device::Buffer;
use crate::error::GpuError;
use crate::stepping::bound::range_error;
use ash::vk;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Where a buffer should lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Fastest for kernels.
    Device,
    /// Written by the host, read by kernels.
    Upload,
    /// Written by the device, read by the host.
    Readback,
}

impl Home {
    /// Required flags, then flags that are better to have.
    fn flags(self) -> (vk::MemoryPropertyFlags, vk::MemoryPropertyFlags) {
        use vk::MemoryPropertyFlags as Flags;
        let mapped = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
        match self {
            Home::Device => (Flags::empty(), Flags::DEVICE_LOCAL),
            Home::Upload => (mapped, Flags::DEVICE_LOCAL),
            Home::Readback => (mapped, Flags::HOST_CACHED),
        }
    }
}

/// What a buffer is for, in errors.
pub(super) struct Request<'a> {
    pub(super) what: &'a str,
    pub(super) bytes: u64,
    pub(super) home: Home,
}

/// A buffer with its own memory.
pub(super) struct RawBuffer {
    // Field order is drop order.
    buffer: Owned<vk::Buffer>,
    _memory: Owned<vk::DeviceMemory>,
    mapped: Option<NonNull<u8>>,
    bytes: u64,
}

// SAFETY: the mapped pointer is only used through `&mut self` or through `read`/`write`, whose callers own the range.
unsafe impl Send for RawBuffer {}
// SAFETY: shared access reads plain fields; see `Send` for the mapped range.
unsafe impl Sync for RawBuffer {}

impl RawBuffer {
    /// Allocates; contents are undefined until cleared or written.
    pub(super) fn new(context: &Arc<Context>, request: &Request<'_>) -> Result<Self, GpuError> {
        context.alive("vkAllocateMemory")?;
        let limit = context.target.max_buffer_bytes;
        if request.bytes > limit {
            return Err(GpuError::Limit {
                what: format!("the size of {} in bytes", request.what),
                value: request.bytes,
                limit,
                device: context.info.name.clone(),
            });
        }
        // A buffer must not be empty, and clearing works on whole words.
        let bytes = request.bytes.max(4).checked_next_multiple_of(4).unwrap_or(u64::MAX - 3);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: size and usage are valid; the queue family is the only one.
        let handle = unsafe { context.raw.create_buffer(&info, None) }
            .map_err(|result| out_of_memory(context, request, "vkCreateBuffer", result))?;
        // SAFETY: called once by the owner, after the last use.
        let buffer =
            Owned::new(context, handle, |device, handle| unsafe { device.destroy_buffer(handle, None) });
        let memory = allocate(context, handle, request)?;
        // SAFETY: the memory is large enough, of an allowed type and unbound.
        unsafe { context.raw.bind_buffer_memory(handle, memory.get(), 0) }
            .map_err(|result| out_of_memory(context, request, "vkBindBufferMemory", result))?;
        let mapped = if request.home == Home::Device { None } else { Some(map(context, memory.get())?) };
        Ok(RawBuffer { buffer, _memory: memory, mapped, bytes: request.bytes })
    }

    pub(super) fn handle(&self) -> vk::Buffer {
        self.buffer.get()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.buffer.context
    }

    /// Copies into mapped memory. The device must not be using the range.
    pub(super) fn write_mapped(&mut self, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        let at = self.mapped_range(offset, bytes.len())?;
        // SAFETY: the range lies in the mapping; `&mut self` excludes other host accesses, the caller the device's.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        Ok(())
    }

    /// Copies out of mapped memory. The device must not be writing the range.
    pub(super) fn read_mapped(&self, offset: u64, bytes: &mut [u8]) -> Result<(), GpuError> {
        let at = self.mapped_range(offset, bytes.len())?;
        // SAFETY: the range lies in the mapping; writing it needs `&mut self`, and the caller excludes the device.
        unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Fills the mapped memory with a word.
    pub(super) fn fill_mapped(&mut self, word: u32) -> Result<(), GpuError> {
        let words = usize::try_from(self.bytes).unwrap_or(usize::MAX) / 4;
        let at = self.mapped_range(0, words * 4)?.cast::<u32>();
        for i in 0..words {
            // SAFETY: as in `write_mapped`; mapped memory is aligned far beyond a word.
            unsafe { at.add(i).write_unaligned(word) };
        }
        Ok(())
    }

    fn mapped_range(&self, offset: u64, length: usize) -> Result<*mut u8, GpuError> {
        let inside = offset.checked_add(length as u64).is_some_and(|end| end <= self.bytes);
        match (self.mapped, usize::try_from(offset)) {
            // SAFETY: `offset` lies inside the mapping.
            (Some(start), Ok(offset)) if inside => Ok(unsafe { start.as_ptr().add(offset) }),
            _ => Err(range_error("a mapped buffer", offset, length as u64, self.bytes)),
        }
    }
}

fn out_of_memory(
    context: &Context,
    request: &Request<'_>,
    call: &'static str,
    result: vk::Result,
) -> GpuError {
    match result {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            GpuError::OutOfMemory { what: request.what.into(), bytes: request.bytes }
        }
        other => context.fail(call, other),
    }
}

/// Memory for a buffer: the best allowed type that still has room.
fn allocate(
    context: &Arc<Context>,
    buffer: vk::Buffer,
    request: &Request<'_>,
) -> Result<Owned<vk::DeviceMemory>, GpuError> {
    let fail = |result| out_of_memory(context, request, "vkAllocateMemory", result);
    context.faults.allocation().map_err(fail)?;
    // SAFETY: the buffer was just created.
    let needs = unsafe { context.raw.get_buffer_memory_requirements(buffer) };
    let mut last = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    for index in types(context, needs.memory_type_bits, request.home) {
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(index);
        // SAFETY: the type is allowed for this buffer.
        match unsafe { context.raw.allocate_memory(&info, None) } {
            Ok(memory) => {
                // SAFETY: called once by the owner, after the buffer was destroyed.
                let free = |device: &ash::Device, memory| unsafe { device.free_memory(memory, None) };
                return Ok(Owned::new(context, memory, free));
            }
            Err(result) => last = result,
        }
    }
    Err(fail(last))
}

/// Allowed memory types with the required flags: those with all preferred flags first, the driver's order otherwise.
fn types(context: &Context, allowed: u32, home: Home) -> Vec<u32> {
    let (required, preferred) = home.flags();
    let all = context.facts.memory.memory_types_as_slice();
    let flags =
        |index: &u32| all.get(*index as usize).map_or(vk::MemoryPropertyFlags::empty(), |t| t.property_flags);
    let special = vk::MemoryPropertyFlags::PROTECTED | vk::MemoryPropertyFlags::LAZILY_ALLOCATED;
    let usable = |index: &u32| {
        allowed & (1 << index) != 0 && flags(index).contains(required) && !flags(index).intersects(special)
    };
    let mut found: Vec<u32> = (0..context.facts.memory.memory_type_count).filter(usable).collect();
    found.sort_by_key(|index| !flags(index).contains(preferred));
    found
}

fn map(context: &Context, memory: vk::DeviceMemory) -> Result<NonNull<u8>, GpuError> {
    // SAFETY: the memory is host-visible, not mapped yet, and stays mapped until freed.
    let at = unsafe { context.raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
        .map_err(|result| context.fail("vkMapMemory", result))?;
    NonNull::new(at.cast()).ok_or_else(|| context.fail("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED))
}

/// A persistent buffer handed to the caller.
pub(super) struct VulkanBuffer(pub(super) RawBuffer);

impl Buffer for VulkanBuffer {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Recognises a buffer of this device.
pub(super) fn own<'a>(context: &Arc<Context>, buffer: &'a dyn Buffer) -> Result<&'a RawBuffer, GpuError> {
    match buffer.as_any().downcast_ref::<VulkanBuffer>() {
        Some(own) if Arc::ptr_eq(own.0.context(), context) => Ok(&own.0),
        _ => Err(GpuError::Usage {
            what: "a buffer".into(),
            detail: format!("it belongs to another device than {}", context.info.name),
        }),
    }
}

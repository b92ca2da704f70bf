//! The logical device and its queue: submission, waiting, the lost flag, and owners of raw handles.
//!
//! Invariants: the queue is used under its lock only; once the device is lost every further call says so; a failed
//! submission leaves semaphores and memory as they were (specification of vkQueueSubmit).

use super::adapter::{Adapter, Facts};
use super::faults::FaultPlan;
use super::instance::{Instance, creation_lock, no_device};
use super::matrices;
use crate::device::DeviceInfo;
use crate::error::GpuError;
use ash::{khr, vk};
use griffinfly_ir::target::Target;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Everything that lives as long as the last user of the device.
pub(super) struct Context {
    pub(super) raw: ash::Device,
    queue: Mutex<vk::Queue>,
    timeline: Timeline,
    pub(super) facts: Facts,
    pub(super) info: DeviceInfo,
    pub(super) target: Target,
    pub(super) faults: FaultPlan,
    lost: AtomicBool,
    /// Semaphores whose owners are gone: see [`Clock`].
    retired: Mutex<Vec<vk::Semaphore>>,
    /// Dropped after the device was destroyed.
    pub(super) instance: Instance,
}

/// Timeline semaphore calls: version 1.2 or extension.
enum Timeline {
    Core,
    Extension(khr::timeline_semaphore::Device),
}

/// Command buffers to run in order, and what is signalled when they are done.
pub(super) struct Submission<'a> {
    pub(super) commands: &'a [vk::CommandBuffer],
    pub(super) semaphore: vk::Semaphore,
    pub(super) value: u64,
}

impl Context {
    pub(super) fn new(instance: Instance, adapter: Adapter, faults: FaultPlan) -> Result<Self, GpuError> {
        let creation = creation_lock();
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(adapter.facts.family)
            .queue_priorities(&priorities)];
        let names: Vec<_> = adapter.facts.extensions.iter().map(|name| name.as_ptr()).collect();
        let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
            .pipeline_executable_info(true);
        let mut info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names)
            .push_next(&mut timeline);
        if adapter.facts.statistics {
            info = info.push_next(&mut statistics);
        }
        let mut matrices = matrices::Features::of(&adapter.target.matrix_formats);
        info = matrices.chain(info);
        // SAFETY: the adapter has what `info` asks for, as found when it was described.
        let raw = unsafe { instance.raw.create_device(adapter.physical, &info, None) }
            .map_err(|result| no_device(format!("{}: vkCreateDevice failed: {result}", adapter.info.name)))?;
        drop(creation);
        // SAFETY: one queue of this family was asked for.
        let queue = unsafe { raw.get_device_queue(adapter.facts.family, 0) };
        let timeline = if adapter.facts.timeline_extension {
            Timeline::Extension(khr::timeline_semaphore::Device::new(&instance.raw, &raw))
        } else {
            Timeline::Core
        };
        Ok(Context {
            raw,
            queue: Mutex::new(queue),
            timeline,
            info: adapter.device_info(),
            target: adapter.target,
            facts: adapter.facts,
            faults,
            lost: AtomicBool::new(false),
            retired: Mutex::new(Vec::new()),
            instance,
        })
    }

    /// The error of a failed call; remembers a lost device.
    pub(super) fn fail(&self, call: &'static str, result: vk::Result) -> GpuError {
        if result == vk::Result::ERROR_DEVICE_LOST {
            self.lost.store(true, Ordering::Release);
            return GpuError::DeviceLost { device: self.info.name.clone(), during: call };
        }
        GpuError::Driver { call, result: result.to_string() }
    }

    /// An error once the device is lost.
    pub(super) fn alive(&self, during: &'static str) -> Result<(), GpuError> {
        if self.lost.load(Ordering::Acquire) {
            return Err(GpuError::DeviceLost { device: self.info.name.clone(), during });
        }
        Ok(())
    }

    pub(super) fn submit(&self, submission: &Submission<'_>) -> Result<(), GpuError> {
        self.alive("vkQueueSubmit")?;
        let fail = |result| self.fail("vkQueueSubmit", result);
        self.faults.submit().map_err(fail)?;
        let (semaphores, values) = ([submission.semaphore], [submission.value]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = vk::SubmitInfo::default()
            .command_buffers(submission.commands)
            .signal_semaphores(&semaphores)
            .push_next(&mut timeline);
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the queue is locked; commands and semaphore live until their owner waited for `value`.
        unsafe { self.raw.queue_submit(*queue, &[info], vk::Fence::null()) }.map_err(fail)
    }

    /// A clock at 0.
    pub(super) fn clock(self: &Arc<Self>) -> Result<Clock, GpuError> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(semaphore) = retired {
            // Dropped on failure, the clock goes back to the retired ones.
            let mut clock = Clock { semaphore, zero: 0, context: self.clone() };
            clock.zero = self.reached(semaphore)?;
            return Ok(clock);
        }
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the timeline feature is enabled.
        let semaphore = unsafe { self.raw.create_semaphore(&info, None) }
            .map_err(|result| self.fail("vkCreateSemaphore", result))?;
        Ok(Clock { semaphore, zero: 0, context: self.clone() })
    }

    /// The value a timeline semaphore has reached.
    fn reached(&self, semaphore: vk::Semaphore) -> Result<u64, GpuError> {
        self.alive("vkGetSemaphoreCounterValue")?;
        // SAFETY: the semaphore belongs to this device and is alive.
        let result = unsafe {
            match &self.timeline {
                Timeline::Core => self.raw.get_semaphore_counter_value(semaphore),
                Timeline::Extension(calls) => calls.get_semaphore_counter_value(semaphore),
            }
        };
        match result {
            // Some drivers answer the largest value instead of an error when the device is gone.
            Ok(u64::MAX) => Err(self.fail("vkGetSemaphoreCounterValue", vk::Result::ERROR_DEVICE_LOST)),
            Ok(value) => Ok(value),
            Err(result) => Err(self.fail("vkGetSemaphoreCounterValue", result)),
        }
    }

    /// Waits until a timeline semaphore reaches a value; false when the time was over first.
    fn wait(&self, semaphore: vk::Semaphore, value: u64, nanoseconds: u64) -> Result<bool, GpuError> {
        self.alive("vkWaitSemaphores")?;
        match self.wait_raw(semaphore, value, nanoseconds) {
            Ok(()) => self.alive("vkWaitSemaphores").map(|()| true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(result) => Err(self.fail("vkWaitSemaphores", result)),
        }
    }

    /// Waits without time limit before handles are destroyed, also when a failure was injected; a lost device is done too.
    fn drain(&self, semaphore: vk::Semaphore, value: u64) {
        if let Err(result) = self.wait_raw(semaphore, value, u64::MAX) {
            tracing::warn!(%result, "waiting for the device before releasing its memory failed");
        }
    }

    fn wait_raw(&self, semaphore: vk::Semaphore, value: u64, nanoseconds: u64) -> Result<(), vk::Result> {
        let (semaphores, values) = ([semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the semaphore belongs to this device and is alive.
        unsafe {
            match &self.timeline {
                Timeline::Core => self.raw.wait_semaphores(&info, nanoseconds),
                Timeline::Extension(calls) => calls.wait_semaphores(&info, nanoseconds),
            }
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _creation = creation_lock();
        // SAFETY: every owner of a child handle held an `Arc` of this value, so none is left.
        unsafe {
            if let Err(result) = self.raw.device_wait_idle() {
                tracing::warn!(%result, "the device did not become idle before it was destroyed");
            }
            let retired = std::mem::take(self.retired.get_mut().unwrap_or_else(PoisonError::into_inner));
            retired.into_iter().for_each(|semaphore| self.raw.destroy_semaphore(semaphore, None));
            self.raw.destroy_device(None);
        }
    }
}

/// A timeline semaphore that counts from 0 for its owner.
///
/// The semaphore outlives its owner and serves the next one: Mesa's submission thread still touches a semaphore for a moment after
/// those who waited for its value went on, so it must not be destroyed as soon as the specification allows.
pub(super) struct Clock {
    semaphore: vk::Semaphore,
    /// The value at which this owner began.
    zero: u64,
    context: Arc<Context>,
}

impl Clock {
    pub(super) fn semaphore(&self) -> vk::Semaphore {
        self.semaphore
    }

    /// The semaphore's value at the owner's time.
    pub(super) fn at(&self, time: u64) -> u64 {
        self.zero + time
    }

    /// The owner's time now.
    pub(super) fn now(&self) -> Result<u64, GpuError> {
        self.context.reached(self.semaphore).map(|value| value.saturating_sub(self.zero))
    }

    /// Waits for a time; false when the limit was over first.
    pub(super) fn wait(&self, time: u64, nanoseconds: u64) -> Result<bool, GpuError> {
        self.context.wait(self.semaphore, self.at(time), nanoseconds)
    }

    /// Waits without limit before handles are destroyed.
    pub(super) fn drain(&self, time: u64) {
        self.context.drain(self.semaphore, self.at(time));
    }
}

/// The owner has waited for its last time.
impl Drop for Clock {
    fn drop(&mut self) {
        self.context.retired.lock().unwrap_or_else(PoisonError::into_inner).push(self.semaphore);
    }
}

/// A raw handle that is destroyed once, with the device kept alive until then.
pub(super) struct Owned<H: Copy> {
    handle: H,
    destroy: fn(&ash::Device, H),
    pub(super) context: Arc<Context>,
}

impl<H: Copy> Owned<H> {
    pub(super) fn new(context: &Arc<Context>, handle: H, destroy: fn(&ash::Device, H)) -> Self {
        Owned { handle, destroy, context: context.clone() }
    }

    pub(super) fn get(&self) -> H {
        self.handle
    }
}

impl<H: Copy> Drop for Owned<H> {
    fn drop(&mut self) {
        (self.destroy)(&self.context.raw, self.handle);
    }
}

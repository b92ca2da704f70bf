//! Device and queue, and what can go wrong with them.
//!
//! Errors of WebGPU are caught by error scopes around the calls that may cause them; natively the answer is there at once. In a
//! browser it arrives later, so there it is kept and the next call returns it.

use crate::device::DeviceInfo;
use crate::error::GpuError;
use griffinfly_ir::target::Target;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;
use wgpu::{Error, ErrorFilter, PollType, SubmissionIndex};

/// An opened device.
pub(super) struct Context {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) info: DeviceInfo,
    pub(super) target: Target,
    pub(super) has_timestamps: bool,
    ownership: Ownership,
    state: Arc<State>,
}

/// What callbacks tell.
#[derive(Default)]
struct State {
    /// Why the device was lost, if it was.
    lost: Mutex<Option<String>>,
    /// The first error that nobody caught.
    uncaught: Mutex<Option<GpuError>>,
    /// Who waits for any news, in a browser.
    listeners: Mutex<Vec<Waker>>,
}

/// Whose device it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Opened here: its callbacks are ours.
    Ours,
    /// The application's, which has callbacks of its own.
    Theirs,
}

impl Context {
    pub(super) fn new(
        (device, queue): (wgpu::Device, wgpu::Queue),
        (info, target): (DeviceInfo, Target),
        ownership: Ownership,
    ) -> Self {
        let state = Arc::new(State::default());
        if ownership == Ownership::Ours {
            let lost = state.clone();
            device.set_device_lost_callback(move |reason, message| {
                lost.lose(format!("{reason:?}: {message}"));
            });
            let uncaught = state.clone();
            device.on_uncaptured_error(Arc::new(move |error| uncaught.keep(typed(&error, "a call", 0))));
        }
        let has_timestamps = device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        Context { device, queue, info, target, has_timestamps, ownership, state }
    }

    /// That the device is there, and nothing went wrong unnoticed. The device is asked: what is submitted to a lost one is dropped
    /// without a word.
    pub(super) fn alive(&self, during: &'static str) -> Result<(), GpuError> {
        self.poll();
        self.told(during)
    }

    /// The same by what was told already, without asking.
    pub(super) fn told(&self, during: &'static str) -> Result<(), GpuError> {
        if self.is_lost() {
            return Err(self.lost(during));
        }
        match lock(&self.state.uncaught).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Runs calls that may fail; `bytes` is what they allocate.
    pub(super) fn attempt<T>(
        &self,
        (what, bytes): (&str, u64),
        calls: impl FnOnce() -> T,
    ) -> Result<T, GpuError> {
        let filters = [ErrorFilter::OutOfMemory, ErrorFilter::Internal, ErrorFilter::Validation];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let value = calls();
        let mut first = None;
        for scope in scopes.into_iter().rev() {
            if let Some(error) = self.answer(scope.pop(), what, bytes) {
                first.get_or_insert(error);
            }
        }
        let Some(error) = first else { return Ok(value) };
        // A device that was destroyed says so when it is asked the next time.
        self.poll();
        Err(if self.is_lost() { self.lost("a call") } else { error })
    }

    /// The same for the calls of a step. In a browser, errors of our own device then come from its callback: scopes would cost more
    /// than such calls.
    pub(super) fn attempt_often<T>(
        &self,
        what: (&str, u64),
        calls: impl FnOnce() -> T,
    ) -> Result<T, GpuError> {
        if cfg!(target_arch = "wasm32") && self.ownership == Ownership::Ours {
            return Ok(calls());
        }
        self.attempt(what, calls)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn answer(&self, scope: impl Future<Output = Option<Error>>, what: &str, bytes: u64) -> Option<GpuError> {
        ready(scope).flatten().map(|error| typed(&error, what, bytes))
    }

    /// The answer comes when the browser has the thread again.
    #[cfg(target_arch = "wasm32")]
    fn answer(
        &self,
        scope: impl Future<Output = Option<Error>> + 'static,
        what: &str,
        bytes: u64,
    ) -> Option<GpuError> {
        let (state, what) = (self.state.clone(), what.to_owned());
        wasm_bindgen_futures::spawn_local(async move {
            if let Some(error) = scope.await {
                state.keep(typed(&error, &what, bytes));
            }
        });
        None
    }

    /// Waits for a submission. `Ok(false)` if it is not done in time.
    pub(super) fn wait(
        &self,
        submission: Option<SubmissionIndex>,
        timeout: Option<Duration>,
    ) -> Result<bool, GpuError> {
        match self.ask(PollType::Wait { submission_index: submission, timeout }) {
            Ok(_) if self.is_lost() => Err(self.lost("wait")),
            Ok(_) => Ok(true),
            Err(wgpu::PollError::Timeout) if self.is_lost() => Err(self.lost("wait")),
            Err(wgpu::PollError::Timeout) => Ok(false),
            Err(error) => Err(GpuError::Driver { call: "poll", result: error.to_string() }),
        }
    }

    /// Lets callbacks of what is done run.
    pub(super) fn poll(&self) {
        // What this says is known from the callbacks.
        let _ = self.ask(PollType::Poll);
    }

    /// Asks the device. `wgpu` has no error for a device that is lost while it is asked: it panics, after its callbacks ran. That
    /// becomes the loss it is, where panics can be caught.
    fn ask(&self, poll: PollType) -> Result<wgpu::PollStatus, wgpu::PollError> {
        if self.is_lost() {
            return Ok(wgpu::PollStatus::QueueEmpty);
        }
        caught(|| self.device.poll(poll)).unwrap_or_else(|| {
            self.state.lose("it failed while it was asked".into());
            Ok(wgpu::PollStatus::QueueEmpty)
        })
    }

    /// Waits, without blocking, until something is done whose callback rings, or until the device fails. Natively the device has to be
    /// asked before callbacks run, so there it is asked whenever this is polled.
    pub(super) async fn until(
        self: Arc<Self>,
        during: &'static str,
        mut is_done: impl FnMut() -> bool,
    ) -> Result<(), GpuError> {
        poll_fn(move |task| {
            self.poll();
            if let Err(error) = self.told(during) {
                return Poll::Ready(Err(error));
            }
            if is_done() {
                return Poll::Ready(Ok(()));
            }
            // A browser runs callbacks between polls only, so none is missed.
            if cfg!(target_arch = "wasm32") {
                lock(&self.state.listeners).push(task.waker().clone());
            } else {
                task.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// What callbacks do when they are through.
    pub(super) fn bell(&self) -> impl Fn() + Send + Sync + 'static {
        let state = self.state.clone();
        move || state.ring()
    }

    pub(super) fn is_lost(&self) -> bool {
        lock(&self.state.lost).is_some()
    }

    pub(super) fn lost(&self, during: &'static str) -> GpuError {
        if let Some(reason) = &*lock(&self.state.lost) {
            tracing::error!(device = %self.info.name, %reason, during, "the device was lost");
        }
        GpuError::DeviceLost { device: self.info.name.clone(), during }
    }
}

impl State {
    fn lose(&self, reason: String) {
        lock(&self.lost).get_or_insert(reason);
        self.ring();
    }

    fn keep(&self, error: GpuError) {
        lock(&self.uncaught).get_or_insert(error);
        self.ring();
    }

    /// Wakes who waits, to look again, with the list free for them.
    fn ring(&self) {
        let waiting = std::mem::take(&mut *lock(&self.listeners));
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The result of a future that is ready at once, as all of native WebGPU are.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// What a call gives, `None` if it panics.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).ok()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error of WebGPU as ours.
fn typed(error: &Error, what: &str, bytes: u64) -> GpuError {
    match error {
        Error::OutOfMemory { .. } => GpuError::OutOfMemory { what: what.into(), bytes },
        Error::Validation { description, .. } => GpuError::Validation(format!("{what}: {description}")),
        Error::Internal { description, .. } => {
            GpuError::Driver { call: "WebGPU", result: format!("{what}: {description}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::panic, reason = "what is caught")]
    fn a_panic_below_is_no_panic_here() {
        assert_eq!(caught(|| 7), Some(7));
        assert_eq!(caught(|| -> i32 { panic!("the device is gone") }), None);
    }

    #[test]
    fn only_what_is_there_at_once_is_ready() {
        assert_eq!(ready(async { 7 }), Some(7));
        assert_eq!(ready(std::future::pending::<i32>()), None);
    }

    #[test]
    fn errors_of_webgpu_are_ours() {
        let source = || Box::<dyn std::error::Error + Send + Sync>::from("no room");
        let out_of_memory = typed(&Error::OutOfMemory { source: source() }, "an arena", 4096);
        assert!(
            matches!(&out_of_memory, GpuError::OutOfMemory { what, bytes: 4096 } if what == "an arena"),
            "{out_of_memory}"
        );
        let description = || "the layout differs".to_owned();
        let invalid = Error::Validation { source: source(), description: description() };
        assert!(
            matches!(typed(&invalid, "a kernel", 0), GpuError::Validation(text) if text == "a kernel: the layout differs")
        );
        let internal = Error::Internal { source: source(), description: description() };
        assert!(matches!(typed(&internal, "a kernel", 0), GpuError::Driver { call: "WebGPU", .. }));
    }
}

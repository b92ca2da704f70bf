//! The Vulkan loader and instance, and the messages of the validation layer.
//!
//! Invariants: a missing loader is a typed error; instances are created and destroyed under one lock, because drivers have
//! crashed when that happens on several threads at once; the message log outlives the instance that writes into it.

use crate::error::GpuError;
use ash::{Entry, ext, khr, vk};
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The newest API version used; older drivers are served through extensions.
const API_VERSION: u32 = vk::API_VERSION_1_3;

/// Messages more than this are counted by the layer's own log only.
const MAX_MESSAGES: usize = 1000;

/// Serialises creation and destruction of instances and devices; guards no data.
static CREATION: Mutex<()> = Mutex::new(());

pub(super) fn creation_lock() -> MutexGuard<'static, ()> {
    CREATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warnings and errors of the validation layer. Clones share the log, which outlives its device.
#[derive(Clone, Debug, Default)]
pub struct ValidationLog(Arc<Mutex<Vec<String>>>);

impl ValidationLog {
    /// All messages so far.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn push(&self, message: String) {
        let mut messages = self.lock();
        if messages.len() < MAX_MESSAGES {
            messages.push(message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A loaded loader and a created instance.
pub(super) struct Instance {
    pub(super) raw: ash::Instance,
    messenger: Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    /// Boxed so that the layer can hold its address; dropped after `raw` was destroyed.
    log: Box<ValidationLog>,
    /// Keeps the loader's library open; dropped last.
    pub(super) entry: Entry,
    /// The version of the API that was asked for.
    pub(super) version: u32,
}

impl Instance {
    pub(super) fn new(validation: bool) -> Result<Self, GpuError> {
        let _creation = creation_lock();
        // SAFETY: the loader's initialisers are those of any Vulkan application.
        let entry =
            unsafe { Entry::load() }.map_err(|error| no_device(format!("no Vulkan loader: {error}")))?;
        let version = loader_version(&entry)?;
        let extensions = instance_extensions(&entry, validation)?;
        let layers = if validation { vec![validation_layer(&entry)?.as_ptr()] } else { vec![] };
        let log = Box::new(ValidationLog::default());
        let mut messenger_info = messenger_info(&log);
        let mut sync = vk::ValidationFeaturesEXT::default()
            .enabled_validation_features(&[vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION]);
        let app = vk::ApplicationInfo::default()
            .application_name(c"griffinfly")
            .engine_name(c"griffinfly")
            .api_version(version.min(API_VERSION));
        let portability = extensions.contains(&khr::portability_enumeration::NAME);
        let names: Vec<_> = extensions.iter().map(|name| name.as_ptr()).collect();
        let mut info = vk::InstanceCreateInfo::default()
            .application_info(&app)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&names);
        if portability {
            info = info.flags(vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR);
        }
        if validation {
            info = info.push_next(&mut messenger_info).push_next(&mut sync);
        }
        // SAFETY: every pointer in `info` refers to locals above; `log` is kept as long as the instance.
        let raw = unsafe { entry.create_instance(&info, None) }
            .map_err(|result| no_device(format!("vkCreateInstance failed: {result}")))?;
        let mut instance = Instance { raw, messenger: None, log, entry, version: version.min(API_VERSION) };
        if validation {
            instance.listen()?;
        }
        Ok(instance)
    }

    pub(super) fn log(&self) -> &ValidationLog {
        &self.log
    }

    fn listen(&mut self) -> Result<(), GpuError> {
        let utils = ext::debug_utils::Instance::new(&self.entry, &self.raw);
        // SAFETY: the extension is enabled; the log's address is stable and outlives the messenger.
        let messenger = unsafe { utils.create_debug_utils_messenger(&messenger_info(&self.log), None) }
            .map_err(|result| GpuError::Validation(format!("no messenger: {result}")))?;
        self.messenger = Some((utils, messenger));
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _creation = creation_lock();
        if let Some((utils, messenger)) = self.messenger.take() {
            // SAFETY: created from this instance and not used afterwards.
            unsafe { utils.destroy_debug_utils_messenger(messenger, None) };
        }
        // SAFETY: all children are gone, since their owners keep this value alive.
        unsafe { self.raw.destroy_instance(None) };
    }
}

pub(super) fn no_device(reason: String) -> GpuError {
    GpuError::NoDevice { backend: "vulkan", reason }
}

fn loader_version(entry: &Entry) -> Result<u32, GpuError> {
    // SAFETY: the entry is loaded.
    let version = unsafe { entry.try_enumerate_instance_version() }
        .map_err(|result| no_device(format!("vkEnumerateInstanceVersion failed: {result}")))?
        .unwrap_or(vk::API_VERSION_1_0);
    if version < vk::API_VERSION_1_1 {
        return Err(no_device("the Vulkan loader is older than 1.1".into()));
    }
    Ok(version)
}

fn instance_extensions(entry: &Entry, validation: bool) -> Result<Vec<&'static CStr>, GpuError> {
    let mut wanted = Vec::new();
    // SAFETY: the entry is loaded.
    let available = unsafe { entry.enumerate_instance_extension_properties(None) }
        .map_err(|result| no_device(format!("no instance extensions: {result}")))?;
    if has_extension(&available, khr::portability_enumeration::NAME) {
        wanted.push(khr::portability_enumeration::NAME);
    }
    if validation {
        wanted.push(ext::debug_utils::NAME);
        wanted.push(ext::validation_features::NAME);
    }
    Ok(wanted)
}

/// Whether a list of extensions has a name.
pub(super) fn has_extension(list: &[vk::ExtensionProperties], name: &CStr) -> bool {
    list.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

fn validation_layer(entry: &Entry) -> Result<&'static CStr, GpuError> {
    // SAFETY: the entry is loaded.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }
        .map_err(|result| GpuError::Validation(format!("no layers: {result}")))?;
    if layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER)) {
        return Ok(VALIDATION_LAYER);
    }
    Err(GpuError::Validation("VK_LAYER_KHRONOS_validation is not installed".into()))
}

fn messenger_info(log: &ValidationLog) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    use vk::{DebugUtilsMessageSeverityFlagsEXT as Severity, DebugUtilsMessageTypeFlagsEXT as Type};
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(Severity::WARNING | Severity::ERROR)
        .message_type(Type::VALIDATION | Type::PERFORMANCE)
        .pfn_user_callback(Some(on_message))
        .user_data(std::ptr::from_ref(log).cast_mut().cast())
}

unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer passes valid data; `user` is the log given to the messenger, alive as long as the instance.
    let (log, text) = unsafe {
        if data.is_null() || (*data).p_message.is_null() {
            return vk::FALSE;
        }
        (&*user.cast::<ValidationLog>(), CStr::from_ptr((*data).p_message).to_string_lossy().into_owned())
    };
    if severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR) {
        tracing::error!(message = %text, "Vulkan validation");
    } else {
        tracing::warn!(message = %text, "Vulkan validation");
    }
    log.push(text);
    vk::FALSE
}

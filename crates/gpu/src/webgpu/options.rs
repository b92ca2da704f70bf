//! What the caller may choose when opening a device.

/// How to open a device.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Steps an executor may have in flight, 2 to 4.
    pub slots: usize,
    /// The word that memory of a program begins with, apart from what its owner binds. Tests take a NaN pattern: it shows what
    /// is never written and what is read beyond a tensor.
    pub fill: u32,
    /// Ask for no more than the default limits, which every browser grants.
    pub default_limits: bool,
    /// Submit steps in parts, as on hardware; for tests on software drivers.
    pub parts: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { slots: 3, fill: 0, default_limits: false, parts: false }
    }
}

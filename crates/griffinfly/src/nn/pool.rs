//! Pooling over windows of height and width.

use super::Extents;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Window2d;

/// Maximum over windows; the stride is the kernel unless said otherwise.
#[derive(Clone, Debug)]
pub struct MaxPool2d {
    kernel: [usize; 2],
    window: Window2d,
}

/// Average over windows, padding counted as zeros; the stride is the kernel unless said otherwise.
#[derive(Clone, Debug)]
pub struct AvgPool2d {
    kernel: [usize; 2],
    window: Window2d,
    count_padding: bool,
}

/// Windows of a kernel side by side.
fn side_by_side(kernel: [usize; 2]) -> Window2d {
    Window2d { stride: kernel, ..Window2d::default() }
}

impl MaxPool2d {
    /// Windows side by side.
    #[must_use]
    pub fn new(kernel: impl Into<Extents>) -> MaxPool2d {
        let kernel = kernel.into().0;
        MaxPool2d { kernel, window: side_by_side(kernel) }
    }

    /// Distance of neighbouring windows.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Extents>) -> MaxPool2d {
        self.window.stride = stride.into().0;
        self
    }

    /// Elements added on both sides of height and width; they never win.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Extents>) -> MaxPool2d {
        self.window.padding = padding.into().0.map(|p| [p; 2]);
        self
    }

    /// With a last window that the padded input covers in part.
    #[must_use]
    pub fn ceil_mode(mut self, ceil: bool) -> MaxPool2d {
        self.window.ceil = ceil;
        self
    }

    /// Adds the operation to `x [N, C, H, W]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.max_pool2d(x, self.kernel, self.window)
    }
}

impl AvgPool2d {
    /// Windows side by side.
    #[must_use]
    pub fn new(kernel: impl Into<Extents>) -> AvgPool2d {
        let kernel = kernel.into().0;
        AvgPool2d { kernel, window: side_by_side(kernel), count_padding: true }
    }

    /// Distance of neighbouring windows.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Extents>) -> AvgPool2d {
        self.window.stride = stride.into().0;
        self
    }

    /// Zeros added on both sides of height and width.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Extents>) -> AvgPool2d {
        self.window.padding = padding.into().0.map(|p| [p; 2]);
        self
    }

    /// Whether padding counts in the average.
    #[must_use]
    pub fn count_padding(mut self, count: bool) -> AvgPool2d {
        self.count_padding = count;
        self
    }

    /// With a last window that the padded input covers in part.
    #[must_use]
    pub fn ceil_mode(mut self, ceil: bool) -> AvgPool2d {
        self.window.ceil = ceil;
        self
    }

    /// Adds the operation to `x [N, C, H, W]`.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, x: Value) -> Value {
        g.avg_pool2d(x, self.kernel, self.window, self.count_padding)
    }
}

//! Data: the embedded digits, and shuffled batches of labelled images.

mod batches;
mod digits;

pub use batches::{Batch, Batches};
pub use digits::{CLASSES, Digits, PIXELS, SIDE, digits};

/// Images with labels. Inputs of a batch are called `image` and `label`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labelled {
    /// Pixels of all images, one after the other.
    pub images: Vec<f32>,
    /// The class of each image.
    pub labels: Vec<i32>,
}

impl Labelled {
    /// How many images there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Pixels of one image.
    #[must_use]
    pub fn pixels(&self) -> usize {
        self.images.len() / self.labels.len().max(1)
    }
}

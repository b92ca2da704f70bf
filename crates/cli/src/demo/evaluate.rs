//! The testing half of the demo: a fresh session, a file, all test images in one batch.

use crate::Failure;
use griffinfly::data::{CLASSES, Labelled, SIDE};
use griffinfly::models::DigitsModel;
use griffinfly::{Device, Input, Session};
use std::path::Path;
use std::time::Duration;

/// How the checkpoint did.
pub(super) struct Tested {
    /// Images of a class (row) that were taken for a class (column).
    pub(super) confusion: [[u32; CLASSES]; CLASSES],
    /// Time to construct the session.
    pub(super) preparation: Duration,
    pub(super) physical_bytes: u64,
    pub(super) logical_bytes: u64,
}

impl Tested {
    pub(super) fn images(&self) -> u32 {
        self.confusion.iter().flatten().sum()
    }

    pub(super) fn correct(&self) -> u32 {
        (0..CLASSES).map(|class| self.confusion[class][class]).sum()
    }

    pub(super) fn accuracy(&self) -> f64 {
        f64::from(self.correct()) / f64::from(self.images().max(1))
    }
}

pub(super) fn run(
    device: &Device,
    model: &DigitsModel,
    images: &Labelled,
    checkpoint: &Path,
) -> Result<Tested, Failure> {
    let graph = model.inference()?.rebind(&[("image", &[images.len(), 1, SIDE, SIDE])])?;
    let mut session = Session::new(device, graph)?;
    session.load(checkpoint)?;
    let outputs = session.run(&[("image", Input::f32(&images.images))])?;
    let mut confusion = [[0; CLASSES]; CLASSES];
    for (logits, label) in outputs.f32("logits")?.chunks(CLASSES).zip(&images.labels) {
        if let Some(row) = confusion.get_mut(*label as usize) {
            row[best(logits)] += 1;
        }
    }
    Ok(Tested {
        confusion,
        preparation: session.preparation(),
        physical_bytes: session.program().memory.physical_bytes,
        logical_bytes: session.program().memory.logical_bytes,
    })
}

/// The first class with the largest logit.
fn best(logits: &[f32]) -> usize {
    let larger = |best: usize, i: usize| if logits[i] > logits[best] { i } else { best };
    (0..logits.len().min(CLASSES)).reduce(larger).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_logits_is_the_answer() {
        assert_eq!(best(&[0.0, 3.0, 3.0, -1.0]), 1);
        assert_eq!(best(&[f32::NAN; 3]), 0);
    }
}

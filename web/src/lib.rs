//! The digit classifier in a browser: trained, used and adapted in the tab.
//!
//! [`Tutor`] is what the page works with: it trains the model of [`griffinfly::models::digits()`] on the device it is given, tests it,
//! classifies drawings, practises on examples of the visitor's, and reads and writes checkpoints. `drawing` turns strokes into an
//! image like those of the data set, `likeness` tells what is no digit. `bindings` offers all of it to JavaScript; the rest knows no
//! browser and is tested without one.
//!
//! Invariants: nothing blocks (everything that waits for the device is awaited); a failed call leaves model and examples as they were,
//! or says that the device is lost.

#[cfg(target_arch = "wasm32")]
mod bindings;
mod drawing;
mod likeness;
mod practice;
mod tutor;

pub use drawing::{DrawingError, image_of};
pub use likeness::Likeness;
pub use practice::{Example, Practice};
pub use tutor::{Answer, Loaded, STEPS, Tutor, TutorError};

//! Whether an image looks like a digit at all: a classifier has an answer to everything.
//!
//! The measure is the Euclidean distance to the nearest image that is known. Between images of the data set's test part and its
//! training part it is at most [`LIMIT`] (a test holds that); the furthest is 2.01. Noise, frames, boards and
//! fields full of ink are further away.

use griffinfly::data::{Labelled, PIXELS};

/// What is further than this from all known images looks like none of them.
const LIMIT: f32 = 2.25;

/// The images that are known.
#[derive(Clone, Debug)]
pub struct Likeness {
    images: Vec<f32>,
}

impl Likeness {
    /// Those of a data set.
    #[must_use]
    pub fn new(known: &Labelled) -> Self {
        Likeness { images: known.images.clone() }
    }

    /// One more.
    pub fn add(&mut self, image: &[f32; PIXELS]) {
        self.images.extend_from_slice(image);
    }

    /// The distance to the nearest known image.
    #[must_use]
    pub fn distance(&self, image: &[f32; PIXELS]) -> f32 {
        let square = |known: &[f32]| known.iter().zip(image).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        self.images.chunks_exact(PIXELS).map(square).fold(f32::INFINITY, f32::min).sqrt()
    }

    /// Whether it looks like a digit.
    #[must_use]
    pub fn is_digit(&self, image: &[f32; PIXELS]) -> bool {
        self.distance(image) <= LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use griffinfly::data::{SIDE, digits};

    fn image(pixel: impl Fn(usize, usize) -> f32) -> [f32; PIXELS] {
        std::array::from_fn(|i| pixel(i % SIDE, i / SIDE))
    }

    #[test]
    fn every_digit_looks_like_one() {
        let digits = digits();
        let known = Likeness::new(&digits.train);
        for image in digits.test.images.chunks_exact(PIXELS) {
            let image: &[f32; PIXELS] = image.try_into().unwrap();
            assert!(known.is_digit(image), "{} {image:?}", known.distance(image));
        }
    }

    #[test]
    fn what_is_none_does_not() {
        let known = Likeness::new(&digits().train);
        let edge = |x: usize| x == 0 || x == SIDE - 1;
        let others = [
            ("nothing", image(|_, _| 0.0)),
            ("ink", image(|_, _| 1.0)),
            ("a frame", image(|x, y| if edge(x) || edge(y) { 1.0 } else { 0.0 })),
            ("a board", image(|x, y| ((x + y) % 2) as f32)),
            ("two bars", image(|x, _| if edge(x) { 1.0 } else { 0.0 })),
            ("noise", image(|x, y| ((x * 2654435761 + y * 40503 * 977) >> 3 & 7) as f32 / 7.0)),
            ("grey with an edge", image(|x, y| if edge(x) || edge(y) { 0.1 } else { 0.5 })),
        ];
        for (name, other) in others {
            assert!(!known.is_digit(&other), "{name}: {}", known.distance(&other));
        }
    }

    #[test]
    fn what_was_added_is_known() {
        let mut known = Likeness::new(&digits().train);
        let frame = image(|x, _| if x == 0 || x == 7 { 1.0 } else { 0.0 });
        assert!(!known.is_digit(&frame));
        known.add(&frame);
        assert_eq!(known.distance(&frame), 0.0);
    }
}

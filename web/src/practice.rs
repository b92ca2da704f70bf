//! Batches for practising on examples of the visitor's without forgetting the rest.
//!
//! A quarter of each batch are the visitor's examples, in turn, each moved to the side by up to one pixel; three quarters are images of the data
//! set. Both depend on a seed alone.

use griffinfly::data::{Batch, CLASSES, PIXELS, SIDE};
use griffinfly::philox::Stream;

/// One of so many images of a batch is an example of the visitor's.
const SHARE: usize = 4;

/// An image that the visitor drew, and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its pixels, 0 to 1.
    pub image: [f32; PIXELS],
    /// The digit.
    pub digit: u8,
}

impl Example {
    /// An example of a digit, if it is one.
    #[must_use]
    pub fn new(image: [f32; PIXELS], digit: u8) -> Option<Self> {
        (usize::from(digit) < CLASSES).then_some(Example { image, digit })
    }
}

/// The visitor's examples, and which is next.
#[derive(Clone, Debug, Default)]
pub struct Practice {
    examples: Vec<Example>,
    batches: u64,
}

impl Practice {
    /// One more example.
    pub fn add(&mut self, example: Example) {
        self.examples.push(example);
    }

    /// The examples so far.
    #[must_use]
    pub fn examples(&self) -> &[Example] {
        &self.examples
    }

    /// Puts examples in the place of some images of a batch of the data set's; the batch itself where there are none.
    #[must_use]
    pub fn mix(&mut self, mut batch: Batch) -> Batch {
        let count = batch.labels.len() / SHARE;
        let mut random = Stream::new(SEED, self.batches);
        let first = self.batches as usize * count;
        self.batches += 1;
        for place in 0..if self.examples.is_empty() { 0 } else { count } {
            let example = &self.examples[(first + place) % self.examples.len()];
            let right = random.below(3);
            batch.labels[place] = i32::from(example.digit);
            batch.images[place * PIXELS..(place + 1) * PIXELS].copy_from_slice(&moved(&example.image, right));
        }
        batch
    }
}

/// What the moves are drawn from.
const SEED: u64 = 0x9b5d;

/// An image moved to the right by 0, 1 or 2 pixels less one; what comes in is paper. Digits fill the whole height, so they do not move
/// up or down.
fn moved(image: &[f32; PIXELS], right: usize) -> [f32; PIXELS] {
    std::array::from_fn(|i| match (i % SIDE + 1).checked_sub(right).filter(|x| *x < SIDE) {
        Some(x) => image[i / SIDE * SIDE + x],
        None => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(images: usize) -> Batch {
        Batch { images: vec![0.5; images * PIXELS], labels: vec![9; images] }
    }

    fn example(pixel: f32, digit: u8) -> Example {
        Example::new([pixel; PIXELS], digit).unwrap()
    }

    #[test]
    fn without_examples_a_batch_stays_as_it_is() {
        assert_eq!(Practice::default().mix(batch(8)), batch(8));
    }

    #[test]
    fn a_quarter_are_examples_in_turn() {
        let mut practice = Practice::default();
        (0..3).for_each(|digit| practice.add(example(1.0, digit)));
        assert_eq!(practice.mix(batch(8)).labels, [0, 1, 9, 9, 9, 9, 9, 9]);
        let mixed = practice.mix(batch(8));
        assert_eq!(mixed.labels, [2, 0, 9, 9, 9, 9, 9, 9]);
        assert!(mixed.images[2 * PIXELS..].iter().all(|p| *p == 0.5));
        // The middle stays whatever the move.
        assert_eq!(mixed.images[3 * SIDE + 3], 1.0);
    }

    #[test]
    fn a_move_brings_in_paper() {
        let mut image = [0.0; PIXELS];
        image[SIDE + 2] = 1.0;
        let place = |right| moved(&image, right).iter().position(|p| *p == 1.0);
        assert_eq!([place(0), place(1), place(2)], [Some(SIDE + 1), Some(SIDE + 2), Some(SIDE + 3)]);
        let full = moved(&[1.0; PIXELS], 2);
        assert!(full.iter().enumerate().all(|(i, p)| *p == if i % SIDE == 0 { 0.0 } else { 1.0 }));
    }

    #[test]
    fn only_digits_are_examples() {
        assert!(Example::new([0.0; PIXELS], 9).is_some());
        assert!(Example::new([0.0; PIXELS], 10).is_none());
    }
}

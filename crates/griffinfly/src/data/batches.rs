//! Shuffled batches without end: every epoch is a new order of all images, a last partial batch is dropped.

use super::Labelled;
use crate::error::Error;
use crate::inputs::{Feed, Input};
use crate::philox::Stream;

/// Labelled images of one step, as the inputs `image` and `label`.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Pixels of all images, one after the other.
    pub images: Vec<f32>,
    /// The class of each image.
    pub labels: Vec<i32>,
}

impl Feed for Batch {
    fn inputs(&self) -> Vec<(&str, Input<'_>)> {
        vec![("image", Input::f32(&self.images)), ("label", Input::ids(&self.labels))]
    }
}

/// Batches in an order that depends on the seed alone. Never ends: take as many as wanted.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    data: &'a Labelled,
    size: usize,
    seed: u64,
    epoch: u64,
    order: Vec<usize>,
    next: usize,
}

impl Labelled {
    /// Shuffled batches of this size.
    ///
    /// # Errors
    /// A size of 0, or more than there are images.
    pub fn batches(&self, size: usize, seed: u64) -> Result<Batches<'_>, Error> {
        if size == 0 || size > self.len() {
            let reason = format!("it must be between 1 and the {} images there are", self.len());
            return Err(Error::Value { what: "the batch size", value: size.to_string(), reason });
        }
        let mut batches =
            Batches { data: self, size, seed, epoch: 0, order: (0..self.len()).collect(), next: 0 };
        batches.shuffle();
        Ok(batches)
    }
}

impl Batches<'_> {
    /// Batches in one epoch.
    #[must_use]
    pub fn per_epoch(&self) -> usize {
        self.data.len() / self.size
    }

    /// The same from a batch on (0 is the first), without drawing those before it: where a training goes on.
    #[must_use]
    pub fn starting_at(mut self, batch: u64) -> Self {
        let per_epoch = self.per_epoch() as u64;
        self.epoch = batch / per_epoch;
        self.shuffle();
        self.next = (batch % per_epoch) as usize * self.size;
        self
    }

    fn shuffle(&mut self) {
        self.order.iter_mut().enumerate().for_each(|(i, at)| *at = i);
        Stream::new(self.seed, self.epoch).shuffle(&mut self.order);
        self.next = 0;
    }
}

impl Iterator for Batches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        if self.next + self.size > self.order.len() {
            self.epoch += 1;
            self.shuffle();
        }
        let chosen = &self.order[self.next..self.next + self.size];
        self.next += self.size;
        let pixels = self.data.pixels();
        let images =
            chosen.iter().flat_map(|i| &self.data.images[i * pixels..(i + 1) * pixels]).copied().collect();
        Some(Batch { images, labels: chosen.iter().map(|i| self.data.labels[*i]).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Labelled {
        Labelled { images: (0..2 * count).map(|i| i as f32).collect(), labels: (0..count as i32).collect() }
    }

    #[test]
    fn batches_can_start_anywhere() {
        let data = numbered(10);
        let all: Vec<Batch> = data.batches(3, 5).unwrap().take(14).collect();
        for (start, expected) in (0..).zip(&all) {
            assert_eq!(
                data.batches(3, 5).unwrap().starting_at(start).next().as_ref(),
                Some(expected),
                "{start}"
            );
        }
        let second = data.batches(3, 5).unwrap().starting_at(2).take(12);
        assert_eq!(second.collect::<Vec<_>>(), all[2..]);
        assert!(data.batches(3, 5).unwrap().starting_at(u64::MAX).next().is_some());
    }

    #[test]
    fn an_epoch_has_every_image_at_most_once_and_drops_the_rest() {
        let data = numbered(10);
        let batches = data.batches(3, 5).unwrap();
        assert_eq!(batches.per_epoch(), 3);
        let all: Vec<Batch> = batches.take(6).collect();
        for epoch in all.chunks(3) {
            let mut labels: Vec<i32> = epoch.iter().flat_map(|b| b.labels.clone()).collect();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), 9);
        }
        assert_ne!(all[..3], all[3..]);
        for batch in &all {
            let expected: Vec<f32> =
                batch.labels.iter().flat_map(|l| [2.0 * *l as f32, 2.0 * *l as f32 + 1.0]).collect();
            assert_eq!(batch.images, expected);
        }
    }

    #[test]
    fn the_order_depends_on_the_seed_alone() {
        let data = numbered(20);
        let draw = |seed| data.batches(4, seed).unwrap().take(12).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let data = numbered(3);
        for size in [0, 4] {
            let error = data.batches(size, 0).unwrap_err().to_string();
            assert!(error.contains("between 1 and the 3 images"), "{error}");
        }
    }
}

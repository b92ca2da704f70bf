//! Handwritten digits: 1,797 images of 8x8 pixels (Alpaydin and Kaynak, CC BY 4.0; see `data/README.md`).

use super::Labelled;

/// Height and width of an image.
pub const SIDE: usize = 8;
/// Pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;
/// Classes.
pub const CLASSES: usize = 10;

const COUNT: usize = 1797;
static BYTES: &[u8; COUNT * (PIXELS + 1)] = include_bytes!("../../data/digits.bin");
/// Pixels are 0 (paper) to this (ink).
const INK: f32 = 16.0;

/// The digits, split.
#[derive(Clone, Debug, PartialEq)]
pub struct Digits {
    /// 1,438 images to train on.
    pub train: Labelled,
    /// 359 images to test on: those whose index modulo 5 is 4.
    pub test: Labelled,
}

/// The embedded digits; pixels between 0 and 1.
#[must_use]
pub fn digits() -> Digits {
    let (pixels, labels) = BYTES.split_at(COUNT * PIXELS);
    let (mut train, mut test) = (Labelled::default(), Labelled::default());
    for (i, (image, label)) in pixels.chunks_exact(PIXELS).zip(labels).enumerate() {
        let part = if i % 5 == 4 { &mut test } else { &mut train };
        part.images.extend(image.iter().map(|p| f32::from(*p) / INK));
        part.labels.push(i32::from(*label));
    }
    Digits { train, test }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_as_documented() {
        let d = digits();
        assert_eq!((d.train.len(), d.test.len()), (1438, 359));
        for part in [&d.train, &d.test] {
            assert_eq!(part.pixels(), PIXELS);
            assert!(part.images.iter().all(|p| (0.0..=1.0).contains(p)));
            assert!(part.images.contains(&1.0));
            for class in 0..CLASSES as i32 {
                assert!(part.labels.iter().filter(|l| **l == class).count() > 20);
            }
        }
        // The first images of the data set are the digits in order.
        assert_eq!(d.train.labels[..4], [0, 1, 2, 3]);
        assert_eq!(d.test.labels[0], 4);
    }
}

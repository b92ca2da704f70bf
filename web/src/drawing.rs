//! From a drawing to an image like those of the data set.
//!
//! Input: how much ink each point of a drawing has, 0 to 1, row by row. Output: 8x8 pixels, 0 to 1. What is drawn is cut out, scaled
//! to the whole height (or to the width that the widest digits have), centred, and put on a grid of 32x32 points, of which each
//! pixel averages 4x4. Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits" (1998), whose images are 32x32
//! bitmaps normalised in size, counted in blocks of 4x4.

use griffinfly::data::{PIXELS, SIDE};
use thiserror::Error;

/// Points of the grid in each direction.
const GRID: usize = 32;
/// Points of the grid that make one pixel, in each direction.
const BLOCK: usize = GRID / SIDE;
/// The widest digit on the grid: images of the data set leave about a column free on both sides.
const WIDEST: f32 = 26.0;
/// From how much ink on a point belongs to the drawing.
const INK: f32 = 0.25;
/// The least part of the drawing's height and width that the larger extent of a digit takes.
const LEAST: f32 = 0.08;

/// Why a drawing has no image.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DrawingError {
    /// Points and dimensions do not fit.
    #[error("{points} points are not the {width} x {height} of a drawing")]
    Size {
        /// How many points there are.
        points: usize,
        /// The width that was given.
        width: usize,
        /// The height that was given.
        height: usize,
    },
    /// Nothing to see.
    #[error("there is nothing drawn yet")]
    Empty,
    /// A dot.
    #[error(
        "the drawing is too small: {extent} points, {least} are needed; draw a digit that fills the field"
    )]
    Small {
        /// Its larger extent in points.
        extent: usize,
        /// How many it takes.
        least: usize,
    },
    /// Hardly any paper left.
    #[error("the field is nearly full of ink, which is no digit")]
    Full,
}

/// Where there is ink: first and last column and row.
struct Extent {
    left: usize,
    right: usize,
    top: usize,
    bottom: usize,
}

/// The image of a drawing.
///
/// # Errors
/// Points that are not `width * height`; nothing drawn, hardly anything, hardly anything else.
pub fn image_of(ink: &[f32], width: usize, height: usize) -> Result<[f32; PIXELS], DrawingError> {
    if width.checked_mul(height) != Some(ink.len()) {
        return Err(DrawingError::Size { points: ink.len(), width, height });
    }
    let extent = extent(ink, width).ok_or(DrawingError::Empty)?;
    let (w, h) = (extent.right - extent.left + 1, extent.bottom - extent.top + 1);
    let least = (LEAST * width.max(height) as f32).ceil().max(1.0) as usize;
    if w.max(h) < least {
        return Err(DrawingError::Small { extent: w.max(h), least });
    }
    let drawn = ink.iter().filter(|point| **point >= INK).count();
    if drawn > w * h * 19 / 20 && w.min(h) * 2 > w.max(h) {
        return Err(DrawingError::Full);
    }
    Ok(blocks(&grid(ink, width, &extent)))
}

fn extent(ink: &[f32], width: usize) -> Option<Extent> {
    let mut found: Option<Extent> = None;
    for (point, _) in ink.iter().enumerate().filter(|(_, amount)| **amount >= INK) {
        let (x, y) = (point % width, point / width);
        let e = found.get_or_insert(Extent { left: x, right: x, top: y, bottom: y });
        *e =
            Extent { left: e.left.min(x), right: e.right.max(x), top: e.top.min(y), bottom: e.bottom.max(y) };
    }
    found
}

/// The drawing on the grid: each of its points averages those of the drawing that it covers.
fn grid(ink: &[f32], width: usize, extent: &Extent) -> [f32; GRID * GRID] {
    const SAMPLES: usize = 4;
    let (w, h) = ((extent.right - extent.left + 1) as f32, (extent.bottom - extent.top + 1) as f32);
    // Points of the drawing for one of the grid.
    let scale = (h / GRID as f32).max(w / WIDEST);
    let (left, top) = (
        extent.left as f32 + w / 2.0 - scale * GRID as f32 / 2.0,
        extent.top as f32 + h / 2.0 - scale * GRID as f32 / 2.0,
    );
    let at = |x: f32, y: f32| {
        let inside = x >= extent.left as f32
            && x <= extent.right as f32 + 1.0
            && y >= extent.top as f32
            && y <= extent.bottom as f32 + 1.0;
        let (x, y) = ((x as usize).min(extent.right), (y as usize).min(extent.bottom));
        if inside && ink[y * width + x] >= INK { 1.0 } else { 0.0 }
    };
    let mut points = [0.0; GRID * GRID];
    for (number, point) in points.iter_mut().enumerate() {
        let (column, row) = (number % GRID, number / GRID);
        let mut sum = 0.0_f32;
        for sample in 0..SAMPLES * SAMPLES {
            let offset = |i: usize| (i as f32 + 0.5) / SAMPLES as f32;
            let x = left + scale * (column as f32 + offset(sample % SAMPLES));
            let y = top + scale * (row as f32 + offset(sample / SAMPLES));
            sum += at(x, y);
        }
        *point = sum / (SAMPLES * SAMPLES) as f32;
    }
    points
}

fn blocks(points: &[f32; GRID * GRID]) -> [f32; PIXELS] {
    let mut image = [0.0; PIXELS];
    for (number, point) in points.iter().enumerate() {
        let (x, y) = (number % GRID / BLOCK, number / GRID / BLOCK);
        image[y * SIDE + x] += point / (BLOCK * BLOCK) as f32;
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drawing of rectangles (left, top, width, height).
    fn drawing(size: usize, parts: &[[usize; 4]]) -> Vec<f32> {
        let mut ink = vec![0.0; size * size];
        for [left, top, w, h] in parts {
            for y in *top..top + h {
                ink[y * size + left..y * size + left + w].fill(1.0);
            }
        }
        ink
    }

    #[test]
    fn a_stroke_fills_the_height_and_the_middle() {
        // 12 of 96 points wide: an eighth of the height, as of the 32 points of the grid.
        let image = image_of(&drawing(200, &[[30, 60, 12, 96]]), 200, 200).unwrap();
        for row in image.chunks(SIDE) {
            let sum: f32 = row.iter().sum();
            assert!((sum - 1.0).abs() < 0.1, "{row:?}");
            assert!(row[3] > 0.4 && row[4] > 0.4, "{row:?}");
        }
    }

    #[test]
    fn place_and_size_of_a_drawing_do_not_matter() {
        let small = image_of(&drawing(256, &[[8, 16, 32, 8], [32, 24, 8, 56]]), 256, 256).unwrap();
        let large = image_of(&drawing(256, &[[72, 48, 96, 24], [144, 72, 24, 168]]), 256, 256).unwrap();
        for (a, b) in small.iter().zip(&large) {
            assert!((a - b).abs() < 0.13, "{small:?}\n{large:?}");
        }
    }

    #[test]
    fn a_wide_drawing_keeps_its_proportions() {
        let image = image_of(&drawing(200, &[[10, 90, 180, 30]]), 200, 200).unwrap();
        let rows: Vec<f32> = image.chunks(SIDE).map(|row| row.iter().sum()).collect();
        assert!(rows[..2].iter().chain(&rows[6..]).all(|sum| *sum == 0.0), "{rows:?}");
        let ink: f32 = rows.iter().sum::<f32>() * 16.0;
        assert!((ink - WIDEST * WIDEST / 6.0).abs() < 8.0, "{ink}");
    }

    #[test]
    fn what_is_no_drawing_is_refused() {
        let of = |parts: &[[usize; 4]]| image_of(&drawing(100, parts), 100, 100);
        assert_eq!(of(&[]), Err(DrawingError::Empty));
        assert_eq!(of(&[[50, 50, 3, 3]]), Err(DrawingError::Small { extent: 3, least: 8 }));
        assert_eq!(of(&[[0, 0, 100, 100]]), Err(DrawingError::Full));
        let wrong = image_of(&[0.0; 10], 3, 3);
        assert_eq!(wrong, Err(DrawingError::Size { points: 10, width: 3, height: 3 }));
        assert!(matches!(image_of(&[], usize::MAX, 2), Err(DrawingError::Size { .. })));
        assert_eq!(image_of(&[f32::NAN; 4], 2, 2), Err(DrawingError::Empty));
        // A thick stroke is all ink inside of its own edges, and a digit nevertheless.
        assert!(of(&[[40, 10, 15, 80]]).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn pixels_are_always_between_paper_and_ink(
            ink in proptest::collection::vec(0.0_f32..1.0, 24 * 17),
        ) {
            if let Ok(image) = image_of(&ink, 24, 17) {
                proptest::prop_assert!(image.iter().all(|p| (0.0..=1.001).contains(p)), "{image:?}");
            }
        }
    }
}

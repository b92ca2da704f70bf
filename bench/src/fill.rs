//! Deterministic weights: the rule "name-index-uniform-v1".
//!
//! s is a 32-bit hash of the name, `h = 31 h + byte`. The element of flat index i is a mix of `i ^ s`, whose upper 24 bits
//! become a number in -1..1, times an amplitude. Integer arithmetic and exact `f32` operations only, so the bits are the same
//! everywhere. The amplitude gives a root mean square of 0.02 / sqrt(2).

/// Largest magnitude of a weight.
pub(crate) const AMPLITUDE: f32 = 0.024_494_898;

/// `count` values of the tensor of this name.
pub(crate) fn uniform(name: &str, count: usize, amplitude: f32) -> Vec<f32> {
    let s = name.bytes().fold(0_u32, |h, byte| h.wrapping_mul(31).wrapping_add(u32::from(byte)));
    // Tensors have fewer than 2^32 elements; of a longer one the values would repeat.
    (0..count).map(|i| value(i as u32 ^ s, amplitude)).collect()
}

fn value(mut h: u32, amplitude: f32) -> f32 {
    h = (h ^ h >> 16).wrapping_mul(0x7feb_352d);
    h = (h ^ h >> 15).wrapping_mul(0x846c_a68b);
    h ^= h >> 16;
    ((h >> 8) as f32 * 2.0_f32.powi(-23) - 1.0) * amplitude
}

/// A matrix given as `[columns, rows]` in row-major order, as `[rows, columns]`.
pub(crate) fn transposed(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    (0..rows * columns).map(|i| values[i % columns * rows + i / columns]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector() {
        let expected = [
            0x3b10_bfaf,
            0xbb65_c670,
            0x3adf_d0cc,
            0xbb06_e742,
            0x3b88_7a65,
            0x3c9f_5be6,
            0xbcb7_f94b_u32,
            0x3caf_dd01,
        ];
        let found: Vec<u32> =
            uniform("time_embed.0.weight", 8, AMPLITUDE).iter().map(|x| x.to_bits()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_fill_the_range_evenly() {
        let values = uniform("w", 100_000, AMPLITUDE);
        assert!(values.iter().all(|x| x.abs() <= AMPLITUDE));
        let mean_square = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 1e5;
        assert!((mean_square.sqrt() / (0.02 / 2.0_f64.sqrt()) - 1.0).abs() < 0.01, "{mean_square}");
    }

    #[test]
    fn a_matrix_is_transposed() {
        assert_eq!(transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    }
}

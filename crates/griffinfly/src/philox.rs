//! Random numbers of the host, from the generator without state of [`griffinfly_ir::random`].
//!
//! Keys come from seeds, counters from what is drawn and its position, so what one tensor gets does not depend on what was
//! drawn before it.

use griffinfly_ir::random::block;

/// A stream of words: one of 2^64 under each seed.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    stream: [u32; 2],
    next: u64,
    words: [u32; 4],
}

impl Stream {
    /// The stream of this number under a seed.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Stream {
        Stream { key: halves(seed), stream: halves(stream), next: 0, words: [0; 4] }
    }

    /// The stream of this name under a seed.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Stream {
        Stream::new(seed, fnv1a(name))
    }

    /// The next word.
    pub fn word(&mut self) -> u32 {
        let at = (self.next % 4) as usize;
        if at == 0 {
            let index = halves(self.next / 4);
            self.words = block([index[0], index[1], self.stream[0], self.stream[1]], self.key);
        }
        self.next = self.next.wrapping_add(1);
        self.words[at]
    }

    /// Uniform in `0..1`, a multiple of 2^-24.
    pub fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Two independent normal numbers, by the method of Box and Muller.
    pub fn normals(&mut self) -> [f64; 2] {
        // In (0, 1], so that the logarithm is finite.
        let u = (f64::from(self.word()) + 1.0) / 4_294_967_296.0;
        let angle = std::f64::consts::TAU * f64::from(self.word()) / 4_294_967_296.0;
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * angle.cos(), radius * angle.sin()]
    }

    /// A number in `0..bound`; 0 for the bound 0. The bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = (u64::from(self.word()) << 32) | u64::from(self.word());
        ((u128::from(wide) * bound as u128) >> 64) as usize
    }

    /// Puts a slice in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }
}

fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

/// FNV-1a of the bytes of a name.
fn fnv1a(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_known_answers() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn streams_are_apart_and_repeat() {
        let draw = |seed, name| {
            let mut s = Stream::named(seed, name);
            (0..9).map(|_| s.word()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn moments_are_right() {
        let mut s = Stream::new(7, 7);
        let n = 40_000;
        let units: Vec<f64> = (0..n).map(|_| f64::from(s.unit())).collect();
        let normals: Vec<f64> = (0..n / 2).flat_map(|_| s.normals()).collect();
        let moments = |x: &[f64]| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64)
        };
        let ((um, uv), (nm, nv)) = (moments(&units), moments(&normals));
        assert!((um - 0.5).abs() < 0.01 && (uv - 1.0 / 12.0).abs() < 0.002, "{um} {uv}");
        assert!(nm.abs() < 0.02 && (nv - 1.0).abs() < 0.03, "{nm} {nv}");
        assert!(units.iter().all(|u| (0.0..1.0).contains(u)));
    }

    #[test]
    fn shuffles_are_permutations() {
        let mut items: Vec<usize> = (0..100).collect();
        Stream::new(3, 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
        assert_eq!(Stream::new(3, 0).below(0), 0);
    }
}

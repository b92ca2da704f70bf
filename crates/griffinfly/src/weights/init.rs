//! Initial values: from a distribution, a seed and a name to the bytes of a tensor.

use crate::philox::Stream;
use griffinfly_ir::graph::Init;

/// Fills the bytes of an `f32` tensor.
pub(super) fn fill(bytes: &mut [u8], init: Init, seed: u64, name: &str) {
    let mut stream = Stream::named(seed, name);
    let words = bytes.chunks_exact_mut(4);
    match init {
        Init::Constant(x) => words.for_each(|w| w.copy_from_slice(&x.get().to_ne_bytes())),
        Init::Uniform(bound) => words.for_each(|w| {
            let x = bound.get() * (2.0 * stream.unit() - 1.0);
            w.copy_from_slice(&x.to_ne_bytes());
        }),
        Init::Normal(deviation) => {
            let mut pair = [0.0; 2];
            for (i, w) in words.enumerate() {
                if i % 2 == 0 {
                    pair = stream.normals();
                }
                let x = (f64::from(deviation.get()) * pair[i % 2]) as f32;
                w.copy_from_slice(&x.to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(init: Init, seed: u64, name: &str, count: usize) -> Vec<f32> {
        let mut bytes = vec![0; 4 * count];
        fill(&mut bytes, init, seed, name);
        bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    #[test]
    fn distributions_are_as_declared() {
        assert_eq!(values(Init::ONES, 1, "w", 3), [1.0; 3]);
        let uniform = values(Init::Uniform(0.25.into()), 1, "w", 1000);
        assert!(uniform.iter().all(|x| (-0.25..0.25).contains(x)));
        assert!(uniform.iter().any(|x| *x > 0.2) && uniform.iter().any(|x| *x < -0.2));
        let normal = values(Init::Normal(0.5.into()), 1, "w", 1001);
        let square = normal.iter().map(|x| x * x).sum::<f32>() / 1001.0;
        assert!((square - 0.25).abs() < 0.05, "{square}");
    }

    #[test]
    fn values_depend_on_seed_and_name_only() {
        let draw = |seed, name| values(Init::Uniform(1.0.into()), seed, name, 8);
        assert_eq!(draw(5, "w"), draw(5, "w"));
        assert_ne!(draw(5, "w"), draw(6, "w"));
        assert_ne!(draw(5, "w"), draw(5, "b"));
        assert_eq!(draw(5, "w")[..4], values(Init::Uniform(1.0.into()), 5, "w", 4)[..]);
    }
}

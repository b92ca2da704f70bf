//! Random numbers without state: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
//! 1, 2, 3" (SC 2011).
//!
//! A block of four words is a function of a key and a counter alone. In a graph the key is the seed, and the counter is
//! (number of the block, stream of the operation, step): so a draw depends on nothing drawn before, is the same on every
//! device, and can be made again in the backward pass instead of being kept. Seed and step are one leaf of four words that
//! the host sets each step, [`RANDOM_KEY`].

use crate::scalar::{BinaryFn, Scalar, ScalarExpr, ScalarId};

/// Name of the step scalar, `u32[4]`, that holds what [`random_key`] gives.
pub const RANDOM_KEY: &str = "random.key";

/// Rounds of the generator.
const ROUNDS: u32 = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The words of [`RANDOM_KEY`] for a step under a seed: the halves of the seed, then those of the step.
#[must_use]
pub fn random_key(seed: u64, step: u64) -> [u32; 4] {
    [seed as u32, (seed >> 32) as u32, step as u32, (step >> 32) as u32]
}

/// The block of a counter under a key.
#[must_use]
pub fn block(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let product = |i: usize| {
            let p = u64::from(MULTIPLIERS[i]) * u64::from(counter[2 * i]);
            ((p >> 32) as u32, p as u32)
        };
        let ((high0, low0), (high1, low1)) = (product(0), product(1));
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
    }
    counter
}

/// [`block`] as scalar arithmetic over `u32`.
pub(crate) fn block_of(
    e: &mut ScalarExpr,
    mut counter: [ScalarId; 4],
    mut key: [ScalarId; 2],
) -> [ScalarId; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [0, 1].map(|i| {
                let weyl = word(e, WEYL[i]);
                e.add(key[i], weyl)
            });
        }
        let [(high0, low0), (high1, low1)] = [0, 1].map(|i| {
            let multiplier = word(e, MULTIPLIERS[i]);
            (high_product(e, counter[2 * i], MULTIPLIERS[i]), e.mul(counter[2 * i], multiplier))
        });
        let mut mix = |a, b, c| {
            let ab = e.binary(BinaryFn::Xor, a, b);
            e.binary(BinaryFn::Xor, ab, c)
        };
        counter = [mix(high1, counter[1], key[0]), low1, mix(high0, counter[3], key[1]), low0];
    }
    counter
}

/// A `u32` literal.
pub(crate) fn word(e: &mut ScalarExpr, w: u32) -> ScalarId {
    e.constant(Scalar::U32(w))
}

/// The upper 32 bits of the 64-bit product of `a` and `m`, from halves of 16 bits: no partial sum exceeds 32 bits.
pub(crate) fn high_product(e: &mut ScalarExpr, a: ScalarId, m: u32) -> ScalarId {
    let (mask, unit) = (word(e, 0xffff), word(e, 0x1_0000));
    let (m_low, m_high) = (word(e, m & 0xffff), word(e, m >> 16));
    let (low, high) = (e.binary(BinaryFn::And, a, mask), e.div(a, unit));
    let (ll, hl) = (e.mul(low, m_low), e.mul(high, m_low));
    let (lh, hh) = (e.mul(low, m_high), e.mul(high, m_high));
    let carry = e.div(ll, unit);
    let middle = e.add(hl, carry);
    let rest = e.binary(BinaryFn::And, middle, mask);
    let middle_high = e.div(middle, unit);
    let second = e.add(lh, rest);
    let second_high = e.div(second, unit);
    let sum = e.add(hh, middle_high);
    e.add(sum, second_high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Access, IndexExpr, Store};
    use crate::loops::{Body, Loop, LoopKind, Map, interpret};
    use crate::types::{DType, TensorType};

    /// Known answers published with Random123: counter, key, block.
    const KNOWN: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];

    /// A loop of one point over six words: counter, then key.
    fn as_loop() -> Loop {
        let words = TensorType::new(DType::U32, [6]);
        let mut body = Body::new();
        let x: Vec<ScalarId> =
            (0..6).map(|k| body.load(0, &words, Access::at(vec![IndexExpr::constant(k)]))).collect();
        let made = block_of(&mut body.expr, [x[0], x[1], x[2], x[3]], [x[4], x[5]]);
        made.into_iter().for_each(|w| body.output(w));
        let stores = (0..4).map(|r| Store::identity(r, 1)).collect();
        let one = TensorType::new(DType::U32, [1]);
        let kind = LoopKind::Map(Map { domain: vec![1], body, stores });
        Loop { operands: vec![words], results: vec![one; 4], kind }
    }

    #[test]
    fn known_answers() {
        let l = as_loop();
        assert_eq!(l.verify(), Vec::<String>::new());
        for (counter, key, expected) in KNOWN {
            assert_eq!(block(counter, key), expected);
            let words = [counter.as_slice(), &key].concat();
            assert_eq!(interpret(&l, &[&words]).concat(), expected);
        }
    }

    /// The recipe agrees with the product of 64 bits where halves carry and where they do not.
    #[test]
    fn recipe_equals_the_generator() {
        let l = as_loop();
        let mut words = [0; 6];
        for round in 0..40u32 {
            let next = block([round, 1, 2, 3], [4, 5]);
            words = [next[0], next[1], words[0], next[2] | 0xffff, next[3] & 0xffff, u32::MAX - round];
            let expected = block([words[0], words[1], words[2], words[3]], [words[4], words[5]]);
            assert_eq!(interpret(&l, &[&words]).concat(), expected);
        }
    }
}

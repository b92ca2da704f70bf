//! Terms of an operand: rounded numbers whose sum is close to it.
//!
//! Input: four f32. Output: as many quadruples as the class has terms. The first term is the operand rounded, each further one the
//! rest, which is exact in f32. All terms but the last are f32 whose digits beyond the format are zero, so that a conversion to the
//! format is exact in whatever direction a driver rounds (one truncates to bf16). The last of several terms is left to that
//! conversion: its rest has either sign, so that truncation has no bias. A single bf16 term is rounded here, to nearest, ties
//! away from zero; a single f16 term is converted, since drivers round to f16 properly.
//!
//! NaN stays NaN, whatever its bits: where rounding carries it away, it is in the rest. An infinity has a NaN rest, and so have
//! magnitudes from 3.39e38 on, which a first term cannot hold: of several terms, one is NaN then, never a wrong number.

use super::tiling::Units;
use crate::kir::{Builder, Expr, Scalar};
use griffinfly_ir::target::{HalfFormat, NumericClass};

/// Sign bit and the rest.
const SIGN: u32 = 0x8000_0000;
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Infinity: larger magnitudes are NaN.
const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
/// Bits of a bf16 in an f32.
const BF16_BITS: u32 = 0xffff_0000;
/// Bits of an f16 in an f32.
const F16_BITS: u32 = 0xffff_e000;
/// 2^-14: smaller f16 are multiples of 2^-24.
const F16_SMALL: u32 = 0x3880_0000;
/// 65536, beyond all f16.
const F16_OVER: u32 = 0x4780_0000;

/// The terms of four operands, the largest first.
pub(in crate::families) fn terms<'b>(
    b: &'b Builder,
    value: Expr<'b>,
    class: NumericClass,
    units: Units,
) -> Vec<Expr<'b>> {
    let mut rest = value;
    let mut terms = Vec::new();
    for _ in 1..class.terms() {
        let term = ((rest.bitcast(Scalar::U32) + 0x8000_u32) & BF16_BITS).bitcast(Scalar::F32);
        terms.push(term);
        rest = rest - term;
    }
    terms.push(match (class.format(), units) {
        (Some(HalfFormat::Bf16), _) if terms.is_empty() => bf16(b, rest),
        // As the conversion does it that is known to be the coarsest.
        (Some(HalfFormat::Bf16), Units::Plain) => {
            (rest.bitcast(Scalar::U32) & BF16_BITS).bitcast(Scalar::F32)
        }
        (Some(HalfFormat::F16), Units::Plain) => f16(b, rest),
        (None, _) | (Some(_), Units::Matrix(_)) => rest,
    });
    terms
}

/// The nearest bf16, ties away from zero.
fn bf16<'b>(b: &'b Builder, value: Expr<'b>) -> Expr<'b> {
    let bits = value.bitcast(Scalar::U32);
    // Of NaN the addition could make a number.
    let is_nan = (bits & MAGNITUDE).gt(INFINITY);
    let nan = b.constant(NAN).splat(bits.ty().lanes);
    b.select(is_nan, nan, (bits + 0x8000_u32) & BF16_BITS).bitcast(Scalar::F32)
}

/// The nearest f16, ties to even.
fn f16<'b>(b: &'b Builder, value: Expr<'b>) -> Expr<'b> {
    let bits = value.bitcast(Scalar::U32);
    let (sign, magnitude) = (bits & SIGN, bits & MAGNITUDE);
    let rounded = (magnitude + ((magnitude >> 13) & 1_u32) + 0xfff_u32) & F16_BITS;
    // Between 1/2 and 1, f32 are multiples of 2^-24 as well.
    let small = (magnitude.bitcast(Scalar::F32) + 0.5 - 0.5).bitcast(Scalar::U32);
    let rounded = b.select(magnitude.lt(F16_SMALL), small, rounded);
    let all = |bits: u32| b.constant(bits).splat(value.ty().lanes);
    let rounded = b.select(rounded.ge(F16_OVER), all(INFINITY), rounded);
    let rounded = b.select(magnitude.gt(INFINITY), all(NAN), rounded);
    (rounded | sign).bitcast(Scalar::F32)
}

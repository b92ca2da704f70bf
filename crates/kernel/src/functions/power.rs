//! `pow(x, y) = exp(y log |x|)` with the sign and special cases of C.
//!
//! The rounding of `y log |x|` is magnified by its size: the error is up to 2 (1 + |y log x|) ulp. Kernels with a small
//! constant integer exponent should multiply instead.

/// Needs `EXP` and `LOG`.
pub(super) const POW: &str = "\
fn gf_pow(x: f32, y: f32) -> f32 {
    let xm = bitcast<u32>(x) & 0x7fffffffu;
    let ym = bitcast<u32>(y) & 0x7fffffffu;
    let p = gf_exp(y * gf_log(bitcast<f32>(xm)));
    let power = select(p, 1.0f, xm == 0x3f800000u);
    let whole = floor(y) == y;
    let odd = whole & (ym < 0x4b800000u) & ((i32(y) & 1i) == 1i);
    let sign = select(0u, bitcast<u32>(x) & 0x80000000u, odd);
    let imaginary = (x < 0.0f) & (xm < 0x7f800000u) & !whole & (ym < 0x7f800000u);
    let bad = imaginary | (xm > 0x7f800000u) | (ym > 0x7f800000u);
    let one = (ym == 0u) | (bitcast<u32>(x) == 0x3f800000u);
    let y_or_nan = select(bitcast<u32>(power) | sign, 0x7fc00000u, bad);
    return bitcast<f32>(select(y_or_nan, 0x3f800000u, one));
}
";

/// Power: the twin of `gf_pow`.
#[inline]
pub fn pow(x: f32, y: f32) -> f32 {
    let xm = x.to_bits() & 0x7fff_ffff;
    let ym = y.to_bits() & 0x7fff_ffff;
    if ym == 0 || x == 1.0 {
        return 1.0;
    }
    let whole = y.floor() == y;
    let imaginary = x < 0.0 && xm < 0x7f80_0000 && !whole && ym < 0x7f80_0000;
    if imaginary || x.is_nan() || y.is_nan() {
        return f32::NAN;
    }
    let p = super::host::exp(y * super::host::log(x.abs()));
    let power = if xm == 0x3f80_0000 { 1.0 } else { p };
    let odd = whole && ym < 0x4b80_0000 && (y as i32) & 1 == 1;
    let sign = if odd { x.to_bits() & 0x8000_0000 } else { 0 };
    f32::from_bits(power.to_bits() | sign)
}

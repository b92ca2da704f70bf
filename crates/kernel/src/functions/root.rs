//! Square roots: the device's own, guarded where its specification leaves results open.
//!
//! Vulkan bounds `inverseSqrt` by 2 ulp and derives `sqrt` from it; hardware is at least that good. The twins are
//! exact (`sqrt`) or within 1 ulp (`rsqrt`).

/// Needs nothing.
pub(super) const SQRT: &str = "\
fn gf_sqrt(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let special = select(bitcast<f32>(0x7fc00000u), x, (bits == 0x80000000u) | (bits == 0x7f800000u));
    return select(sqrt(x), special, bits >= 0x7f800000u);
}
";

/// Square root: the twin of `gf_sqrt`.
#[inline]
pub fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// Needs nothing.
pub(super) const RSQRT: &str = "\
fn gf_rsqrt(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let open = select(0x7fc00000u, 0u, bits == 0x7f800000u);
    let special = select(open, bits | 0x7f800000u, (bits & 0x7fffffffu) == 0u);
    let positive = (bits > 0u) & (bits < 0x7f800000u);
    return bitcast<f32>(select(special, bitcast<u32>(inverseSqrt(x)), positive));
}
";

/// Reciprocal square root: the twin of `gf_rsqrt`.
#[inline]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

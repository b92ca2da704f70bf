//! `erf`: x + x p(x^2) below 0.93, above 1 - exp(x q(x)) where x q(x) fits log erfc. Saturates at 4.
//!
//! Since 1 - erf is below 0.19 in the second branch, the error of the exponential hardly reaches the result.

/// Needs `EXP`.
pub(super) const ERF: &str = "\
fn gf_erf(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let a = bitcast<f32>(bits & 0x7fffffffu);
    let z = a * a;
    let b = ((8.316705e-5f * z + -0.00081299944f) * z + 0.005199905f) * z + -0.02685894f;
    let p = ((b * z + 0.11283688f) * z + -0.37612632f) * z + 0.12837917f;
    let small = a + a * p;
    let t = min(a, 4.0f);
    let c = ((0.00021400841f * t + -0.0032151362f) * t + 0.022890504f) * t + -0.10526263f;
    let q = (c * t + -0.63571775f) * t + -1.1285145f;
    let large = 1.0f - gf_exp(q * t);
    let y = bitcast<u32>(select(large, small, a < 0.93f)) | (bits & 0x80000000u);
    return select(bitcast<f32>(y), x, (bits & 0x7fffffffu) > 0x7f800000u);
}
";

/// Error function: the twin of `gf_erf`.
#[inline]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    let b = ((8.316_705e-5 * z + -0.000_812_999_44) * z + 0.005_199_905) * z + -0.026_858_94;
    let p = ((b * z + 0.112_836_88) * z + -0.376_126_32) * z + 0.128_379_17;
    let small = a + a * p;
    let t = a.min(4.0);
    let c = ((0.000_214_008_41 * t + -0.003_215_136_2) * t + 0.022_890_504) * t + -0.105_262_63;
    let q = (c * t + -0.635_717_75) * t + -1.128_514_5;
    let large = 1.0 - super::host::exp(q * t);
    let y = (if a < 0.93 { small } else { large }).to_bits() | (x.to_bits() & 0x8000_0000);
    if x.is_nan() { x } else { f32::from_bits(y) }
}
